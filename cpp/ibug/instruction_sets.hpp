// Which of the compiled instruction sets this machine can run, best last.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "scan.hpp"

#if defined(IBUG_X86) && defined(_MSC_VER) && !defined(__clang__)
#include <immintrin.h>
#include <intrin.h>
#endif

namespace ibug {

#ifdef IBUG_X86
#if defined(_MSC_VER) && !defined(__clang__)
struct X86Features {
    bool avx2 = false;
    bool avx512 = false;

    X86Features() {
        int info[4];
        __cpuid(info, 1);
        if (!(info[2] & (1 << 27))) return;  // OSXSAVE: the operating system keeps the wide registers
        const unsigned long long saved = _xgetbv(0);
        __cpuidex(info, 7, 0);
        avx2 = (saved & 0x6) == 0x6 && (info[1] & (1 << 5));
        avx512 = (saved & 0xe6) == 0xe6 && (info[1] & (1 << 16)) && (info[1] & (1 << 30));
    }
};
#else
struct X86Features {
    bool avx2 = __builtin_cpu_supports("avx2");
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
};
#endif
#endif

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
