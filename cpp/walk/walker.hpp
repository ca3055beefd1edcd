// The walk of rows down the trees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "common/target.hpp"
#include "walk/blocks.hpp"
#include "walk/forest.hpp"
#include "walk/walk.hpp"

namespace ibug::IBUG_TARGET {
namespace {

// Up to this many rows are walked down one by one, many trees at a time.
constexpr std::size_t few_rows = 4;
// What is walked down at the same time: rows in one tree, or trees for one row.
constexpr std::size_t rows_abreast = 8, trees_abreast = 16;

// ranks[r] = the number of thresholds below x[r], for a block of rows at once, without branches.
inline void rank(const double* __restrict x, const double* __restrict thresholds, std::size_t n,
                 std::uint32_t* __restrict ranks) {
    std::fill_n(ranks, block_rows, 0u);
    while (n > 1) {
        const auto half = static_cast<std::uint32_t>(n / 2);
        for (std::size_t r = 0; r < block_rows; ++r)
            ranks[r] += (0u - static_cast<std::uint32_t>(thresholds[ranks[r] + half - 1] < x[r])) & half;
        n -= half;
    }
    for (std::size_t r = 0; r < block_rows; ++r) ranks[r] += thresholds[ranks[r]] < x[r];
}

inline std::uint32_t rank(double x, const double* thresholds, std::size_t n) {
    return static_cast<std::uint32_t>(std::lower_bound(thresholds, thresholds + n, x) - thresholds);
}

// One thread's work on a forest: a block of rows as ranks, and its leaves.
template <class Code>
class Walker {
   public:
    // memory: walk_memory(forest) bytes, zero before the first walk.
    Walker(const Forest& forest, const ChosenTrees& chosen, const RowsView& rows, std::int32_t* leaves, double* sums,
           void* memory)
        : forest_(forest), chosen_(chosen), rows_(rows), leaves_(leaves), sums_(sums) {
        constexpr std::size_t slot = slot_bytes / sizeof(Code);
        const auto address = reinterpret_cast<std::uintptr_t>(memory);
        const std::size_t skipped = (slot_bytes - address % slot_bytes) % slot_bytes;  // to a cache line
        slots_ = reinterpret_cast<Code*>(static_cast<unsigned char*>(memory) + skipped);
        numbers_ = slots_ + most_results * block_rows;
        reached_ = numbers_ + forest.n_numbers * slot;
        ranks_ = reached_ + tree_group * block_rows;
    }

    bool block(std::size_t start, std::size_t stop) {
        first_ = start;
        n_ = stop - start;
        if (n_ > few_rows) fill_numbers();
        if (forest_.reading.refuse_infinite && !all_finite()) return false;
        rank_rows();
        if (forest_.reading.single_sums)
            all_trees<float>();
        else
            all_trees<double>();
        return true;
    }

   private:
    double value(std::size_t row, std::size_t feature) const {
        const std::size_t at = row * rows_.n_features + feature;
        const double x = rows_.floats ? static_cast<double>(rows_.floats[at]) : rows_.doubles[at];
        return forest_.reading.single ? static_cast<double>(static_cast<float>(x)) : x;
    }

    // A slot for each number of a leaf, made when the first block of many rows comes.
    void fill_numbers() {
        constexpr std::size_t slot = slot_bytes / sizeof(Code);
        if (numbers_filled_) return;
        for (std::size_t i = 0; i < forest_.n_numbers; ++i)
            std::fill_n(numbers_ + i * slot, slot, static_cast<Code>(i));
        numbers_filled_ = true;
    }

    template <class Sum>
    void all_trees() {
        alignas(64) Sum sums[block_rows];
        std::fill_n(sums, n_, static_cast<Sum>(forest_.reading.start));
        for (std::size_t t = 0; t < chosen_.n; t += tree_group) {
            const std::size_t end = std::min(t + tree_group, chosen_.n);
            reach(t, end);
            const double* values[tree_group];
            for (std::size_t i = t; i < end; ++i) values[i - t] = forest_.values.data() + tree_at(i).first_value;
            std::size_t r = 0;
            for (; r + 8 <= n_; r += 8) add_values(values, reached_ + r, end - t, sums + r);
            for (; r < n_; ++r)
                for (std::size_t i = 0; i < end - t; ++i)
                    sums[r] += static_cast<Sum>(values[i][reached_[i * block_rows + r]]);
            write(t, end);
        }
        for (std::size_t r = 0; r < n_; ++r) sums_[first_ + r] = static_cast<double>(sums[r]);
    }

    bool all_finite() const {
        for (std::size_t r = 0; r < n_; ++r)
            for (std::size_t f = 0; f < rows_.n_features; ++f)
                if (std::isinf(value(first_ + r, f))) return false;
        return true;
    }

    void rank_rows() {
        for (const Feature& feature : forest_.features) {
            Code* ranks = ranks_ + feature.first_column * block_rows;
            if (feature.categorical)
                rank_categories(feature, ranks);
            else
                rank_values(feature, ranks);
        }
    }

    void rank_values(const Feature& feature, Code* out) {
        const double* thresholds = forest_.thresholds.data() + feature.first_threshold;
        alignas(64) double x[block_rows] = {};
        alignas(64) std::uint32_t ranks[block_rows];
        for (std::size_t r = 0; r < n_; ++r) x[r] = read(r, feature.index);
        if (n_ > few_rows)
            rank(x, thresholds, feature.n_thresholds, ranks);
        else
            for (std::size_t r = 0; r < n_; ++r) ranks[r] = rank(x[r], thresholds, feature.n_thresholds);
        for (std::size_t c = 0; c < feature.n_columns; ++c, out += block_rows) {
            const Column& column = forest_.columns[feature.first_column + c];
            const auto nan_rank = static_cast<Code>(column.nan_rank), zero_rank = static_cast<Code>(column.zero_rank);
            for (std::size_t r = 0; r < n_; ++r) out[r] = std::isnan(x[r]) ? nan_rank : static_cast<Code>(ranks[r]);
            if (column.has_zero_rank)
                for (std::size_t r = 0; r < n_; ++r) out[r] = std::abs(x[r]) <= zero_threshold ? zero_rank : out[r];
        }
    }

    void rank_categories(const Feature& feature, Code* ranks) {
        const std::size_t others = feature.n_thresholds;
        for (std::size_t r = 0; r < n_; ++r) {
            const double x = read(r, feature.index);
            const bool known = (forest_.reading.truncated ? x > -1.0 : x >= 0.0) && x < static_cast<double>(others);
            const std::size_t rank = known ? static_cast<std::size_t>(std::max(x, 0.0)) : others;
            ranks[r] = static_cast<Code>(std::isnan(x) ? others + 1 : rank);
        }
    }

    // A value as the trees see it: NaN if it is missing.
    double read(std::size_t r, std::size_t feature) const {
        const double x = value(first_ + r, feature);
        if (x == forest_.reading.missing) return std::numeric_limits<double>::quiet_NaN();
        return forest_.reading.tiny_is_zero && std::abs(x) <= zero_threshold ? 0.0 : x;
    }

    // Finds the leaves of all rows of the block in the trees from t to end.
    void reach(std::size_t t, std::size_t end) {
        if (n_ <= few_rows && !forest_.oblivious) {
            for (std::size_t i = t; i < end; i += trees_abreast)
                for (std::size_t r = 0; r < n_; ++r)
                    trees_down(i, std::min(i + trees_abreast, end), reached_ + (i - t) * block_rows, r);
            return;
        }
        for (std::size_t i = t; i < end; ++i) {
            const Tree& tree = tree_at(i);
            Code* leaf = reached_ + (i - t) * block_rows;
            if (forest_.oblivious)
                levels(tree, leaf);
            else if (tree.evaluated)
                steps(tree, leaf);
            else
                rows_down(tree, leaf);
        }
    }

    void levels(const Tree& tree, Code* leaf) {
        const Step* step = forest_.steps.data() + tree.first_step;
        if (n_ <= few_rows) {
            for (std::size_t r = 0; r < n_; ++r) {
                std::size_t bits = 0;
                for (std::size_t l = 0; l < tree.n_steps; ++l)
                    bits |= std::size_t{ranks_[step[l].column * block_rows + r] > step[l].threshold} << l;
                leaf[r] = static_cast<Code>(bits);
            }
            return;
        }
        std::memset(leaf, 0, block_rows * sizeof(Code));
        for (std::size_t l = 0; l < tree.n_steps; ++l)
            set_bit<Code>(ranks_ + step[l].column * block_rows, static_cast<Code>(step[l].threshold),
                          static_cast<Code>(std::size_t{1} << l), leaf);
    }

    void steps(const Tree& tree, Code* leaf) {
        constexpr std::size_t slot = slot_bytes / sizeof(Code);
        if (tree.n_steps == 0) {
            std::fill_n(leaf, block_rows, static_cast<Code>(tree.only_leaf));
            return;
        }
        const Step* step = forest_.steps.data() + tree.first_step;
        const Step* last = step + tree.n_steps - 1;
        for (; step < last; ++step) evaluate_step(*step, slots_ + step->dst * slot);
        evaluate_step(*last, leaf);
    }

    void evaluate_step(const Step& step, Code* out) {
        constexpr std::size_t slot = slot_bytes / sizeof(Code);
        const Code* ranks = ranks_ + step.column * block_rows;
        const Reached<Code> a{slots_ + step.a * slot, step.a_stride * slot},
            b{slots_ + step.b * slot, step.b_stride * slot};
        if (step.categorical)
            evaluate_categorical<Code>(forest_, ranks, step.threshold, a, b, out);
        else
            evaluate<Code>(ranks, static_cast<Code>(step.threshold), a, b, out);
    }

    // One step down for each of several (tree, row) pairs at once, so that the processor waits for none of them alone.
    template <bool categorical, std::size_t lanes>
    void down(const DownNode* const* nodes, const Code* const* ranks, const std::int32_t* n_inner,
              std::int32_t* at) const {
        for (bool moving = true; moving;) {
            moving = false;
            for (std::size_t i = 0; i < lanes; ++i) {
                const DownNode& node = nodes[i][at[i]];
                const Code rank = ranks[i][node.column * block_rows];
                bool right = rank > node.threshold;
                if constexpr (categorical)
                    if (at[i] < n_inner[i] && forest_.columns[node.column].categorical)
                        right = !forest_.goes_left(node.threshold, rank);
                at[i] = node.child[right];
                moving |= at[i] < n_inner[i];
            }
        }
    }

    void rows_down(const Tree& tree, Code* leaf) {
        const DownNode* nodes[rows_abreast];
        const Code* ranks[rows_abreast];
        std::int32_t n_inner[rows_abreast], at[rows_abreast];
        for (std::size_t i = 0; i < rows_abreast; ++i) {
            nodes[i] = forest_.down.data() + tree.first_down;
            n_inner[i] = tree.n_inner;
        }
        for (std::size_t r = 0; r < n_; r += rows_abreast) {  // beyond the last row there is memory, with ranks of old
            for (std::size_t i = 0; i < rows_abreast; ++i) {
                ranks[i] = ranks_ + r + i;
                at[i] = 0;
            }
            if (tree.categorical)
                down<true, rows_abreast>(nodes, ranks, n_inner, at);
            else
                down<false, rows_abreast>(nodes, ranks, n_inner, at);
            for (std::size_t i = 0; i < rows_abreast; ++i) leaf[r + i] = static_cast<Code>(nodes[i][at[i]].threshold);
        }
    }

    void trees_down(std::size_t t, std::size_t end, Code* reached, std::size_t r) {
        const DownNode* nodes[trees_abreast];
        const Code* ranks[trees_abreast];
        std::int32_t n_inner[trees_abreast], at[trees_abreast];
        bool categorical = false;
        for (std::size_t i = 0; i < trees_abreast; ++i) {
            const Tree& tree = tree_at(std::min(t + i, end - 1));
            nodes[i] = forest_.down.data() + tree.first_down;
            ranks[i] = ranks_ + r;
            n_inner[i] = tree.n_inner;
            at[i] = 0;
            categorical |= tree.categorical;
        }
        if (categorical)
            down<true, trees_abreast>(nodes, ranks, n_inner, at);
        else
            down<false, trees_abreast>(nodes, ranks, n_inner, at);
        for (std::size_t i = 0; i < end - t; ++i)
            reached[i * block_rows + r] = static_cast<Code>(nodes[i][at[i]].threshold);
    }

    // Writes the numbers of the reached leaves to their rows.
    void write(std::size_t t, std::size_t end) {
        const std::size_t n_trees = chosen_.n;
        std::int32_t* out = leaves_ + first_ * n_trees + t;
        std::size_t r = 0;
        for (; r + 16 <= n_; r += 16) {
            std::size_t i = 0;
            for (; i + 16 <= end - t; i += 16)
                transpose<Code>(reached_ + i * block_rows + r, block_rows, out + r * n_trees + i, n_trees);
            write_singly(out, i, end - t, r, r + 16);
        }
        write_singly(out, 0, end - t, r, n_);
    }

    void write_singly(std::int32_t* out, std::size_t first_tree, std::size_t last_tree, std::size_t first_row,
                      std::size_t last_row) {
        for (std::size_t r = first_row; r < last_row; ++r)
            for (std::size_t i = first_tree; i < last_tree; ++i)
                out[r * chosen_.n + i] = static_cast<std::int32_t>(reached_[i * block_rows + r]);
    }

    const Tree& tree_at(std::size_t i) const {
        return forest_.trees[chosen_.numbers ? static_cast<std::size_t>(chosen_.numbers[i]) : i];
    }

    const Forest& forest_;
    const ChosenTrees& chosen_;
    const RowsView& rows_;
    std::int32_t* leaves_;
    double* sums_;
    Code *slots_, *numbers_, *reached_, *ranks_;  // in the memory given
    bool numbers_filled_ = false;
    std::size_t first_ = 0, n_ = 0;
};

}  // namespace
}  // namespace ibug::IBUG_TARGET
