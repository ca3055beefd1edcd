// Leaf values of boosted trees, made again from the gradients of the rows in each leaf: of all rows, and without the
// row itself.
//
// With the trees as they are, a leaf's value is -rate · G/(H + l2), where G and H are the sums of its rows' gradients
// and hessians at the raw predictions of the trees before. These are known, for the model's own values are. So rows can
// be taken in any ranges: first the sums over all rows, then for each row the value of its leaf without its own share.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "refit/losses.hpp"

namespace ibug::refit {

inline constexpr std::size_t block_rows = 512;  // their raw predictions stay in the first-level cache, tree by tree

// Rows beside each other are often in the same leaf. They add to different sums, so that none waits for the one before.
inline constexpr std::size_t lanes = 4;

// Some trees, one after another, and the leaves of all rows in them.
template <class Code>
struct Trees {
    const Code* codes;  // (n_trees, stride): the leaf of each row, numbered from 0 on in each tree
    std::size_t stride, n_trees;
    const std::int64_t* first;  // (n_trees + 1,): where each tree's leaves begin
    const double* values;       // (n_leaves,): the model's own
};

struct Rows {
    const double* targets;  // (n,)
    const double* weights;  // (n,), or null
    bool single;            // raw predictions are added in single precision

    template <class Loss>
    Slopes slopes(const Loss& loss, double raw, std::size_t row) const {
        Slopes found = loss(raw, targets[row]);
        if (weights != nullptr) {
            found.gradient *= weights[row];
            found.hessian *= weights[row];
        }
        return found;
    }

    double sum(double raw, double value) const {
        return single ? static_cast<float>(raw) + static_cast<float>(value) : raw + value;
    }
};

struct Formula {
    const double* rates;  // (n_trees,)
    double l1, l2, max_step;

    // Return the value of a leaf with these sums; nothing is known of a leaf without rows.
    double operator()(double gradient, double hessian, std::size_t tree) const {
        if (l1 > 0.0) gradient = std::copysign(std::max(std::abs(gradient) - l1, 0.0), gradient);
        const double below = hessian + l2;
        double step = below > 0.0 ? -gradient / below : 0.0;
        if (max_step > 0.0) step = std::clamp(step, -max_step, max_step);
        return rates[tree] * step;
    }

    bool is_linear() const { return !(l1 > 0.0) && !(max_step > 0.0); }
};

// Tell whether a row was alone in its leaf: its hessian was all there was, but for rounding.
inline bool was_alone(double hessian, double own) { return !(hessian - own > 1e-9 * hessian); }

// Add each leaf's G and H of the rows from start to stop to `sums`, (n_leaves, lanes, 2), and Σ|g| and Σh of each tree
// to `sizes`, (n_trees, 2).
template <class Code, class Loss>
void leaf_sums(const Trees<Code>& trees, const Rows& rows, const Loss& loss, const double* raw, std::size_t start,
               std::size_t stop, double* sums, double* sizes) {
    std::array<double, block_rows> current;
    for (std::size_t from = start; from < stop; from += block_rows) {
        const std::size_t n = std::min(block_rows, stop - from);
        std::copy(raw + from, raw + from + n, current.begin());
        for (std::size_t tree = 0; tree < trees.n_trees; ++tree) {
            const Code* codes = trees.codes + tree * trees.stride + from;
            const double* values = trees.values + trees.first[tree];
            double* own = sums + 2 * lanes * trees.first[tree];
            std::array<double, lanes> gradients{}, hessians{};
            for (std::size_t i = 0; i < n; ++i) {
                const std::size_t code = codes[i], lane = i % lanes;
                const Slopes slopes = rows.slopes(loss, current[i], from + i);
                double* leaf = own + 2 * (lanes * code + lane);
                leaf[0] += slopes.gradient;
                leaf[1] += slopes.hessian;
                gradients[lane] += std::abs(slopes.gradient);
                hessians[lane] += slopes.hessian;
                current[i] = rows.sum(current[i], values[code]);
            }
            for (std::size_t lane = 0; lane < lanes; ++lane) {
                sizes[2 * tree] += gradients[lane];
                sizes[2 * tree + 1] += hessians[lane];
            }
        }
    }
}

// Move the raw predictions of the rows from start to stop on by all trees: `raw` by the model's own values, `left_out`
// by those that the other rows of the leaf give it. `sums` are the G and H of each leaf, (n_leaves, 2).
template <class Code, class Loss>
void leave_out(const Trees<Code>& trees, const Rows& rows, const Loss& loss, const Formula& formula, const double* sums,
               std::size_t start, std::size_t stop, double* raw, double* left_out) {
    for (std::size_t from = start; from < stop; from += block_rows) {
        const std::size_t last = std::min(from + block_rows, stop);
        for (std::size_t tree = 0; tree < trees.n_trees; ++tree) {
            const Code* codes = trees.codes + tree * trees.stride;
            const double* values = trees.values + trees.first[tree];
            const double* own = sums + 2 * trees.first[tree];
            for (std::size_t row = from; row < last; ++row) {
                const std::size_t code = codes[row];
                const Slopes slopes = rows.slopes(loss, raw[row], row);
                const double hessian = own[2 * code + 1];
                if (!was_alone(hessian, slopes.hessian))
                    left_out[row] += formula(own[2 * code] - slopes.gradient, hessian - slopes.hessian, tree);
                raw[row] = rows.sum(raw[row], values[code]);
            }
        }
    }
}

// The same where all hessians are 1 and nothing is cut off: without a row of gradient g a leaf has the value a + b · g.
template <class Code, class Loss>
void leave_out_linear(const Trees<Code>& trees, const Rows& rows, const Loss& loss, const Formula& formula,
                      const double* sums, std::size_t start, std::size_t stop, double* raw, double* left_out) {
    struct Leaf {
        double value, a, b;
    };
    std::vector<Leaf> leaves(static_cast<std::size_t>(trees.first[trees.n_trees]));
    for (std::size_t tree = 0; tree < trees.n_trees; ++tree) {
        for (std::int64_t leaf = trees.first[tree]; leaf < trees.first[tree + 1]; ++leaf) {
            const double gradient = sums[2 * leaf], hessian = sums[2 * leaf + 1];
            const double slope = was_alone(hessian, 1.0) ? 0.0 : formula.rates[tree] / (hessian - 1.0 + formula.l2);
            leaves[static_cast<std::size_t>(leaf)] = {trees.values[leaf], -gradient * slope, slope};
        }
    }
    for (std::size_t from = start; from < stop; from += block_rows) {
        const std::size_t last = std::min(from + block_rows, stop);
        for (std::size_t tree = 0; tree < trees.n_trees; ++tree) {
            const Code* codes = trees.codes + tree * trees.stride;
            const Leaf* own = leaves.data() + trees.first[tree];
            for (std::size_t row = from; row < last; ++row) {
                const Leaf& leaf = own[codes[row]];
                left_out[row] += leaf.a + leaf.b * loss(raw[row], rows.targets[row]).gradient;
                raw[row] = rows.sum(raw[row], leaf.value);
            }
        }
    }
}

}  // namespace ibug::refit
