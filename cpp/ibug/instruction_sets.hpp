// Which of the compiled instruction sets this machine can run, best last.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "scan.hpp"
#include "x86_features.hpp"

namespace ibug {

inline std::vector<const InstructionSet*> instruction_sets() {
    std::vector<const InstructionSet*> sets = {&scan_baseline};
#ifdef IBUG_X86
    const X86Features has;
    if (has.avx2) sets.push_back(&scan_avx2);
    if (has.avx512) sets.push_back(&scan_avx512);
#endif
    return sets;
}

// By name, or the best one for an empty name.
inline const InstructionSet& instruction_set(const std::string& name) {
    static const std::vector<const InstructionSet*> sets = instruction_sets();
    if (name.empty()) return *sets.back();
    for (const InstructionSet* set : sets)
        if (name == set->name) return *set;
    throw std::invalid_argument("instruction set '" + name + "' is not available on this machine");
}

}  // namespace ibug
