// Which instruction sets this machine and its operating system can run.
#pragma once

#ifdef IBUG_X86
#if defined(_MSC_VER) && !defined(__clang__)
#include <immintrin.h>
#include <intrin.h>
#endif

namespace ibug {

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

}  // namespace ibug
#endif
