#define IBUG_LIKELIHOOD likelihood_baseline
#define IBUG_SET_NAME "baseline"
#include "ibug/likelihood.inl"
