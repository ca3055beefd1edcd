#define IBUG_WALK_SET walk_avx512
#define IBUG_SET_NAME "avx512"
#define IBUG_VECTOR_BYTES 64
#include "ibug/walk.inl"
