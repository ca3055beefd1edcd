#define IBUG_SET scan_avx2
#define IBUG_SET_NAME "avx2"
#define IBUG_VECTOR_BYTES 32
#define IBUG_GROUP 2
#define IBUG_LEAST_QUERIES 192
#include "ibug/scan.inl"
