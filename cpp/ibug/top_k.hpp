// The k best training rows of each query, selected while the tiles stream by.
//
// Order is total: affinity descending, then row ascending, so that every schedule finds the same neighbours.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "scan.hpp"

namespace ibug {

// The best k of the rows offered so far. Rows must be offered in ascending order: then a later row never displaces an
// equal earlier one, and only an affinity above the k-th best can enter. A histogram of the affinities that have entered
// tells at any time which one that is, so that no row is kept in vain for long, and no sorting is needed at the end.
class TopK {
   public:
    TopK(std::size_t k, std::size_t n_trees) : k_(k), capacity_(std::max(2 * k, k + tile_rows)), entered_(n_trees + 2) {
        candidates_.reserve(capacity_);
    }

    // The affinity that a further row must have: one more than the k-th best, or none while there are fewer than k.
    std::uint16_t needed() const { return static_cast<std::uint16_t>(needed_); }

    // The rows of a tile that `mask` names.
    void offer(const std::uint16_t* counts, std::size_t first_row, std::uint64_t mask) {
        if (candidates_.size() + tile_rows > capacity_) compact();
        for (; mask != 0; mask &= mask - 1) {
            const auto r = static_cast<std::size_t>(std::countr_zero(mask));
            const std::uint16_t affinity = counts[r];
            if (affinity < needed_) continue;
            candidates_.push_back({affinity, static_cast<std::uint32_t>(first_row + r)});
            ++entered_[affinity];
            ++at_needed_;
            while (at_needed_ >= k_) at_needed_ -= entered_[needed_++];
        }
    }

    // Writes k affinities and rows, best first; where fewer rows were offered the rest is -1.
    void write(std::int32_t* affinities, std::int64_t* rows) {
        compact();
        const std::size_t found = candidates_.size();
        // The places of an affinity begin where those of all higher ones end; candidates are in row order already.
        std::fill(entered_.begin(), entered_.end(), 0u);
        std::uint32_t highest = 0;
        for (const Candidate& c : candidates_) {
            ++entered_[c.affinity];
            highest = std::max(highest, c.affinity);
        }
        std::uint32_t place = 0;
        for (std::uint32_t a = highest + 1; a-- > 0 && place < found;) place += std::exchange(entered_[a], place);
        for (const Candidate& c : candidates_) {
            const std::uint32_t at = entered_[c.affinity]++;
            affinities[at] = static_cast<std::int32_t>(c.affinity);
            rows[at] = c.row;
        }
        std::fill(affinities + found, affinities + k_, -1);
        std::fill(rows + found, rows + k_, -1);
    }

   private:
    struct Candidate {
        std::uint32_t affinity;
        std::uint32_t row;
    };

    // Drops what cannot be among the best k any more: affinities below the k-th best, and its late ties.
    void compact() {
        if (needed_ == 0) return;  // fewer than k so far
        const std::uint32_t kth = needed_ - 1;
        std::size_t ties_left = k_ - at_needed_;
        std::size_t kept = 0;
        for (const Candidate& c : candidates_)
            if (c.affinity > kth || (c.affinity == kth && ties_left > 0)) {
                ties_left -= c.affinity == kth;
                candidates_[kept++] = c;
            }
        candidates_.resize(kept);
    }

    std::size_t k_;
    std::size_t capacity_;
    std::vector<Candidate> candidates_;   // in row order
    std::vector<std::uint32_t> entered_;  // by affinity: how many rows have entered
    std::size_t at_needed_ = 0;           // how many have entered with at least needed_; fewer than k
    std::uint32_t needed_ = 0;
};

// A code repeated over 32 bits, which one broadcast spreads over a vector register.
inline std::uint32_t splat(std::uint8_t code) { return 0x01010101u * code; }
inline std::uint32_t splat(std::uint16_t code) { return 0x00010001u * code; }
inline std::uint32_t splat(std::uint32_t code) { return code; }

// A block of queries in the order in which the counting loop reads them: full groups first, then single queries;
// within each `[tree][query]`.
template <class Code>
class QueryBlock {
   public:
    // queries: (n_queries, n_trees), row-major.
    QueryBlock(const Code* queries, std::size_t n_queries, std::size_t n_trees, const InstructionSet& set)
        : n_queries_(n_queries), n_trees_(n_trees), group_(set.group_size), functions_(counters<Code>(set)) {
        splats_.resize(n_queries * n_trees);
        const std::size_t grouped = n_queries / group_ * group_;
        for (std::size_t q = 0; q < n_queries; ++q) {
            const bool in_group = q < grouped;
            const std::size_t width = in_group ? group_ : 1;
            const std::size_t lane = in_group ? q % group_ : 0;
            std::uint32_t* base = splats_.data() + (q - lane) * n_trees;
            for (std::size_t t = 0; t < n_trees; ++t) base[t * width + lane] = splat(queries[q * n_trees + t]);
        }
    }

    // counts: (n_queries, tile_rows), overwritten with the affinities of the tile's rows.
    void count(const Code* tile, std::uint16_t* counts) const {
        std::fill(counts, counts + n_queries_ * tile_rows, std::uint16_t{0});
        for (std::size_t first = 0; first < n_trees_; first += tree_block) {
            const std::size_t n_trees = std::min(tree_block, n_trees_ - first);
            const auto* next = reinterpret_cast<const char*>(tile + (first + n_trees) * tile_rows);
            for (std::size_t q = 0; q < n_queries_;) {
                prefetch(next, n_trees * tile_rows * sizeof(Code), q);
                const bool in_group = q + group_ <= n_queries_;
                const std::size_t width = in_group ? group_ : 1;
                (in_group ? functions_.group : functions_.single)(
                    tile + first * tile_rows, n_trees, splats_.data() + q * n_trees_ + first * width,
                    counts + q * tile_rows);
                q += width;
            }
        }
    }

   private:
    // While the queries from q on work on one block of codes, their share of the next block comes closer. Behind the
    // last block there is nothing to read, and a prefetch of nothing does no harm.
    void prefetch(const char* next, std::size_t bytes, std::size_t q) const {
#if defined(__GNUC__) || defined(__clang__)
        const std::size_t share = (bytes / n_queries_ + 64) * group_;
        const char* stop = next + std::min(bytes, (q / group_ + 1) * share);
        for (const char* line = next + std::min(bytes, q / group_ * share); line < stop; line += 64)
            __builtin_prefetch(line);
#else
        (void)next, (void)bytes, (void)q;
#endif
    }

    std::size_t n_queries_, n_trees_, group_;
    Counters<Code> functions_;
    std::vector<std::uint32_t> splats_;
};

// So many queries pass over a tile together that its load is shared, and so few that their codes stay in the
// second-level cache.
inline std::size_t query_block_size(std::size_t n_trees, std::size_t group) {
    constexpr std::size_t cache_bytes = std::size_t{1} << 19;
    const std::size_t fitting = cache_bytes / (sizeof(std::uint32_t) * std::max<std::size_t>(n_trees, 1));
    return std::clamp<std::size_t>(fitting / group * group, group, 64);
}

// The k nearest of the rows in tiles [tile_start, tile_stop) for the queries [query_start, query_stop). Only those
// queries' rows of `affinities` and `rows`, both (n_queries, k), are written.
template <class Code>
void top_k(const Code* tiles, std::size_t n_rows, std::size_t n_trees, const Code* queries, std::size_t k,
           std::size_t tile_start, std::size_t tile_stop, std::size_t query_start, std::size_t query_stop,
           std::int32_t* affinities, std::int64_t* rows, const InstructionSet& set) {
    const std::size_t block_size = query_block_size(n_trees, set.group_size);
    std::vector<std::uint16_t> counts(block_size * tile_rows);
    for (std::size_t first = query_start; first < query_stop; first += block_size) {
        const std::size_t size = std::min(block_size, query_stop - first);
        const QueryBlock<Code> block(queries + first * n_trees, size, n_trees, set);
        std::vector<TopK> best;
        best.reserve(size);
        for (std::size_t q = 0; q < size; ++q) best.emplace_back(k, n_trees);
        for (std::size_t tile = tile_start; tile < tile_stop; ++tile) {
            block.count(tiles + tile * n_trees * tile_rows, counts.data());
            const std::size_t first_row = tile * tile_rows;
            const std::size_t padding = tile_rows - std::min(tile_rows, n_rows - first_row);
            const std::uint64_t valid = ~std::uint64_t{0} >> padding;
            for (std::size_t q = 0; q < size; ++q) {
                const std::uint16_t* own = counts.data() + q * tile_rows;
                const std::uint64_t mask = set.at_least(own, best[q].needed()) & valid;
                if (mask != 0) best[q].offer(own, first_row, mask);
            }
        }
        for (std::size_t q = 0; q < size; ++q) best[q].write(affinities + (first + q) * k, rows + (first + q) * k);
    }
}

// Comparisons made by `repeats` passes of the counting loop over one tile and one tree block, which fit the first-level
// cache: the peak that benchmarks compare top_k with. Returns a checksum, so that no compiler removes the loop.
template <class Code>
std::uint64_t count_repeatedly(const Code* tile, std::size_t n_trees, const Code* queries, std::size_t n_queries,
                               std::size_t repeats, const InstructionSet& set) {
    const QueryBlock<Code> block(queries, n_queries, n_trees, set);
    std::vector<std::uint16_t> counts(n_queries * tile_rows);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < repeats; ++i) {
        block.count(tile, counts.data());
        sum += counts[i % counts.size()];
    }
    return sum;
}

}  // namespace ibug
