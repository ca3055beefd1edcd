// Leaf values of boosted trees, made again from the gradients of the rows in each leaf: of all rows, and without the
// row itself.
//
// With the trees as they are, a leaf's value is -rate · G/(H + l2), where G and H are the sums of its rows' gradients
// and hessians at the raw predictions of the trees before. These are known, for the model's own values are; l2 may be
// another one in each leaf. So rows can be taken in any ranges: first the sums over all rows, then for each row the
// value of its leaf without its own share.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/matrix.hpp"
#include "refit/losses.hpp"

namespace ibug::refit {

inline constexpr std::size_t block_rows = 512;  // their raw predictions stay in the first-level cache, tree by tree

// Rows beside each other are often in the same leaf. They add to different sums, so that none waits for the one before.
inline constexpr std::size_t lanes = 4;

// Some trees, one after another, and the leaves of all rows in them.
template <class Code>
struct Trees {
    Matrix<const Code> codes;             // (n_trees, at least n_rows): the leaf of each row, from 0 on in each tree
    std::span<const std::int64_t> first;  // (n_trees + 1,): where each tree's leaves begin
    std::span<const double> values;       // (n_leaves,): the model's own

    std::size_t n_trees() const { return codes.n_rows; }
};

struct Rows {
    std::span<const double> targets;  // (n,)
    Matrix<const double> weights;     // (n_trees, n), or (1, n) for all trees, or none; 0 for a row a tree has not seen
    bool single;                      // raw predictions are added in single precision

    // Return the weights of the rows in a tree, (n,), or none.
    std::span<const double> weights_in(std::size_t tree) const {
        return weights.n_rows == 0 ? std::span<const double>() : weights[weights.n_rows == 1 ? 0 : tree];
    }

    template <class Loss>
    Slopes slopes(const Loss& loss, std::span<const double> own, double raw, std::size_t row) const {
        Slopes found = loss(raw, targets[row]);
        if (!own.empty()) {
            found.gradient *= own[row];
            found.hessian *= own[row];
        }
        return found;
    }

    double sum(double raw, double value) const {
        return single ? static_cast<float>(raw) + static_cast<float>(value) : raw + value;
    }
};

struct Formula {
    std::span<const double> rates;  // (n_trees,)
    std::span<const double> l2;     // (n_leaves,)
    double l1, max_step;

    // Return the value of a leaf with these sums; nothing is known of a leaf without rows.
    double operator()(double gradient, double hessian, std::size_t tree, std::size_t leaf) const {
        if (l1 > 0.0) gradient = std::copysign(std::max(std::abs(gradient) - l1, 0.0), gradient);
        const double below = hessian + l2[leaf];
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
void leaf_sums(const Trees<Code>& trees, const Rows& rows, const Loss& loss, std::span<const double> raw,
               std::size_t start, std::size_t stop, double* sums, Matrix<double> sizes) {
    std::array<double, block_rows> current;
    for (std::size_t from = start; from < stop; from += block_rows) {
        const std::size_t n = std::min(block_rows, stop - from);
        std::copy_n(raw.begin() + static_cast<std::ptrdiff_t>(from), n, current.begin());
        for (std::size_t tree = 0; tree < trees.n_trees(); ++tree) {
            const Code* codes = trees.codes[tree].data() + from;
            const double* values = trees.values.data() + trees.first[tree];
            double* own = sums + 2 * lanes * trees.first[tree];
            const auto weights = rows.weights_in(tree);
            std::array<double, lanes> gradients{}, hessians{};
            for (std::size_t i = 0; i < n; ++i) {
                const std::size_t code = codes[i], lane = i % lanes;
                const Slopes slopes = rows.slopes(loss, weights, current[i], from + i);
                double* leaf = own + 2 * (lanes * code + lane);
                leaf[0] += slopes.gradient;
                leaf[1] += slopes.hessian;
                gradients[lane] += std::abs(slopes.gradient);
                hessians[lane] += slopes.hessian;
                current[i] = rows.sum(current[i], values[code]);
            }
            for (std::size_t lane = 0; lane < lanes; ++lane) {
                sizes[tree][0] += gradients[lane];
                sizes[tree][1] += hessians[lane];
            }
        }
    }
}

// Move the raw predictions of the rows from start to stop on by all trees: `raw` by the model's own values, `left_out`
// by those that the other rows of the leaf give it. `sums` are the G and H of each leaf, (n_leaves, 2).
template <class Code, class Loss>
void leave_out(const Trees<Code>& trees, const Rows& rows, const Loss& loss, const Formula& formula,
               Matrix<const double> sums, std::size_t start, std::size_t stop, std::span<double> raw,
               std::span<double> left_out) {
    for (std::size_t from = start; from < stop; from += block_rows) {
        const std::size_t last = std::min(from + block_rows, stop);
        for (std::size_t tree = 0; tree < trees.n_trees(); ++tree) {
            const Code* codes = trees.codes[tree].data();
            const double* values = trees.values.data() + trees.first[tree];
            const auto first = static_cast<std::size_t>(trees.first[tree]);
            const auto weights = rows.weights_in(tree);
            for (std::size_t row = from; row < last; ++row) {
                const std::size_t code = codes[row], leaf = first + code;
                const Slopes slopes = rows.slopes(loss, weights, raw[row], row);
                const double gradient = sums[leaf][0], hessian = sums[leaf][1];
                if (!was_alone(hessian, slopes.hessian))
                    left_out[row] += formula(gradient - slopes.gradient, hessian - slopes.hessian, tree, leaf);
                raw[row] = rows.sum(raw[row], values[code]);
            }
        }
    }
}

// The same where all hessians are 1 and nothing is cut off: without a row of gradient g a leaf has the value a + b · g.
template <class Code, class Loss>
void leave_out_linear(const Trees<Code>& trees, const Rows& rows, const Loss& loss, const Formula& formula,
                      Matrix<const double> sums, std::size_t start, std::size_t stop, std::span<double> raw,
                      std::span<double> left_out) {
    struct Leaf {
        double value, a, b;
    };
    std::vector<Leaf> leaves(static_cast<std::size_t>(trees.first.back()));
    for (std::size_t tree = 0; tree < trees.n_trees(); ++tree) {
        for (auto leaf = static_cast<std::size_t>(trees.first[tree]); std::cmp_less(leaf, trees.first[tree + 1]);
             ++leaf) {
            const double gradient = sums[leaf][0], hessian = sums[leaf][1];
            const double slope =
                was_alone(hessian, 1.0) ? 0.0 : formula.rates[tree] / (hessian - 1.0 + formula.l2[leaf]);
            leaves[leaf] = {trees.values[leaf], -gradient * slope, slope};
        }
    }
    for (std::size_t from = start; from < stop; from += block_rows) {
        const std::size_t last = std::min(from + block_rows, stop);
        for (std::size_t tree = 0; tree < trees.n_trees(); ++tree) {
            const Code* codes = trees.codes[tree].data();
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
