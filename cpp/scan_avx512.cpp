#define IBUG_SET scan_avx512
#define IBUG_SET_NAME "avx512"
#define IBUG_VECTOR_BYTES 64
#define IBUG_GROUP 4
#define IBUG_LEAST_QUERIES 32
#include "ibug/scan.inl"
