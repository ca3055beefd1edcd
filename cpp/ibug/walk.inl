// The body of the tree walk, included by one source file per instruction set, which defines before it:
//   IBUG_WALK_SET      the name of the WalkSet object
//   IBUG_SET_NAME      its name for people
//   IBUG_VECTOR_BYTES  the width of a vector register
// Everything here is in an unnamed namespace: code compiled for one instruction set must never be linked into another.
#include <cstring>
#include <memory>

#include "walk.hpp"

#ifdef IBUG_X86
#include <immintrin.h>
#endif

namespace ibug {
namespace {

// Rows that pass the trees together. Their ranks stay in the first-level cache.
inline constexpr std::size_t block_rows = 128;
// Trees whose leaves are written together, so that each row's part of the output is a cache line.
inline constexpr std::size_t tree_group = 16;
// Up to this many rows are walked down one by one, many trees at a time.
inline constexpr std::size_t few_rows = 4;
inline constexpr std::size_t lanes_down = 8;

#if defined(__GNUC__) || defined(__clang__)

template <class Code>
struct VectorOf {
    typedef Code type __attribute__((vector_size(IBUG_VECTOR_BYTES)));
};

template <class Code>
inline typename VectorOf<Code>::type select(typename VectorOf<Code>::type ranks, Code threshold,
                                            typename VectorOf<Code>::type left, typename VectorOf<Code>::type right) {
    return ranks <= threshold ? left : right;
}

#ifdef __AVX512BW__
template <>
inline VectorOf<std::uint8_t>::type select<std::uint8_t>(VectorOf<std::uint8_t>::type ranks, std::uint8_t threshold,
                                                         VectorOf<std::uint8_t>::type left,
                                                         VectorOf<std::uint8_t>::type right) {
    const __mmask64 goes_right = _mm512_cmpgt_epu8_mask((__m512i)ranks, _mm512_set1_epi8(static_cast<char>(threshold)));
    return (VectorOf<std::uint8_t>::type)_mm512_mask_mov_epi8((__m512i)left, goes_right, (__m512i)right);
}
template <>
inline VectorOf<std::uint16_t>::type select<std::uint16_t>(VectorOf<std::uint16_t>::type ranks, std::uint16_t threshold,
                                                           VectorOf<std::uint16_t>::type left,
                                                           VectorOf<std::uint16_t>::type right) {
    const __mmask32 goes_right =
        _mm512_cmpgt_epu16_mask((__m512i)ranks, _mm512_set1_epi16(static_cast<short>(threshold)));
    return (VectorOf<std::uint16_t>::type)_mm512_mask_mov_epi16((__m512i)left, goes_right, (__m512i)right);
}
#endif

// out = ranks <= threshold ? left : right + n_left, for a block of rows; out may be left or right.
template <class Code>
inline void evaluate(const Code* ranks, Code threshold, Code n_left, const Code* left, const Code* right, Code* out) {
    using Vector = typename VectorOf<Code>::type;
    constexpr std::size_t lanes = sizeof(Vector) / sizeof(Code);
    for (std::size_t r = 0; r < block_rows; r += lanes) {
        Vector x, a, b;
        std::memcpy(&x, ranks + r, sizeof(Vector));
        std::memcpy(&a, left + r, sizeof(Vector));
        std::memcpy(&b, right + r, sizeof(Vector));
        a = select<Code>(x, threshold, a, b + n_left);
        std::memcpy(out + r, &a, sizeof(Vector));
    }
}

// leaf += bit where ranks > threshold, for a block of rows.
template <class Code>
inline void set_bit(const Code* ranks, Code threshold, Code bit, Code* leaf) {
    using Vector = typename VectorOf<Code>::type;
    constexpr std::size_t lanes = sizeof(Vector) / sizeof(Code);
    for (std::size_t r = 0; r < block_rows; r += lanes) {
        Vector x, a;
        std::memcpy(&x, ranks + r, sizeof(Vector));
        std::memcpy(&a, leaf + r, sizeof(Vector));
        a = select<Code>(x, threshold, a, a + bit);
        std::memcpy(leaf + r, &a, sizeof(Vector));
    }
}

#else  // a compiler without vector types: loops that it can vectorise by itself

template <class Code>
inline void evaluate(const Code* ranks, Code threshold, Code n_left, const Code* left, const Code* right, Code* out) {
    for (std::size_t r = 0; r < block_rows; ++r)
        out[r] = ranks[r] <= threshold ? left[r] : static_cast<Code>(right[r] + n_left);
}

template <class Code>
inline void set_bit(const Code* ranks, Code threshold, Code bit, Code* leaf) {
    for (std::size_t r = 0; r < block_rows; ++r) leaf[r] = static_cast<Code>(leaf[r] + (ranks[r] > threshold ? bit : 0));
}

#endif

template <class Code>
inline void evaluate_categorical(const Forest& forest, const Code* ranks, std::size_t set, Code n_left, const Code* left,
                                 const Code* right, Code* out) {
    for (std::size_t r = 0; r < block_rows; ++r)
        out[r] = forest.goes_left(set, ranks[r]) ? left[r] : static_cast<Code>(right[r] + n_left);
}

// The number of thresholds below x, without a branch that could be mispredicted.
inline std::size_t rank_of(double x, const double* thresholds, std::size_t n) {
    const double* base = thresholds;
    while (n > 1) {
        const std::size_t half = n / 2;
        base += base[half - 1] < x ? half : 0;
        n -= half;
    }
    return static_cast<std::size_t>(base - thresholds) + (*base < x);
}

// One thread's work on a forest: a block of rows as ranks, and its leaves.
template <class Code>
class Walker {
   public:
    Walker(const Forest& forest, const RowsView& rows, std::int32_t* leaves, double* sums)
        : forest_(forest), rows_(rows), leaves_(leaves), sums_(sums) {
        const std::size_t n_codes = (std::max<std::size_t>(forest.columns.size(), 1) + forest.n_slots + tree_group) * block_rows;
        memory_ = std::make_unique<Code[]>(n_codes + 64 / sizeof(Code));
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
        slots_ = memory_.get() + (64 - address % 64) % 64 / sizeof(Code);  // on a cache line; slot 0 stays zero
        reached_ = slots_ + forest.n_slots * block_rows;
        ranks_ = reached_ + tree_group * block_rows;
    }

    bool block(std::size_t start, std::size_t stop) {
        first_ = start;
        n_ = stop - start;
        if (forest_.reading.refuse_infinite && !all_finite()) return false;
        rank_rows();
        for (std::size_t r = 0; r < n_; ++r) sum_[r] = forest_.reading.start;
        for (std::size_t t = 0; t < forest_.trees.size(); t += tree_group) {
            const std::size_t end = std::min(t + tree_group, forest_.trees.size());
            reach(t, end);
            if (forest_.reading.single_sums) write<float>(t, end);
            else write<double>(t, end);
        }
        for (std::size_t r = 0; r < n_; ++r) sums_[first_ + r] = sum_[r];
        return true;
    }

   private:
    double value(std::size_t row, std::size_t feature) const {
        const std::size_t at = row * rows_.n_features + feature;
        const double x = rows_.floats ? static_cast<double>(rows_.floats[at]) : rows_.doubles[at];
        return forest_.reading.single ? static_cast<double>(static_cast<float>(x)) : x;
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
            if (feature.categorical) rank_categories(feature, ranks);
            else rank_values(feature, ranks);
        }
    }

    void rank_values(const Feature& feature, Code* ranks) {
        const double* thresholds = forest_.thresholds.data() + feature.first_threshold;
        const Column* columns = forest_.columns.data() + feature.first_column;
        for (std::size_t r = 0; r < n_; ++r) {
            const double x = read(r, feature.index);
            const auto rank = static_cast<Code>(rank_of(x, thresholds, feature.n_thresholds));
            const bool missing = std::isnan(x), zero = std::abs(x) <= zero_threshold;
            for (std::size_t c = 0; c < feature.n_columns; ++c) {
                const Column& column = columns[c];
                const Code present = zero && column.has_zero_rank ? static_cast<Code>(column.zero_rank) : rank;
                ranks[c * block_rows + r] = missing ? static_cast<Code>(column.nan_rank) : present;
            }
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
            for (std::size_t r = 0; r < n_; ++r) trees_down(t, end, r);
            return;
        }
        for (std::size_t i = t; i < end; ++i) {
            const Tree& tree = forest_.trees[i];
            Code* leaf = reached_ + (i - t) * block_rows;
            if (forest_.oblivious) levels(tree, leaf);
            else if (tree.evaluated) steps(tree, leaf);
            else rows_down(tree, leaf);
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
        const Step* step = forest_.steps.data() + tree.first_step;
        if (tree.n_steps == 0) {
            std::memset(leaf, 0, block_rows * sizeof(Code));
            return;
        }
        for (std::size_t s = 0; s < tree.n_steps; ++s, ++step) {
            const Code* ranks = ranks_ + step->column * block_rows;
            const Code *a = slots_ + step->a * block_rows, *b = slots_ + step->b * block_rows;
            Code* out = s + 1 == tree.n_steps ? leaf : slots_ + step->dst * block_rows;
            const auto n_left = static_cast<Code>(step->n_left);
            if (tree.categorical && step->categorical)
                evaluate_categorical<Code>(forest_, ranks, step->threshold, n_left, a, b, out);
            else
                evaluate<Code>(ranks, static_cast<Code>(step->threshold), n_left, a, b, out);
        }
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
        const DownNode* nodes[lanes_down];
        const Code* ranks[lanes_down];
        std::int32_t n_inner[lanes_down], at[lanes_down];
        for (std::size_t i = 0; i < lanes_down; ++i) {
            nodes[i] = forest_.down.data() + tree.first_down;
            n_inner[i] = tree.n_inner;
        }
        for (std::size_t r = 0; r < n_; r += lanes_down) {  // beyond the last row there is memory, with ranks of old
            for (std::size_t i = 0; i < lanes_down; ++i) {
                ranks[i] = ranks_ + r + i;
                at[i] = 0;
            }
            if (tree.categorical) down<true, lanes_down>(nodes, ranks, n_inner, at);
            else down<false, lanes_down>(nodes, ranks, n_inner, at);
            for (std::size_t i = 0; i < lanes_down; ++i) leaf[r + i] = static_cast<Code>(at[i] - tree.n_inner);
        }
    }

    void trees_down(std::size_t t, std::size_t end, std::size_t r) {
        const DownNode* nodes[tree_group];
        const Code* ranks[tree_group];
        std::int32_t n_inner[tree_group], at[tree_group];
        bool categorical = false;
        for (std::size_t i = 0; i < tree_group; ++i) {
            const Tree& tree = forest_.trees[std::min(t + i, end - 1)];
            nodes[i] = forest_.down.data() + tree.first_down;
            ranks[i] = ranks_ + r;
            n_inner[i] = tree.n_inner;
            at[i] = 0;
            categorical |= tree.categorical;
        }
        if (categorical) down<true, tree_group>(nodes, ranks, n_inner, at);
        else down<false, tree_group>(nodes, ranks, n_inner, at);
        for (std::size_t i = 0; i < end - t; ++i)
            reached_[i * block_rows + r] = static_cast<Code>(at[i] - n_inner[i]);
    }

    // Adds the values of the reached leaves in the order of the trees, and writes their numbers.
    template <class Sum>
    void write(std::size_t t, std::size_t end) {
        const double* values[tree_group];
        const std::int32_t* numbers[tree_group];
        for (std::size_t i = 0; i < end - t; ++i) {
            values[i] = forest_.values.data() + forest_.trees[t + i].first_leaf;
            numbers[i] = forest_.oblivious ? nullptr : forest_.numbers.data() + forest_.trees[t + i].first_leaf;
        }
        const std::size_t n_trees = forest_.trees.size();
        for (std::size_t r = 0; r < n_; ++r) {
            Sum sum = static_cast<Sum>(sum_[r]);
            std::int32_t* out = leaves_ + (first_ + r) * n_trees + t;
            for (std::size_t i = 0; i < end - t; ++i) {
                const Code leaf = reached_[i * block_rows + r];
                sum += static_cast<Sum>(values[i][leaf]);
                out[i] = numbers[i] ? numbers[i][leaf] : static_cast<std::int32_t>(leaf);
            }
            sum_[r] = static_cast<double>(sum);
        }
    }

    const Forest& forest_;
    const RowsView& rows_;
    std::int32_t* leaves_;
    double* sums_;
    std::unique_ptr<Code[]> memory_;
    Code *slots_, *reached_, *ranks_;
    double sum_[block_rows];
    std::size_t first_ = 0, n_ = 0;
};

template <class Code>
bool walk(const Forest& forest, const RowsView& rows, std::size_t start, std::size_t stop, std::int32_t* leaves,
          double* sums) {
    Walker<Code> walker(forest, rows, leaves, sums);
    for (std::size_t r = start; r < stop; r += block_rows)
        if (!walker.block(r, std::min(r + block_rows, stop))) return false;
    return true;
}

}  // namespace

const WalkSet IBUG_WALK_SET = {IBUG_SET_NAME, walk<std::uint8_t>, walk<std::uint16_t>};

}  // namespace ibug
