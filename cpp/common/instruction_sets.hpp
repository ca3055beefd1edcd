// The instruction sets that loops are compiled for, which of them this machine has, and the choice among them.
//
// A module has a table of functions, compiled once for each instruction set: `Functions`, whose first member is the
// InstructionSet `set`. It declares the tables by IBUG_DECLARE_TABLES and lists them by IBUG_TABLES.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(_MSC_VER) && !defined(__clang__) && defined(IBUG_AVX)
#include <immintrin.h>
#include <intrin.h>
#endif

namespace ibug {

// Best last. The names of the namespaces that the tables are in, and for people. On 64-bit ARM the baseline has NEON.
// No package has `scalar`: see common/target.hpp.
enum class InstructionSet : std::size_t { scalar, baseline, avx2, avx512 };
inline constexpr std::array<const char*, 4> instruction_set_names = {"scalar", "baseline", "avx2", "avx512"};

inline const char* name_of(InstructionSet set) { return instruction_set_names[static_cast<std::size_t>(set)]; }

// IBUG_AVX is defined where the tables beyond the baseline are compiled: on x86-64.
#ifdef IBUG_AVX
#define IBUG_DECLARE_TABLES(Functions, table)            \
    namespace scalar { extern const Functions table; }   \
    namespace baseline { extern const Functions table; } \
    namespace avx2 { extern const Functions table; }     \
    namespace avx512 { extern const Functions table; }
#define IBUG_TABLES(table) {&baseline::table, &avx2::table, &avx512::table}
#else
#define IBUG_DECLARE_TABLES(Functions, table)          \
    namespace scalar { extern const Functions table; } \
    namespace baseline { extern const Functions table; }
#define IBUG_TABLES(table) {&baseline::table}
#endif

// What the machine and its operating system can run.
class Machine {
   public:
    Machine() {
#ifdef IBUG_AVX
#if defined(_MSC_VER) && !defined(__clang__)
        int info[4];
        __cpuid(info, 1);
        if (!(info[2] & (1 << 27))) return;  // OSXSAVE: the operating system keeps the wide registers
        const unsigned long long saved = _xgetbv(0);
        __cpuidex(info, 7, 0);
        avx2_ = (saved & 0x6) == 0x6 && (info[1] & (1 << 5));
        avx512_ = (saved & 0xe6) == 0xe6 && (info[1] & (1 << 16)) && (info[1] & (1 << 30));
#else
        avx2_ = __builtin_cpu_supports("avx2");
        avx512_ = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
#endif
#endif
    }

    bool has(InstructionSet set) const {
        return set == InstructionSet::baseline || (set == InstructionSet::avx2 ? avx2_ : avx512_);
    }

   private:
    bool avx2_ = false, avx512_ = false;
};

// The tables of one module that this machine can run.
template <class Functions>
class Tables {
   public:
    explicit Tables(std::initializer_list<const Functions*> compiled) {
        const Machine machine;
        for (const Functions* table : compiled)
            if (machine.has(table->set)) tables_.push_back(table);
    }

    // Best last.
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const Functions* table : tables_) names.emplace_back(name_of(table->set));
        return names;
    }

    // By name, or the best one for an empty name.
    const Functions& choose(const std::string& name) const {
        if (name.empty()) return *tables_.back();
        for (const Functions* table : tables_)
            if (name == name_of(table->set)) return *table;
        throw std::invalid_argument("instruction set '" + name + "' is not available on this machine");
    }

   private:
    std::vector<const Functions*> tables_;
};

}  // namespace ibug
