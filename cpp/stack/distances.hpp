// Mean Euclidean distances of weighted points, row by row: what energy scores and the weights of joint experts are made
// of.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "common/matrix.hpp"

namespace ibug::stack {

// The points of all rows and the probabilities that n_measures measures give them.
struct Points {
    Matrix<const double> points;  // (n, n_points · n_dims)
    Matrix<const double> masses;  // (n, n_measures · n_points)
    Matrix<const double> y;       // (n, n_dims)
    std::size_t n_points, n_measures;
};

// A measure's mass at each point, and where it has some: most experts know a few of the points only.
class Measure {
   public:
    explicit Measure(std::span<const double> masses) : masses_(masses), last_(masses.size()) {
        while (first_ < last_ && masses[first_] == 0.0) ++first_;
        while (last_ > first_ && masses[last_ - 1] == 0.0) --last_;
    }

    double operator[](std::size_t i) const { return masses_[i]; }

    // The mean of values at the points, by four sums, so that none waits for another.
    double mean(const std::vector<double>& values) const {
        double sums[4] = {0.0, 0.0, 0.0, 0.0};
        std::size_t i = first_;
        for (; i + 4 <= last_; i += 4)
            for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += masses_[i + lane] * values[i + lane];
        for (; i < last_; ++i) sums[0] += masses_[i] * values[i];
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }

   private:
    std::span<const double> masses_;
    std::size_t first_ = 0, last_;
};

// The distances of one point, whose coordinates are `stride` apart, to all points of a row, whose coordinates are in
// columns.
inline void distances_to(const double* point, std::size_t stride, const std::vector<double>& columns,
                         std::vector<double>& out) {
    std::fill(out.begin(), out.end(), 0.0);
    for (std::size_t from = 0; from < columns.size(); from += out.size(), point += stride)
        for (std::size_t i = 0; i < out.size(); ++i) {
            const double step = columns[from + i] - *point;
            out[i] += step * step;
        }
    for (double& each : out) each = std::sqrt(each);
}

// Write E|X − y| of each measure, (n, J), and E|X − X'| of each two, (n, J · J), for a range of rows.
inline void mean_distances(const Points& all, std::size_t start, std::size_t stop, Matrix<double> to_target,
                           Matrix<double> to_each_other) {
    const std::size_t m = all.n_points, d = all.y.width, j = all.n_measures;
    std::vector<double> columns(m * d), away(m);
    std::vector<Measure> measures;
    for (std::size_t row = start; row < stop; ++row) {
        const std::span points = all.points[row];
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t dim = 0; dim < d; ++dim) columns[dim * m + i] = points[i * d + dim];
        measures.clear();
        for (std::size_t a = 0; a < j; ++a) measures.emplace_back(all.masses[row].subspan(a * m, m));
        distances_to(all.y[row].data(), 1, columns, away);
        for (std::size_t a = 0; a < j; ++a) to_target[row][a] = measures[a].mean(away);
        const std::span pairs = to_each_other[row];
        std::fill(pairs.begin(), pairs.end(), 0.0);
        for (std::size_t i = 0; i < m; ++i) {
            distances_to(columns.data() + i, m, columns, away);
            for (std::size_t b = 0; b < j; ++b) {
                const double mean = measures[b].mean(away);
                for (std::size_t a = b; a < j; ++a) pairs[a * j + b] += measures[a][i] * mean;
            }
        }
        for (std::size_t a = 0; a < j; ++a)
            for (std::size_t b = a + 1; b < j; ++b) pairs[a * j + b] = pairs[b * j + a];
    }
}

}  // namespace ibug::stack
