// An approximate search: the first trees propose candidates, all trees decide among them. It costs the share of trees
// that propose, whatever the data, so it helps where bounds do not and queries are too few to share bitmaps. Rows that
// the first trees rank too low are missed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "search/full_scan.hpp"
#include "search/layout.hpp"
#include "search/loops.hpp"
#include "search/queries.hpp"
#include "search/tiles.hpp"
#include "search/top_k.hpp"

namespace ibug {

// All rows of a tile, by all trees.
template <class Code>
void offer_tile(const Tiles<Code>& tiles, std::size_t tile, const Query<Code>& query, TopK& best, const Loops& loops) {
    std::uint16_t counts[tile_rows];
    constexpr std::uint8_t none = 0;  // no bound is known, so nothing stops the count
    const std::uint32_t reaching =
        counters<Code>(loops).visit(tiles.tile(tile), query.codes, tiles.n_lines(), tree_block / trees_per_line<Code>,
                                    &none, 0, max_trees, best.needed(), counts);
    if (!query.uncoded.empty()) take_back(tiles, tile, 1, query, tiles.n_trees, counts);
    const std::size_t place = tile * tile_rows;
    best.offer(counts, tiles.order + place, reaching & tiles.valid(place, tile_rows));
}

// For all queries the k best among all rows of the tiles that have one of the `n_candidates` best rows by the first
// `first_trees` trees, a multiple of tree_step. Outputs as in search().
template <class Code>
void two_stage(const Tiles<Code>& tiles, const Queries<Code>& queries, std::size_t k, std::size_t first_trees,
               std::size_t n_candidates, std::int32_t* affinities, std::int64_t* rows, const Loops& loops) {
    std::vector<std::uint32_t> places(tiles.n_rows);
    std::iota(places.begin(), places.end(), 0u);
    const Tiles<Code> by_place{tiles.codes, tiles.n_rows, tiles.n_trees, places.data()};
    // As many as share bitmaps with profit, unless their candidates would need much memory.
    const std::size_t at_a_time =
        std::min(queries.n, std::clamp<std::size_t>((std::size_t{1} << 22) / n_candidates, 8, 512));
    std::vector<std::int32_t> shared(at_a_time * n_candidates);
    std::vector<std::int64_t> candidates(at_a_time * n_candidates);
    std::vector<std::uint32_t> outputs(at_a_time);
    std::iota(outputs.begin(), outputs.end(), 0u);
    TopK best;
    for (std::size_t first = 0; first < queries.n; first += at_a_time) {
        const Queries<Code> block = queries.part(first, std::min(first + at_a_time, queries.n));
        scan(by_place, block, outputs.data(), n_candidates, 0, n_tiles_of(tiles.n_rows), shared.data(),
             candidates.data(), loops, first_trees);
        for (std::size_t q = 0; q < block.n; ++q) {
            std::int64_t* own = candidates.data() + q * n_candidates;
            for (std::size_t i = 0; i < n_candidates; ++i) own[i] /= static_cast<std::int64_t>(tile_rows);
            std::sort(own, own + n_candidates);
            const std::int64_t* stop = std::unique(own, own + n_candidates);
            best.reset(k, tiles.n_trees);
            for (; own < stop; ++own) offer_tile(tiles, static_cast<std::size_t>(*own), block[q], best, loops);
            best.write(affinities + (first + q) * k, rows + (first + q) * k);
        }
    }
}

}  // namespace ibug
