// Fitting one distribution to each row of values: moments, medians, and maximum likelihood where no closed form exists.
//
// Rows are independent and each is small (k neighbours), so everything of a row stays in the first-level cache. The
// loops over its values are compiled once for each instruction set; all functions fit the rows from `start` to `stop`
// and write only their results.
#pragma once

#include <cstddef>

#include "common/instruction_sets.hpp"

namespace ibug {

// Those that are fitted by iteration.
enum class FittedFamily { logistic, gumbel, student_t, skew_normal };

// The rows of `values`, (n, k), that are to be fitted.
struct Rows {
    const double* values;
    std::size_t k;
    std::size_t start;
    std::size_t stop;
    double* scratch;  // (2 * k,): memory to work in

    const double* row(std::size_t i) const { return values + i * k; }
};

struct Fits {
    InstructionSet set;
    // Means and standard deviations.
    void (*moments)(const Rows& rows, double* center, double* spread);
    // Means and standard deviations of the logarithms; values above zero.
    void (*log_moments)(const Rows& rows, double* center, double* spread);
    // Medians and mean absolute deviations from them.
    void (*median_deviation)(const Rows& rows, double* median, double* deviation);
    // The most likely location, scale and shape of each row, `parameters` (n, 3). `center` and `spread` are the moments
    // of the rows, the latter above zero: the search runs in these units.
    void (*most_likely)(FittedFamily family, const Rows& rows, const double* center, const double* spread,
                        double* parameters);
    // The most likely shape of each row for given means and standard deviations.
    void (*most_likely_shape)(FittedFamily family, const Rows& rows, const double* mean, const double* std,
                              double* shape);
};

IBUG_DECLARE_TABLES(Fits, fits)

}  // namespace ibug
