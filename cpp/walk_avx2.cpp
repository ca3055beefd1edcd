#define IBUG_WALK_SET walk_avx2
#define IBUG_SET_NAME "avx2"
#define IBUG_VECTOR_BYTES 32
#include "ibug/walk.inl"
