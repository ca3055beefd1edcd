#define IBUG_LIKELIHOOD likelihood_avx512
#define IBUG_SET_NAME "avx512"
#include "ibug/likelihood.inl"
