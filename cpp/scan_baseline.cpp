// What every machine of the architecture has: SSE2 on x86-64, NEON on 64-bit ARM. Two queries at a time, because
// 16 registers hold the counters of no more.
#define IBUG_SET scan_baseline
#define IBUG_SET_NAME "baseline"
#define IBUG_VECTOR_BYTES 16
#define IBUG_GROUP 2
#ifdef IBUG_X86
#define IBUG_LEAST_QUERIES 64
#else
#define IBUG_LEAST_QUERIES ~std::size_t{0}  // without an instruction that makes a mask of bytes they are too slow to make
#endif
#include "ibug/scan.inl"
