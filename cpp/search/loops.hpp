// The loops that decide the speed of a search, as a table of functions for each instruction set.
//
// They compare lines (see layout.hpp) with a query's codes and count the matches: the affinity of training rows to the
// query (paper, Eq. 1). Their bodies are in loops/, compiled by loops.cpp once for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/instruction_sets.hpp"
#include "search/layout.hpp"

namespace ibug {

// Adds to counts[q * quad_rows + r] the number of trees in `n_lines` lines in which row r of some tiles and query q
// share a leaf. Tiles are `tile_stride` codes apart, queries `query_stride`.
template <class Code>
using CountFunction = void (*)(const Code* tiles, std::size_t tile_stride, std::size_t n_lines, const Code* queries,
                               std::size_t query_stride, std::uint16_t* counts);

// The rows of four tiles whose count is at least `needed`, one bit per row.
using AtLeastFunction = std::uint64_t (*)(const std::uint16_t* counts, std::uint16_t needed);

// Bitmaps, see bitmap_scan.hpp: one bit for each of 512 rows.
inline constexpr std::size_t bitmap_rows = 512;
struct alignas(64) Bitmap {
    std::uint64_t words[bitmap_rows / 64];
};

// Bitmaps are there for a block of trees at a time, and added several at a time. The sums of a block have 7 bits.
inline constexpr std::size_t bitmap_trees = 112, bitmaps_at_a_time = 16, block_planes = 7;
static_assert(bitmap_trees < std::size_t{1} << block_planes && bitmap_trees % bitmaps_at_a_time == 0 &&
              bitmap_trees % tree_step == 0);

// For the four trees of a line and up to 512 rows, tiles that are tile_stride codes apart, the bitmaps of the leaves
// that `codes` names: codes[starts[t]], ..., codes[starts[t + 1] - 1] for tree t. They are written one after the other.
using MakeBitmapsFunction = void (*)(const std::uint8_t* tiles, std::size_t tile_stride, std::size_t n_tiles,
                                     const std::uint8_t* codes, const std::uint32_t* starts, Bitmap* bitmaps);

// Adds bitmaps[places[i] / place_step] for all i < n, a multiple of bitmaps_at_a_time and at most bitmap_trees, to the
// sums whose bit p is in planes[p]; there are block_planes of them at least. Places are counted in words, which saves
// the loop a shift.
inline constexpr std::size_t place_step = bitmap_rows / 64;
using AddBitmapsFunction = void (*)(const Bitmap* bitmaps, const std::uint16_t* places, std::size_t n, Bitmap* planes,
                                    std::size_t n_planes);

// The rows, of the first n_rows, whose sum is at least `needed`, and of more than k the k best with all that are equal
// to the last of them: one bit for each, and their sums in `counts`. Returns whether there are any.
using ReadRowsFunction = bool (*)(const Bitmap* planes, std::size_t n_planes, std::size_t n_rows, std::uint32_t needed,
                                  std::size_t k, Bitmap& reaching, std::uint16_t* counts);

// For one tile, two, ..., quad_tiles.
template <class Code>
struct Counters {
    CountFunction<Code> group[quad_tiles];   // Loops::group_size queries at a time
    CountFunction<Code> single[quad_tiles];  // one query: what is left over, and online prediction
};

struct Loops {
    InstructionSet set;
    std::size_t group_size;
    std::size_t least_queries;  // from this number on they share bitmaps with profit
    Counters<std::uint8_t> codes8;
    Counters<std::uint16_t> codes16;
    Counters<std::uint32_t> codes32;
    AtLeastFunction at_least;
    MakeBitmapsFunction make_bitmaps;
    AddBitmapsFunction add_bitmaps;
    ReadRowsFunction read_rows;
};

template <class Code>
const Counters<Code>& counters(const Loops& loops) {
    if constexpr (sizeof(Code) == 1)
        return loops.codes8;
    else if constexpr (sizeof(Code) == 2)
        return loops.codes16;
    else
        return loops.codes32;
}

IBUG_DECLARE_TABLES(Loops, loops)

}  // namespace ibug
