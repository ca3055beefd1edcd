// The most likely location, scale and shape of rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "common/target.hpp"
#include "likelihood/distributions.hpp"
#include "likelihood/likelihood.hpp"
#include "likelihood/maximize.hpp"
#include "likelihood/moments.hpp"

namespace ibug::IBUG_TARGET {
namespace {

// In standard deviations: a value beyond is taken to be this far away. The squares of such numbers are still finite.
constexpr double farthest = 1e100;

// Where the search begins.
template <class Family>
Point start_of(const Standardized&) {
    const double scale = Family::scale_for_unit_variance();
    return {-scale * Family::mean(), std::log(scale), 0.0};
}

template <>
Point start_of<StudentT>(const Standardized& row) {
    constexpr double df = 5.0;
    return {row.median, 0.5 * std::log((df - 2) / df), std::log(df)};
}

template <>
Point start_of<SkewNormal>(const Standardized& row) {
    // By the method of moments. A shape of exactly 0 is a point where the likelihood is flat to the third order.
    const double skewness = std::clamp(row.mean_cube, -0.9, 0.9), sign = skewness < 0 ? -1.0 : 1.0;
    const double power = std::pow(std::fabs(skewness), 2.0 / 3);
    constexpr double pi = 3.1415926535897932;
    const double delta = std::sqrt(pi / 2 * power / (power + std::pow((4 - pi) / 2, 2.0 / 3)));
    const double bounded = sign * std::clamp(delta, 0.3, 0.99);
    const double t = std::asinh(bounded / std::sqrt(1 - bounded * bounded));
    const SkewNormal family(t);
    const double scale = 1.0 / std::sqrt(family.variance());
    return {-scale * family.mean(), std::log(scale), t};
}

template <class Family>
Point most_likely_of(const Standardized& row) {
    return maximize<Family>(row, start_of<Family>(row)).at;
}

// The start for a row that is nearly half a normal distribution, leaning to the side of the sign of t.
Point half_normal_start(const Standardized& row, double t) {
    const double sign = t < 0 ? -1.0 : 1.0;
    const auto [low, high] = range_of(row.u, row.k);
    const double edge = sign < 0 ? high : low;
    double squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::size_t i = 0; i < row.k; ++i) squares += (row.u[i] - edge) * (row.u[i] - edge);
    const double half = std::max(std::sqrt(squares / static_cast<double>(row.k)), 1e-3);
    // The density rises within about scale/|α| beside the location; the outermost value is just inside.
    return {edge - 4.0 * half / std::sinh(t), std::log(half), t};
}

// The likelihood has several maxima: rows of little skewness can lean to either side, skewed ones be half a normal one.
template <>
Point most_likely_of<SkewNormal>(const Standardized& row) {
    constexpr double clear_skewness = 0.5, some_skewness = 0.2, roughly = 1e-6;
    const Point start = start_of<SkewNormal>(row);
    Maximum best = maximize<SkewNormal>(row, start, roughly);
    const auto try_from = [&](const Point& other) {
        const Maximum found = maximize<SkewNormal>(row, other, roughly);
        if (found.value > best.value) best = found;
    };
    if (std::fabs(row.mean_cube) < clear_skewness) try_from({-start[0], start[1], -start[2]});
    if (std::fabs(row.mean_cube) > some_skewness) try_from(half_normal_start(row, std::copysign(4.0, row.mean_cube)));
    // On the way to half a normal distribution the ridge gets ever narrower and the steps crawl: where its end is
    // nearly as likely as the best so far, begin there as well.
    constexpr double nearly = 0.05;
    const Point end = half_normal_start(row, std::copysign(SkewNormal::highest, best.at[2]));
    if (expand<SkewNormal>(row, end).value > best.value - nearly) try_from(end);
    return maximize<SkewNormal>(row, best.at).at;
}

Standardized standardize(const double* v, std::size_t k, double center, double spread, double* u) {
    const double inverse = 1.0 / spread;
    double cubes = 0;
#pragma omp simd reduction(+ : cubes)
    for (std::size_t i = 0; i < k; ++i) {
        const double x = (v[i] - center) * inverse;
        u[i] = x < -farthest ? -farthest : (x > farthest ? farthest : x);
        cubes += u[i] * u[i] * u[i];
    }
    return {u, k, cubes / static_cast<double>(k), 0.0};
}

template <class Family>
void most_likely_by(const Rows& rows, const double* center, const double* spread, double* parameters) {
    double *u = rows.scratch, *copy = rows.scratch + rows.k;
    for (std::size_t i = rows.start; i < rows.stop; ++i) {
        Standardized row = standardize(rows.row(i), rows.k, center[i], spread[i], u);
        if constexpr (std::is_same_v<Family, StudentT>) row.median = median_of(u, rows.k, copy);
        const Point best = most_likely_of<Family>(row);
        double* out = parameters + 3 * i;
        out[0] = center[i] + spread[i] * best[0];
        out[1] = spread[i] * std::exp(best[1]);
        if constexpr (Family::n_shapes > 0)
            out[2] = Family(best[2]).shape();
        else
            out[2] = 0.0;
    }
}

template <class Family>
void shape_by(const Rows& rows, const double* mean, const double* std, double* shape) {
    for (std::size_t i = rows.start; i < rows.stop; ++i)
        shape[i] = Family(best_shape<Family>(standardize(rows.row(i), rows.k, mean[i], std[i], rows.scratch))).shape();
}

}  // namespace
}  // namespace ibug::IBUG_TARGET
