// The k best training rows of each query, by a scan over all tiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/matrix.hpp"
#include "search/bitmap_scan.hpp"
#include "search/layout.hpp"
#include "search/loops.hpp"
#include "search/queries.hpp"
#include "search/tiles.hpp"
#include "search/top_k.hpp"

namespace ibug {

// A query block passes over four tiles together, so that their load is shared; it is so small that its codes stay in
// the second-level cache, and that its best rows need 32 MB at the most, or what one group of queries needs.
inline std::size_t query_block_size(std::size_t code_bytes, std::size_t best_bytes, std::size_t group) {
    constexpr std::size_t cache_bytes = std::size_t{1} << 18, most_bytes = std::size_t{1} << 25;
    const std::size_t fitting = std::min(cache_bytes / std::max<std::size_t>(code_bytes, 1), most_bytes / best_bytes);
    return std::clamp<std::size_t>(fitting / group * group, group, 64);
}

// counts: (n_queries, quad_rows), overwritten with the affinities of the rows of up to four tiles of `width` trees.
template <class Code>
void count_tiles(const Code* tiles, std::size_t n_tiles, std::size_t width, const Code* queries, std::size_t n_queries,
                 std::uint16_t* counts, const Loops& loops) {
    const Counters<Code>& functions = counters<Code>(loops);
    const std::size_t tile_stride = width * tile_rows;
    std::fill(counts, counts + n_queries * quad_rows, std::uint16_t{0});
    for (std::size_t first = 0; first < width; first += tree_block) {
        const std::size_t n_lines = std::min(tree_block, width - first) / trees_per_line<Code>;
        for (std::size_t q = 0; q < n_queries;) {
            const bool in_group = q + loops.group_size <= n_queries;
            (in_group ? functions.group : functions.single)[n_tiles - 1](tiles + first * tile_rows, tile_stride,
                                                                         n_lines, queries + q * width + first, width,
                                                                         counts + q * quad_rows);
            q += in_group ? loops.group_size : 1;
        }
    }
}

// Arguments as for scan(), which chooses between this and BitmapScan.
template <class Code>
void scan_by_comparisons(const Tiles<Code>& tiles, const Queries<Code>& queries, const std::uint32_t* outputs,
                         std::size_t k, std::size_t tile_start, std::size_t tile_stop, std::int32_t* affinities,
                         std::int64_t* rows, const Loops& loops) {
    const std::size_t width = tiles.width();
    const std::size_t block_size =
        query_block_size(width * sizeof(Code), TopK::bytes(k, tiles.n_trees), loops.group_size);
    std::vector<std::uint16_t> counts(block_size * quad_rows);
    std::vector<TopK> best(std::min(block_size, queries.n));
    for (std::size_t first = 0; first < queries.n; first += block_size) {
        const Queries<Code> block = queries.part(first, std::min(first + block_size, queries.n));
        for (std::size_t q = 0; q < block.n; ++q) best[q].reset(k, tiles.n_trees);
        for (std::size_t tile = tile_start; tile < tile_stop; tile += quad_tiles) {
            const std::size_t place = tile * tile_rows;
            const std::uint64_t valid = tiles.valid(place, quad_rows);
            if (valid == 0) break;
            count_tiles(tiles.tile(tile), quad_tiles, width, block.codes, block.n, counts.data(), loops);
            for (std::size_t q = 0; q < block.n; ++q) {
                std::uint16_t* own = counts.data() + q * quad_rows;
                if (block.first_uncoded != nullptr) take_back(tiles, tile, quad_tiles, block[q], own);
                const std::uint64_t mask = loops.at_least(own, static_cast<std::uint16_t>(best[q].needed())) & valid;
                if (mask != 0) best[q].offer(own, tiles.order + place, mask);
            }
        }
        for (std::size_t q = 0; q < block.n; ++q)
            best[q].write(affinities + outputs[first + q] * k, rows + outputs[first + q] * k);
    }
}

// The k nearest of the rows in tiles [tile_start, tile_stop), both multiples of quad_tiles, for some queries, and for
// each its row of `affinities` and `rows`, both (..., k).
template <class Code>
void scan(const Tiles<Code>& tiles, const Queries<Code>& queries, const std::uint32_t* outputs, std::size_t k,
          std::size_t tile_start, std::size_t tile_stop, std::int32_t* affinities, std::int64_t* rows,
          const Loops& loops) {
    if constexpr (sizeof(Code) == 1) {
        const std::size_t most = BitmapScan::most_queries(k, tiles.n_trees);
        // Blocks of the same size, as far as possible.
        const std::size_t n_blocks = most > 0 ? (queries.n + most - 1) / most : queries.n;
        if (n_blocks > 0 && queries.n / n_blocks >= loops.least_queries) {
            BitmapScan by_bitmaps(tiles, k, loops);
            for (std::size_t b = 0; b < n_blocks; ++b) {
                const std::size_t first = b * queries.n / n_blocks, last = (b + 1) * queries.n / n_blocks;
                by_bitmaps.find(queries.part(first, last), outputs + first, tile_start, tile_stop, affinities, rows);
            }
            return;
        }
    }
    scan_by_comparisons(tiles, queries, outputs, k, tile_start, tile_stop, affinities, rows, loops);
}

// Comparisons made by `repeats` passes of the counting loop over four tiles and one tree block, which fit the
// first-level cache: the peak that benchmarks compare the scan with. Returns a checksum, so that no compiler removes
// the loop.
template <class Code>
std::uint64_t count_repeatedly(const Code* tiles, Matrix<const Code> queries, std::size_t repeats, const Loops& loops) {
    std::vector<std::uint16_t> counts(queries.n_rows * quad_rows);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < repeats; ++i) {
        count_tiles(tiles, quad_tiles, queries.width, queries.data, queries.n_rows, counts.data(), loops);
        sum += counts[i % counts.size()];
    }
    return sum;
}

}  // namespace ibug
