// Maximum likelihood for one row: Levenberg–Marquardt steps.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "common/target.hpp"
#include "likelihood/distributions.hpp"

namespace ibug::IBUG_TARGET {
namespace {

constexpr int most_steps = 100;
// The least gain of the mean log likelihood per value. The last step of two parameters squares the error; with a shape,
// ridges are long.
template <class Family>
constexpr double tolerance = Family::n_shapes > 0 ? 1e-12 : 1e-9;
constexpr double most_damping = 1e10;
constexpr double longest_step = 2.0;  // in units of the values' own spread, in logarithms, and in shapes

// Location, log scale, transformed shape.
using Point = std::array<double, 3>;

struct Quadratic {
    double value;
    Point gradient;
    std::array<Point, 3> hessian;
};

// The mean log likelihood of a row's values, with first and second derivatives in all parameters.
template <class Family>
Quadratic expand(const Standardized& row, const Point& at) {
    const Family family(at[2]);
    const double m = at[0], inverse = std::exp(-at[1]);
    double g = 0, g1 = 0, zg1 = 0, g2 = 0, zg2 = 0, zzg2 = 0, gt = 0, g1t = 0, zg1t = 0, gtt = 0;
#pragma omp simd reduction(+ : g, g1, zg1, g2, zg2, zzg2, gt, g1t, zg1t, gtt)
    for (std::size_t i = 0; i < row.k; ++i) {
        const double z = (row.u[i] - m) * inverse;
        const Derivatives d = family.at(z);
        g += d.g, g1 += d.g1, zg1 += z * d.g1, g2 += d.g2, zg2 += z * d.g2, zzg2 += z * z * d.g2;
        if constexpr (Family::n_shapes > 0) gt += d.gt, g1t += d.g1t, zg1t += z * d.g1t, gtt += d.gtt;
    }
    const double n = static_cast<double>(row.k);
    Quadratic q{};
    q.value = g / n - at[1];
    q.gradient = {-g1 * inverse / n, -1.0 - zg1 / n, gt / n};
    q.hessian[0] = {g2 * inverse * inverse / n, (g1 + zg2) * inverse / n, -g1t * inverse / n};
    q.hessian[1] = {q.hessian[0][1], (zg1 + zzg2) / n, -zg1t / n};
    q.hessian[2] = {q.hessian[0][2], q.hessian[1][2], gtt / n};
    return q;
}

// Solves A x = b for the first n unknowns, by elimination with pivots; false where A has no inverse.
template <int n>
bool solve(std::array<Point, 3> a, Point b, Point& x) {
    for (int column = 0; column < n; ++column) {
        int pivot = column;
        for (int i = column + 1; i < n; ++i)
            if (std::fabs(a[i][column]) > std::fabs(a[pivot][column])) pivot = i;
        std::swap(a[column], a[pivot]);
        std::swap(b[column], b[pivot]);
        if (!(std::fabs(a[column][column]) > 0)) return false;
        for (int i = column + 1; i < n; ++i) {
            const double factor = a[i][column] / a[column][column];
            for (int j = column; j < n; ++j) a[i][j] -= factor * a[column][j];
            b[i] -= factor * b[column];
        }
    }
    for (int i = n; i-- > 0;) {
        x[i] = b[i];
        for (int j = i + 1; j < n; ++j) x[i] -= a[i][j] * x[j];
        x[i] /= a[i][i];
    }
    return true;
}

struct Maximum {
    Point at;
    double value;
};

// Never less likely than the start.
template <class Family>
Maximum maximize(const Standardized& row, Point start, double least_gain = tolerance<Family>) {
    constexpr int n = 2 + Family::n_shapes;
    constexpr Point lowest = {-1e300, -13.815510557964274, Family::lowest};  // log 1e-6
    constexpr Point highest = {1e300, 6.9077552789821368, Family::highest};  // log 1e3
    for (int i = 0; i < n; ++i) start[i] = std::clamp(start[i], lowest[i], highest[i]);
    Maximum best{start, 0};
    Quadratic q = expand<Family>(row, start);
    double damping = Family::n_shapes > 0 ? 1e-3 : 1e-8;  // without a shape the likelihood is all but concave
    for (int step = 0; step < most_steps; ++step) {
        // Where the Hessian is not negative definite, damping by its own diagonal turns the step towards the gradient.
        std::array<Point, 3> matrix = q.hessian;
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) matrix[i][j] = -q.hessian[i][j];
            matrix[i][i] += damping * (std::fabs(q.hessian[i][i]) + 1e-12);
        }
        Point move{}, proposed = best.at;
        Quadratic next{};
        bool better = false;
        if (solve<n>(matrix, q.gradient, move)) {
            if constexpr (Family::n_shapes == 0) {
                // A step that gains next to nothing by the quadratic is taken without looking where it leads.
                const double gain = 0.5 * (move[0] * q.gradient[0] + move[1] * q.gradient[1]);
                if (step > 0 && damping < 1e-3 && gain >= 0 && gain <= least_gain) {
                    for (int i = 0; i < n; ++i) best.at[i] = std::clamp(best.at[i] + move[i], lowest[i], highest[i]);
                    break;
                }
            }
            for (int i = 0; i < n; ++i)
                proposed[i] =
                    std::clamp(best.at[i] + std::clamp(move[i], -longest_step, longest_step), lowest[i], highest[i]);
            next = expand<Family>(row, proposed);
            better = next.value > q.value;
        }
        if (better) {
            const double gain = next.value - q.value;
            best.at = proposed;
            q = next;
            damping /= 10;
            if (gain <= least_gain) break;
        } else {
            damping *= 10;
            if (damping >= most_damping) break;
        }
    }
    best.value = q.value;
    return best;
}

// The transformed shape of highest likelihood for a row of mean 0 and variance 1: the best of a grid, refined by golden
// sections between its neighbours.
template <class Family>
double best_shape(const Standardized& row) {
    const auto likelihood = [&row](double t) {
        const Family family(t);
        const double scale = 1.0 / std::sqrt(family.variance()), inverse = 1.0 / scale, loc = -scale * family.mean();
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::size_t i = 0; i < row.k; ++i) sum += family.log_density((row.u[i] - loc) * inverse);
        return sum / static_cast<double>(row.k) - std::log(scale);
    };
    constexpr double from = Family::lowest_with_variance, to = Family::highest_with_variance,
                     width = (to - from) / (Family::grid_points - 1);
    double best = from, best_value = likelihood(from);
    for (int i = 1; i < Family::grid_points; ++i) {
        const double t = from + i * width, value = likelihood(t);
        if (value > best_value) best = t, best_value = value;
    }
    constexpr double golden = 0.61803398874989485;
    double low = std::max(best - width, from), high = std::min(best + width, to);
    double left = high - golden * (high - low), right = low + golden * (high - low);
    double at_left = likelihood(left), at_right = likelihood(right);
    while (high - low > 1e-8) {
        if (at_left > at_right) {
            high = right, right = left, at_right = at_left;
            left = high - golden * (high - low), at_left = likelihood(left);
        } else {
            low = left, left = right, at_left = at_right;
            right = low + golden * (high - low), at_right = likelihood(right);
        }
    }
    const double middle = (low + high) / 2;
    return likelihood(middle) >= best_value ? middle : best;
}

}  // namespace
}  // namespace ibug::IBUG_TARGET
