// The instruction set that a source file is compiled for.
//
// The files with the hot loops are compiled once for each instruction set (see CMakeLists.txt). All that they define is
// in an unnamed namespace within the one that IBUG_TARGET names: code for one instruction set must never be linked into
// another. Without a definition, as in an editor, it is the baseline: what every machine of the architecture has, SSE2
// on x86-64 and NEON on 64-bit ARM. SCALAR is for tests alone: plain loops, which the others are compared with, and
// which a compiler without vector types gets.
#pragma once

#if defined(IBUG_TARGET_AVX512)
#define IBUG_TARGET avx512
#define IBUG_VECTOR_BYTES 64  // the width of a vector register
#elif defined(IBUG_TARGET_AVX2)
#define IBUG_TARGET avx2
#define IBUG_VECTOR_BYTES 32
#elif defined(IBUG_TARGET_SCALAR)
#define IBUG_TARGET scalar
#define IBUG_VECTOR_BYTES 16
#else
#define IBUG_TARGET baseline
#define IBUG_VECTOR_BYTES 16
#endif

#if defined(IBUG_TARGET_SCALAR)
#elif defined(__x86_64__) || (defined(_M_X64) && !defined(_M_ARM64EC))
#define IBUG_X86
#if IBUG_VECTOR_BYTES > 16
#include <immintrin.h>
#else
#include <emmintrin.h>
#endif
#elif defined(__aarch64__) || defined(_M_ARM64)
#define IBUG_NEON
#include <arm_neon.h>
#endif

// Vectors as types of the compiler's own, with operators, that can be converted to those of the intrinsic functions.
#if (defined(__GNUC__) || defined(__clang__)) && !defined(IBUG_TARGET_SCALAR)
#define IBUG_VECTOR_TYPES
#endif

// Counters stay in registers only where the loops over them are unrolled.
#if defined(__clang__)
#define IBUG_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define IBUG_UNROLL _Pragma("GCC unroll 16")
#else
#define IBUG_UNROLL
#endif
