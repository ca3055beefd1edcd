// The fits, compiled once for each instruction set: see common/target.hpp.
#include "likelihood/likelihood.hpp"

#include "common/target.hpp"
#include "likelihood/distributions.hpp"
#include "likelihood/fit.hpp"
#include "likelihood/moments.hpp"

namespace ibug::IBUG_TARGET {

namespace {

void most_likely(FittedFamily family, const Rows& rows, const double* center, const double* spread,
                 double* parameters) {
    switch (family) {
        case FittedFamily::logistic: return most_likely_by<Logistic>(rows, center, spread, parameters);
        case FittedFamily::gumbel: return most_likely_by<Gumbel>(rows, center, spread, parameters);
        case FittedFamily::student_t: return most_likely_by<StudentT>(rows, center, spread, parameters);
        case FittedFamily::skew_normal: return most_likely_by<SkewNormal>(rows, center, spread, parameters);
    }
}

void most_likely_shape(FittedFamily family, const Rows& rows, const double* mean, const double* std, double* shape) {
    switch (family) {
        case FittedFamily::student_t: return shape_by<StudentT>(rows, mean, std, shape);
        case FittedFamily::skew_normal: return shape_by<SkewNormal>(rows, mean, std, shape);
        case FittedFamily::logistic:
        case FittedFamily::gumbel: return;  // no shape; the bindings refuse it
    }
}

}  // namespace

const Fits fits = {
    InstructionSet::IBUG_TARGET, moments, log_moments, median_deviation, most_likely, most_likely_shape,
};

}  // namespace ibug::IBUG_TARGET
