// The bodies of likelihood.hpp, included by one source file per instruction set, which defines before it:
//   IBUG_LIKELIHOOD  the name of the Likelihood object
//   IBUG_SET_NAME    its name for people
// Everything here is in an unnamed namespace: code compiled for one instruction set must never be linked into another.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "likelihood.hpp"

namespace ibug {
namespace {

#include "vector_math.inl"

#include "laws.inl"

#include "maximize.inl"

constexpr double infinity = std::numeric_limits<double>::infinity();
// Beyond so many standard deviations a value is as far away as can be; the squares of such numbers are still finite.
constexpr double farthest = 1e100;
constexpr double smallest_ratio = 1e-250;  // of a value to the largest of its row, before logarithms are taken

struct Moments {
    double center, spread;
};

Moments moments_of(const double* v, std::size_t k) {
    // Differences from the first value keep what is left of the precision of values far from zero.
    const double first = v[0], n = static_cast<double>(k);
    double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < k; ++i) sum += v[i] - first;
    const double mean = sum / n;
#pragma omp simd reduction(+ : squares)
    for (std::size_t i = 0; i < k; ++i) {
        const double d = (v[i] - first) - mean;
        squares += d * d;
    }
    return {first + mean, std::sqrt(squares / n)};
}

void moments(const Rows& rows, double* center, double* spread) {
    for (std::size_t i = rows.start; i < rows.stop; ++i) {
        const Moments m = moments_of(rows.row(i), rows.k);
        center[i] = m.center;
        spread[i] = m.spread;
    }
}

struct Range {
    double low, high;
};

Range range_of(const double* v, std::size_t k) {
    double low = infinity, high = -infinity;
#pragma omp simd reduction(min : low) reduction(max : high)
    for (std::size_t i = 0; i < k; ++i) {
        low = low < v[i] ? low : v[i];
        high = high > v[i] ? high : v[i];
    }
    return {low, high};
}

void log_moments(const Rows& rows, double* center, double* spread) {
    const double n = static_cast<double>(rows.k);
    for (std::size_t i = rows.start; i < rows.stop; ++i) {
        const double* v = rows.row(i);
        const auto [low, high] = range_of(v, rows.k);
        const double smallest = std::max(low, smallest_ratio * high), inverse = 1.0 / smallest;
        // Both ends of the range are among the values, so that the variance is at least range²/2k: it is no small
        // difference of the two sums.
        double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum, squares)
        for (std::size_t j = 0; j < rows.k; ++j) {
            const double x = vector_log_ratio(v[j] > smallest ? v[j] : smallest, smallest, inverse);
            sum += x, squares += x * x;
        }
        const double mean = sum / n;
        center[i] = std::log(smallest) + mean;
        spread[i] = std::sqrt(std::max(squares / n - mean * mean, 0.0));
    }
}

// Rows are short and seldom a multiple of 8 long: vectors of four doubles leave a shorter rest than vectors of eight.
std::size_t count_below(const double* v, std::size_t k, double pivot) {
    std::int64_t count = 0;
#pragma omp simd simdlen(4) reduction(+ : count)
    for (std::size_t i = 0; i < k; ++i) count += v[i] < pivot ? 1 : 0;
    return static_cast<std::size_t>(count);
}

struct Split {
    std::size_t less;     // how many values are less than the pivot
    double below, above;  // the values next to it
};

Split split_at(const double* v, std::size_t k, double pivot) {
    std::int64_t count = 0;
    double below = -infinity, above = infinity;
#pragma omp simd simdlen(4) reduction(+ : count) reduction(max : below) reduction(min : above)
    for (std::size_t i = 0; i < k; ++i) {
        const bool less = v[i] < pivot;
        count += less ? 1 : 0;
        const double lower = less ? v[i] : -infinity, upper = less ? infinity : v[i];
        below = below > lower ? below : lower;
        above = above < upper ? above : upper;
    }
    return {static_cast<std::size_t>(count), below, above};
}

// Exact. Passes over a short row by vector instructions cost less than sorting a part of it: each pass counts the
// values below a pivot. The pivot starts at the mean and moves by as many ranks as it was off, first as if the values
// were normal, then by interpolation. Only where it is near are the values beside it looked for.
double median_of(const double* v, std::size_t k, std::vector<double>& copy) {
    constexpr int rough_passes = 3, most_passes = 16;
    const std::size_t low_rank = (k - 1) / 2, high_rank = k / 2;
    // Range and rough moments in one pass: they only tell where to look first.
    const double first = v[0], n = static_cast<double>(k);
    double low = infinity, high = -infinity, sum = 0, squares = 0;
#pragma omp simd simdlen(4) reduction(+ : sum, squares) reduction(min : low) reduction(max : high)
    for (std::size_t i = 0; i < k; ++i) {
        const double d = v[i] - first;
        sum += d, squares += d * d;
        low = low < v[i] ? low : v[i];
        high = high > v[i] ? high : v[i];
    }
    const double mean = sum / n, spread = std::sqrt(std::max(squares / n - mean * mean, 0.0));
    const double per_rank = 2.5 * spread / n;  // 1/φ(0) = √(2π) = 2.5
    double pivot = first + mean;
    // `low` is the value of rank `before`, and all of the ranks from there to the upper median's are at most `high`.
    std::size_t before = 0;
    // Pivots that were too low and too high, and how many values are below them.
    double left = low, right = high, left_count = 0, right_count = n;
    bool near = false;
    for (int pass = 0; pass < most_passes && low < high; ++pass) {
        if (!(pivot > low)) pivot = std::nextafter(low, high);
        if (!(pivot <= high)) pivot = high;
        const bool rough = pass < rough_passes && !near;
        const Split found = rough ? Split{count_below(v, k, pivot), 0, 0} : split_at(v, k, pivot);
        if (!rough) {
            if (found.less == high_rank) return low_rank < high_rank ? found.below / 2 + found.above / 2 : found.above;
            if (found.less < high_rank)
                low = found.above, before = found.less;
            else {
                // Ranks `before` to `less` − 1 are between `low` and `below`.
                if (low_rank >= before && (found.below == low || found.less == low_rank + 1)) return found.below;
                high = found.below;
            }
        }
        const double count = static_cast<double>(found.less), missing = static_cast<double>(high_rank) - count;
        if (missing > 0)
            left = pivot, left_count = count;
        else
            right = pivot, right_count = count;
        near = std::fabs(missing) <= 1.0;
        if (near) {
            if (!rough) pivot = missing > 0 ? std::nextafter(found.above, infinity) : found.below;  // one value further
        } else if (rough && (left_count == 0 || right_count == n))
            pivot += missing * per_rank;
        else
            pivot = left + (right - left) * (static_cast<double>(high_rank) + 0.5 - left_count) / (right_count - left_count);
    }
    if (!(low < high)) return low;
    copy.assign(v, v + k);
    std::nth_element(copy.begin(), copy.begin() + high_rank, copy.end());
    const double upper = copy[high_rank];
    if (low_rank == high_rank) return upper;
    return *std::max_element(copy.begin(), copy.begin() + high_rank) / 2 + upper / 2;
}

void median_deviation(const Rows& rows, double* median, double* deviation) {
    std::vector<double> copy;
    for (std::size_t i = rows.start; i < rows.stop; ++i) {
        const double* v = rows.row(i);
        const double middle = median_of(v, rows.k, copy);
        double sum = 0;
#pragma omp simd simdlen(4) reduction(+ : sum)
        for (std::size_t j = 0; j < rows.k; ++j) sum += std::fabs(v[j] - middle);
        median[i] = middle;
        deviation[i] = sum / static_cast<double>(rows.k);
    }
}

// Where the search begins.
template <class L>
Point start_of(const Standardized&) {
    const double scale = L::scale_for_unit_variance();
    return {-scale * L::mean(), std::log(scale), 0.0};
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
    const SkewNormal law(t);
    const double scale = 1.0 / std::sqrt(law.variance());
    return {-scale * law.mean(), std::log(scale), t};
}

template <class L>
Point most_likely_of(const Standardized& row) {
    return maximize<L>(row, start_of<L>(row)).at;
}

// The start for a row that is nearly half a normal law, leaning to the side of the sign of t.
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

// The likelihood has several maxima: rows of little skewness can lean to either side, skewed ones be half a normal law.
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
    // On the way to half a normal law the ridge gets ever narrower and the steps crawl: where its end is nearly as
    // likely as the best so far, begin there, too.
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

template <class L>
void most_likely_by(const Rows& rows, const double* center, const double* spread, double* parameters) {
    std::vector<double> u(rows.k), copy;
    for (std::size_t i = rows.start; i < rows.stop; ++i) {
        Standardized row = standardize(rows.row(i), rows.k, center[i], spread[i], u.data());
        if constexpr (std::is_same_v<L, StudentT>) row.median = median_of(u.data(), rows.k, copy);
        const Point best = most_likely_of<L>(row);
        double* out = parameters + 3 * i;
        out[0] = center[i] + spread[i] * best[0];
        out[1] = spread[i] * std::exp(best[1]);
        if constexpr (L::n_shapes > 0)
            out[2] = L(best[2]).shape();
        else
            out[2] = 0.0;
    }
}

template <class L>
void shape_by(const Rows& rows, const double* mean, const double* std, double* shape) {
    std::vector<double> u(rows.k);
    for (std::size_t i = rows.start; i < rows.stop; ++i)
        shape[i] = L(best_shape<L>(standardize(rows.row(i), rows.k, mean[i], std[i], u.data()))).shape();
}

void most_likely(Law law, const Rows& rows, const double* center, const double* spread, double* parameters) {
    switch (law) {
        case Law::logistic: return most_likely_by<Logistic>(rows, center, spread, parameters);
        case Law::gumbel: return most_likely_by<Gumbel>(rows, center, spread, parameters);
        case Law::student_t: return most_likely_by<StudentT>(rows, center, spread, parameters);
        case Law::skew_normal: return most_likely_by<SkewNormal>(rows, center, spread, parameters);
    }
}

void most_likely_shape(Law law, const Rows& rows, const double* mean, const double* std, double* shape) {
    switch (law) {
        case Law::student_t: return shape_by<StudentT>(rows, mean, std, shape);
        case Law::skew_normal: return shape_by<SkewNormal>(rows, mean, std, shape);
        case Law::logistic:
        case Law::gumbel: return;  // no shape; the bindings refuse it
    }
}

}  // namespace

const Likelihood IBUG_LIKELIHOOD = {IBUG_SET_NAME, moments, log_moments, median_deviation, most_likely, most_likely_shape};

}  // namespace ibug
