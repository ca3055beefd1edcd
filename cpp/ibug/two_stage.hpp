// An approximate search: the first trees propose candidates, all trees decide among them. It costs the share of trees that
// propose, whatever the data, so it helps where bounds do not and queries are too few to share bitmaps. Rows that the first
// trees rank too low are missed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "full_scan.hpp"
#include "scan.hpp"
#include "tiles.hpp"
#include "top_k.hpp"

namespace ibug {

// For queries [query_start, query_stop) the k best among all rows of the tiles that have one of the `n_candidates` best rows
// by the first `first_trees` trees, a multiple of tree_step. Outputs as in search().
template <class Code>
void two_stage(const Tiles<Code>& tiles, const Code* queries, std::size_t k, std::size_t first_trees,
               std::size_t n_candidates, std::size_t query_start, std::size_t query_stop, std::int32_t* affinities,
               std::int64_t* rows, const InstructionSet& set) {
    const std::size_t width = tiles.width();
    std::vector<std::uint32_t> places(tiles.n_rows);
    std::iota(places.begin(), places.end(), 0u);
    const Tiles<Code> by_place{tiles.codes, tiles.n_rows, tiles.n_trees, places.data()};
    const std::size_t n_tiles = (tiles.n_rows + quad_rows - 1) / quad_rows * quad_tiles;
    // As many as share bitmaps with profit, unless their candidates would need much memory.
    const std::size_t at_a_time =
        std::min(query_stop - query_start, std::clamp<std::size_t>((std::size_t{1} << 22) / n_candidates, 8, 512));
    std::vector<std::int32_t> shared(at_a_time * n_candidates);
    std::vector<std::int64_t> candidates(at_a_time * n_candidates);
    std::vector<std::uint32_t> outputs(at_a_time);
    std::iota(outputs.begin(), outputs.end(), 0u);
    TopK best;
    for (std::size_t first = query_start; first < query_stop; first += at_a_time) {
        const std::size_t size = std::min(at_a_time, query_stop - first);
        scan(by_place, queries + first * width, outputs.data(), size, n_candidates, 0, n_tiles, shared.data(),
             candidates.data(), set, first_trees);
        for (std::size_t q = 0; q < size; ++q) {
            std::int64_t* own = candidates.data() + q * n_candidates;
            for (std::size_t i = 0; i < n_candidates; ++i) own[i] /= static_cast<std::int64_t>(tile_rows);
            std::sort(own, own + n_candidates);
            const std::int64_t* stop = std::unique(own, own + n_candidates);
            best.reset(k, tiles.n_trees);
            for (; own < stop; ++own) {
                const auto tile = static_cast<std::size_t>(*own);
                std::uint16_t counts[tile_rows];
                constexpr std::uint8_t none = 0;  // no bound is known, so nothing stops the count
                const std::uint32_t reaching = counters<Code>(set).visit(
                    tiles.tile(tile), queries + (first + q) * width, tiles.n_lines(), tree_block / trees_per_line<Code>,
                    &none, 0, max_trees, best.needed(), counts);
                const std::size_t place = tile * tile_rows;
                best.offer(counts, tiles.order + place, reaching & tiles.valid(place, tile_rows));
            }
            best.write(affinities + (first + q) * k, rows + (first + q) * k);
        }
    }
}

}  // namespace ibug
