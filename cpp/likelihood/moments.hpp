// Moments, medians and mean absolute deviations of rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/target.hpp"
#include "likelihood/likelihood.hpp"
#include "likelihood/vector_math.hpp"

namespace ibug::IBUG_TARGET {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
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

// The value of a rank, by Hoare's selection: those before it in `v` are then at most as large. Our own, because the
// standard library's would be compiled for this instruction set and could be linked into code for another.
double select(double* v, std::size_t k, std::size_t rank) {
    std::size_t first = 0, last = k - 1;
    while (first < last) {
        const double pivot = v[first + (last - first) / 2];
        std::size_t i = first, j = last;
        for (;;) {
            while (v[i] < pivot) ++i;
            while (v[j] > pivot) --j;
            if (i >= j) break;
            const double other = v[i];
            v[i++] = v[j];
            v[j--] = other;
        }
        // Those up to j are at most the pivot, those after it at least.
        if (rank <= j)
            last = j;
        else
            first = j + 1;
    }
    return v[rank];
}

// Exact. Passes over a short row by vector instructions cost less than sorting a part of it: each pass counts the
// values below a pivot. The pivot starts at the mean and moves by as many ranks as it was off, first as if the values
// were normal, then by interpolation. Only where it is near are the values beside it looked for.
// `copy` has room for k values.
double median_of(const double* v, std::size_t k, double* copy) {
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
            pivot = left +
                    (right - left) * (static_cast<double>(high_rank) + 0.5 - left_count) / (right_count - left_count);
    }
    if (!(low < high)) return low;
    for (std::size_t i = 0; i < k; ++i) copy[i] = v[i];
    const double upper = select(copy, k, high_rank);
    if (low_rank == high_rank) return upper;
    return range_of(copy, high_rank).high / 2 + upper / 2;
}

void median_deviation(const Rows& rows, double* median, double* deviation) {
    for (std::size_t i = rows.start; i < rows.stop; ++i) {
        const double* v = rows.row(i);
        const double middle = median_of(v, rows.k, rows.scratch);
        double sum = 0;
#pragma omp simd simdlen(4) reduction(+ : sum)
        for (std::size_t j = 0; j < rows.k; ++j) sum += std::fabs(v[j] - middle);
        median[i] = middle;
        deviation[i] = sum / static_cast<double>(rows.k);
    }
}

}  // namespace
}  // namespace ibug::IBUG_TARGET
