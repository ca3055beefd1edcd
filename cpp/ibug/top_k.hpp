// The k best training rows of each query, by a scan over all tiles.
//
// Order is total: affinity descending, then row ascending, so that every schedule finds the same neighbours.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "scan.hpp"

namespace ibug {

// The codes of the training rows, in tiles, and which row is at each place.
template <class Code>
struct Tiles {
    const Code* codes;  // (n_tiles, padded_trees(n_trees), tile_rows); n_tiles is a multiple of quad_tiles
    std::size_t n_rows;
    std::size_t n_trees;
    const std::uint32_t* order;  // (n_rows,): the row number of each place

    std::size_t width() const { return padded_trees(n_trees); }
    std::size_t n_lines() const { return width() / trees_per_line<Code>; }
    const Code* tile(std::size_t i) const { return codes + i * width() * tile_rows; }

    // One bit for each place of `n` from `first` on that has a row: not those that fill up the last tiles.
    std::uint64_t valid(std::size_t first, std::size_t n) const {
        if (first >= n_rows) return 0;
        return ~std::uint64_t{0} >> (64 - std::min(n, n_rows - first));
    }
};

// The best k of the rows offered so far, in any order. A histogram of the affinities that have entered tells at any time
// which the k-th best is, so that few rows are kept in vain.
class TopK {
   public:
    void reset(std::size_t k, std::size_t n_trees) {
        k_ = k;
        capacity_ = std::max(2 * k, k + 64);
        best_.clear();
        best_.reserve(capacity_);
        entered_.assign(n_trees + 2, 0);
        at_least_ = kth_ = 0;
        last_row_ = any_row;
        dirty_ = false;
    }

    bool full() const { return at_least_ >= k_; }

    // The k-th best affinity, which a further row must have at least; 0 while there are fewer than k.
    std::uint32_t needed() const { return kth_; }

    // Whether a row of this affinity can enter, given that no such row has a number below `least_row`.
    bool can_enter(std::uint32_t affinity, std::uint32_t least_row) {
        if (affinity != kth_ || !full()) return affinity >= kth_;
        if (dirty_) compact();
        return least_row < last_row_;
    }

    // The rows that `mask` names: bit i is the row order[i] with affinity counts[i].
    void offer(const std::uint16_t* counts, const std::uint32_t* order, std::uint64_t mask) {
        for (; mask != 0; mask &= mask - 1) {
            const auto i = static_cast<std::size_t>(std::countr_zero(mask));
            const std::uint32_t affinity = counts[i], row = order[i];
            if (affinity < kth_ || (affinity == kth_ && row >= last_row_)) continue;
            best_.push_back(std::uint64_t{affinity} << 32 | (any_row - row));
            dirty_ = true;
            ++entered_[affinity];
            ++at_least_;
            while (at_least_ - entered_[kth_] >= k_) {
                at_least_ -= entered_[kth_++];
                last_row_ = any_row;
            }
            if (best_.size() == capacity_) compact();
        }
    }

    // Writes k affinities and rows, best first; where fewer rows were offered the rest is -1.
    void write(std::int32_t* affinities, std::int64_t* rows) {
        compact();
        std::sort(best_.begin(), best_.end(), std::greater<>());
        for (std::size_t i = 0; i < k_; ++i) {
            affinities[i] = i < best_.size() ? static_cast<std::int32_t>(best_[i] >> 32) : -1;
            rows[i] = i < best_.size() ? std::int64_t{row_of(best_[i])} : -1;
        }
    }

   private:
    static constexpr std::uint32_t any_row = 0xffffffffu;

    static std::uint32_t row_of(std::uint64_t key) { return any_row - static_cast<std::uint32_t>(key); }

    // Keeps the k best of those that have entered. The last of them is the row that a tie must be before.
    void compact() {
        dirty_ = false;
        if (best_.size() < k_) return;
        const auto last = best_.begin() + static_cast<std::ptrdiff_t>(k_) - 1;
        std::nth_element(best_.begin(), last, best_.end(), std::greater<>());
        best_.resize(k_);
        last_row_ = row_of(best_.back());
    }

    std::size_t k_ = 0;
    std::size_t capacity_ = 0;
    std::vector<std::uint64_t> best_;     // affinity, then the row number, both such that more is better
    std::vector<std::uint32_t> entered_;  // by affinity: how many rows have entered
    std::size_t at_least_ = 0;            // how many of them have an affinity of kth_ or more
    std::uint32_t kth_ = 0;
    std::uint32_t last_row_ = any_row;  // of equal affinities only rows before this one can enter
    bool dirty_ = false;                // whether rows have entered since last_row_ was found
};

// A query block passes over four tiles together, so that their load is shared; it is so small that its codes stay in the
// second-level cache.
inline std::size_t query_block_size(std::size_t bytes_per_query, std::size_t group) {
    constexpr std::size_t cache_bytes = std::size_t{1} << 18;
    const std::size_t fitting = cache_bytes / std::max<std::size_t>(bytes_per_query, 1);
    return std::clamp<std::size_t>(fitting / group * group, group, 64);
}

// counts: (n_queries, quad_rows), overwritten with the affinities of the rows of four tiles, by the first `n_trees` of the
// `width` trees, multiples of tree_step.
template <class Code>
void count_quad(const Code* tiles, std::size_t width, std::size_t n_trees, const Code* queries, std::size_t n_queries,
                std::uint16_t* counts, const InstructionSet& set) {
    const Counters<Code>& functions = counters<Code>(set);
    const std::size_t tile_stride = width * tile_rows;
    std::fill(counts, counts + n_queries * quad_rows, std::uint16_t{0});
    for (std::size_t first = 0; first < n_trees; first += tree_block) {
        const std::size_t n_lines = std::min(tree_block, n_trees - first) / trees_per_line<Code>;
        for (std::size_t q = 0; q < n_queries;) {
            const bool in_group = q + set.group_size <= n_queries;
            (in_group ? functions.group : functions.single)(tiles + first * tile_rows, tile_stride, n_lines,
                                                            queries + q * width + first, width, counts + q * quad_rows);
            q += in_group ? set.group_size : 1;
        }
    }
}

// The k nearest of the rows in tiles [tile_start, tile_stop), both multiples of quad_tiles, for some queries: the codes
// (n_queries, width) and for each its row of `affinities` and `rows`, both (..., k). Only the first `first_trees` are
// counted, if there are more.
template <class Code>
void scan(const Tiles<Code>& tiles, const Code* queries, const std::uint32_t* outputs, std::size_t n_queries, std::size_t k,
          std::size_t tile_start, std::size_t tile_stop, std::int32_t* affinities, std::int64_t* rows,
          const InstructionSet& set, std::size_t first_trees = ~std::size_t{0}) {
    const std::size_t width = tiles.width(), n_trees = std::min(width, first_trees);
    const std::size_t block_size = query_block_size(width * sizeof(Code), set.group_size);
    std::vector<std::uint16_t> counts(block_size * quad_rows);
    std::vector<TopK> best(std::min(block_size, n_queries));
    for (std::size_t first = 0; first < n_queries; first += block_size) {
        const std::size_t size = std::min(block_size, n_queries - first);
        for (std::size_t q = 0; q < size; ++q) best[q].reset(k, tiles.n_trees);
        for (std::size_t tile = tile_start; tile < tile_stop; tile += quad_tiles) {
            const std::size_t place = tile * tile_rows;
            const std::uint64_t valid = tiles.valid(place, quad_rows);
            if (valid == 0) break;
            count_quad(tiles.tile(tile), width, n_trees, queries + first * width, size, counts.data(), set);
            for (std::size_t q = 0; q < size; ++q) {
                const std::uint16_t* own = counts.data() + q * quad_rows;
                const std::uint64_t mask = set.at_least(own, static_cast<std::uint16_t>(best[q].needed())) & valid;
                if (mask != 0) best[q].offer(own, tiles.order + place, mask);
            }
        }
        for (std::size_t q = 0; q < size; ++q)
            best[q].write(affinities + outputs[first + q] * k, rows + outputs[first + q] * k);
    }
}

// Comparisons made by `repeats` passes of the counting loop over four tiles and one tree block, which fit the first-level
// cache: the peak that benchmarks compare the scan with. Returns a checksum, so that no compiler removes the loop.
template <class Code>
std::uint64_t count_repeatedly(const Code* tiles, std::size_t width, const Code* queries, std::size_t n_queries,
                               std::size_t repeats, const InstructionSet& set) {
    std::vector<std::uint16_t> counts(n_queries * quad_rows);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < repeats; ++i) {
        count_quad(tiles, width, width, queries, n_queries, counts.data(), set);
        sum += counts[i % counts.size()];
    }
    return sum;
}

}  // namespace ibug
