// Leaf values of boosted trees, made again from the gradients of the rows in each leaf: of all rows, and without the row
// itself.
//
// With the trees as they are, a leaf's value is -rate · G/(H + l2), where G and H are the sums of its rows' gradients and
// hessians at the raw predictions of the trees before. These are known, for the model's own values are. So rows can be
// taken in any ranges: first the sums over all rows, then for each row the value of its leaf without its own share.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "refit/losses.hpp"

namespace ibug::refit {

inline constexpr std::size_t block_rows = 512;  // their numbers stay in the first-level cache while all trees pass by

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
};

struct Formula {
    const double* rates;  // (n_trees,)
    double l1, l2, max_step;

    double operator()(double gradient, double hessian, std::size_t tree) const {
        if (l1 > 0.0) gradient = std::copysign(std::max(std::abs(gradient) - l1, 0.0), gradient);
        // What rounding leaves of a row's own hessian is none: nothing is known of a leaf that no other row is in.
        const double below = hessian + l2;
        double step = below > 0.0 ? -gradient / below : 0.0;
        if (max_step > 0.0) step = std::clamp(step, -max_step, max_step);
        return rates[tree] * step;
    }
};

// The raw predictions of a block of rows, tree after tree, and the gradients before each of them.
class Block {
   public:
    Block(const Rows& rows, std::size_t start, std::size_t stop, const double* raw)
        : rows_(rows), start_(start), n_(stop - start) {
        std::copy(raw + start, raw + stop, raw_.begin());
    }

    std::size_t size() const { return n_; }
    double gradient(std::size_t i) const { return gradient_[i]; }
    double hessian(std::size_t i) const { return hessian_[i]; }

    template <class Loss>
    void differentiate(const Loss& loss) {
        const double* targets = rows_.targets + start_;
        for (std::size_t i = 0; i < n_; ++i) {
            const Slopes slopes = loss(raw_[i], targets[i]);
            gradient_[i] = slopes.gradient;
            hessian_[i] = slopes.hessian;
        }
        if (rows_.weights == nullptr) return;
        const double* weights = rows_.weights + start_;
        for (std::size_t i = 0; i < n_; ++i) {
            gradient_[i] *= weights[i];
            hessian_[i] *= weights[i];
        }
    }

    template <class Code>
    void add(const Code* codes, const double* values) {
        if (rows_.single) {
            for (std::size_t i = 0; i < n_; ++i)
                raw_[i] = static_cast<float>(raw_[i]) + static_cast<float>(values[codes[i]]);
        } else {
            for (std::size_t i = 0; i < n_; ++i) raw_[i] += values[codes[i]];
        }
    }

    void write(double* raw) const { std::copy(raw_.begin(), raw_.begin() + n_, raw + start_); }

   private:
    Rows rows_;
    std::size_t start_, n_;
    std::array<double, block_rows> raw_, gradient_, hessian_;
};

// Add each leaf's G, H and Σ|g| of the rows from start to stop to `sums`, (n_leaves, 3).
template <class Code, class Loss>
void leaf_sums(const Trees<Code>& trees, const Rows& rows, const Loss& loss, const double* raw, std::size_t start,
               std::size_t stop, double* sums) {
    for (std::size_t from = start; from < stop; from += block_rows) {
        Block block(rows, from, std::min(from + block_rows, stop), raw);
        for (std::size_t tree = 0; tree < trees.n_trees; ++tree) {
            const Code* codes = trees.codes + tree * trees.stride + from;
            double* own = sums + 3 * trees.first[tree];
            block.differentiate(loss);
            for (std::size_t i = 0; i < block.size(); ++i) {
                double* leaf = own + 3 * static_cast<std::size_t>(codes[i]);
                leaf[0] += block.gradient(i);
                leaf[1] += block.hessian(i);
                leaf[2] += std::abs(block.gradient(i));
            }
            block.add(codes, trees.values + trees.first[tree]);
        }
    }
}

// Move the raw predictions of the rows from start to stop on by all trees: `raw` by the model's own values, `left_out` by
// those that the other rows of the leaf give it.
template <class Code, class Loss>
void leave_out(const Trees<Code>& trees, const Rows& rows, const Loss& loss, const Formula& formula, const double* sums,
               std::size_t start, std::size_t stop, double* raw, double* left_out) {
    for (std::size_t from = start; from < stop; from += block_rows) {
        Block block(rows, from, std::min(from + block_rows, stop), raw);
        for (std::size_t tree = 0; tree < trees.n_trees; ++tree) {
            const Code* codes = trees.codes + tree * trees.stride + from;
            const double* own = sums + 3 * trees.first[tree];
            block.differentiate(loss);
            for (std::size_t i = 0; i < block.size(); ++i) {
                const double* leaf = own + 3 * static_cast<std::size_t>(codes[i]);
                const double hessian = leaf[1] - block.hessian(i);
                const bool alone = !(hessian > 1e-9 * leaf[1]);  // but for rounding
                if (!alone) left_out[from + i] += formula(leaf[0] - block.gradient(i), hessian, tree);
            }
            block.add(codes, trees.values + trees.first[tree]);
        }
        block.write(raw);
    }
}

}  // namespace ibug::refit
