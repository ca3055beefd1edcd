#define IBUG_LIKELIHOOD likelihood_avx2
#define IBUG_SET_NAME "avx2"
#include "ibug/likelihood.inl"
