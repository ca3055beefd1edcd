// The spread of neighbours at several numbers of neighbours, and their log-linear combination. Each row is summed by
// itself, one value after the other: a row alone and a row of a batch have the same result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/matrix.hpp"

namespace ibug::spread {

// Each row's values, nearest first; rows may lie apart.
struct Rows {
    const double* values;
    std::size_t n, stride;

    const double* operator[](std::size_t row) const { return values + row * stride; }
};

// For each row and each number k of its first values, ascending, their variance: of the values around their mean where
// they are `centered`, else their mean square. out: (n, n_ks).
//
// With d = value - first value the variance is mean(d^2) - mean(d)^2. Every prefix has the first value itself, at d =
// 0, so that the subtraction loses at most a factor k of the precision.
inline void prefix_variances(const Rows& rows, std::span<const std::int64_t> ks, bool centered, Matrix<double> out) {
    if (ks.empty()) return;  // there may be no values then
    for (std::size_t row = 0; row < rows.n; ++row) {
        const double* values = rows[row];
        const double first = centered ? values[0] : 0.0;
        double sum = 0.0, squares = 0.0;
        std::size_t i = 0;
        for (std::size_t j = 0; j < ks.size(); ++j) {
            for (const auto k = static_cast<std::size_t>(ks[j]); i < k; ++i) {
                const double d = values[i] - first;
                sum += d;
                squares += d * d;
            }
            const double n = static_cast<double>(ks[j]), mean = sum / n;
            const double variance = centered ? squares / n - mean * mean : squares / n;
            out[row][j] = variance < 0.0 ? 0.0 : variance;  // which keeps NaN
        }
    }
}

// log s = log s_0 + intercept + sum of exponent * (log s_j - center): all arrays have one number for each spread.
struct Combination {
    std::span<const double> floors, centers, lowest, highest, exponents;
    double intercept;
};

// The combined variances, (n_rows,), of those of each spread, (n_rows, n_spreads).
inline void combine(const Combination& with, Matrix<const double> variances, std::span<double> out) {
    for (std::size_t row = 0; row < out.size(); ++row) {
        double first = 0.0, moved = 0.0;
        for (std::size_t j = 0; j < variances.width; ++j) {
            const double log = 0.5 * std::log(variances[row][j] + with.floors[j]);
            const double cut = std::min(std::max(log, with.lowest[j]), with.highest[j]);
            if (j == 0) first = cut;
            moved += (cut - with.centers[j]) * with.exponents[j];
        }
        out[row] = std::exp(2.0 * (first + with.intercept + moved));
    }
}

}  // namespace ibug::spread
