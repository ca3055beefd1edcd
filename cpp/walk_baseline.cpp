#define IBUG_WALK_SET walk_baseline
#define IBUG_SET_NAME "baseline"
#define IBUG_VECTOR_BYTES 16
#include "ibug/walk.inl"
