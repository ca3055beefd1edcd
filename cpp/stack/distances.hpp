// Mean Euclidean distances of weighted points, row by row: what energy scores and the weights of joint experts are made
// of.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace ibug::stack {

// The points of all rows and the probabilities that n_measures measures give them.
struct Points {
    const double* points;  // (n, n_points, n_dims)
    const double* masses;  // (n, n_measures, n_points)
    const double* y;       // (n, n_dims)
    std::size_t n_points, n_dims, n_measures;
};

// Where a measure has its mass: most experts know a few of the points only.
struct Range {
    std::size_t first, last;
};

inline Range range_of(const double* masses, std::size_t n) {
    std::size_t first = 0, last = n;
    while (first < last && masses[first] == 0.0) ++first;
    while (last > first && masses[last - 1] == 0.0) --last;
    return {first, last};
}

// Σ masses · values over a range, by four sums, so that none waits for another.
inline double dot(const double* masses, const double* values, Range range) {
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    std::size_t i = range.first;
    for (; i + 4 <= range.last; i += 4)
        for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += masses[i + lane] * values[i + lane];
    for (; i < range.last; ++i) sums[0] += masses[i] * values[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The distances of one point to all points of a row, whose coordinates are in columns.
inline void distances_to(const double* point, std::size_t stride, const std::vector<double>& columns, std::size_t n,
                         std::size_t n_dims, double* out) {
    for (std::size_t i = 0; i < n; ++i) out[i] = 0.0;
    for (std::size_t dim = 0; dim < n_dims; ++dim) {
        const double* column = columns.data() + dim * n;
        const double at = point[dim * stride];
        for (std::size_t i = 0; i < n; ++i) {
            const double step = column[i] - at;
            out[i] += step * step;
        }
    }
    for (std::size_t i = 0; i < n; ++i) out[i] = std::sqrt(out[i]);
}

// Write E|X − y| of each measure, (n, J), and E|X − X'| of each two, (n, J, J), for a range of rows.
inline void mean_distances(const Points& all, std::size_t start, std::size_t stop, double* to_target,
                           double* to_each_other) {
    const std::size_t m = all.n_points, d = all.n_dims, j = all.n_measures;
    std::vector<double> columns(m * d), away(m);
    std::vector<Range> ranges(j);
    for (std::size_t row = start; row < stop; ++row) {
        const double* points = all.points + row * m * d;
        const double* masses = all.masses + row * j * m;
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t dim = 0; dim < d; ++dim) columns[dim * m + i] = points[i * d + dim];
        for (std::size_t a = 0; a < j; ++a) ranges[a] = range_of(masses + a * m, m);
        distances_to(all.y + row * d, 1, columns, m, d, away.data());
        double* target = to_target + row * j;
        for (std::size_t a = 0; a < j; ++a) target[a] = dot(masses + a * m, away.data(), ranges[a]);
        double* pairs = to_each_other + row * j * j;
        for (std::size_t i = 0; i < j * j; ++i) pairs[i] = 0.0;
        for (std::size_t i = 0; i < m; ++i) {
            distances_to(columns.data() + i, m, columns, m, d, away.data());
            for (std::size_t b = 0; b < j; ++b) {
                const double mean = dot(masses + b * m, away.data(), ranges[b]);
                for (std::size_t a = b; a < j; ++a) pairs[a * j + b] += masses[a * m + i] * mean;
            }
        }
        for (std::size_t a = 0; a < j; ++a)
            for (std::size_t b = a + 1; b < j; ++b) pairs[a * j + b] = pairs[b * j + a];
    }
}

}  // namespace ibug::stack
