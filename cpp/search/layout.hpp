// How leaf codes are laid out in memory.
//
// The index stores leaf codes in tiles of 16 rows, `[tile][tree][row]`, so that a tile is contiguous and can be visited
// alone. One *line* of 64 bytes holds the codes of 16 rows in one or more trees (4 of 8 bits, 2 of 16, 1 of 32), and
// belongs to 4 bytes of a query's codes.
#pragma once

#include <cstddef>

namespace ibug {

inline constexpr std::size_t tile_rows = 16;

// A full scan counts four tiles at a time, 64 rows, which share the loads of the query's codes.
inline constexpr std::size_t quad_tiles = 4;
inline constexpr std::size_t quad_rows = quad_tiles * tile_rows;

// Trees come in fours, so that every line is full whatever the width of the codes. Added trees match nothing: rows have
// the code 0 there, queries the code 1.
inline constexpr std::size_t tree_step = 4;
inline constexpr std::size_t padded_trees(std::size_t n_trees) {
    return (n_trees + tree_step - 1) / tree_step * tree_step;
}

// Byte counters hold 255 matches at most, so that many trees (a multiple of tree_step) are counted before they spill to
// 16 bits. The codes of four tiles and one tree block also fit the first-level cache (16 KiB), and stay there while all
// queries pass by.
inline constexpr std::size_t tree_block = 252;

// Affinities are counted in 16 bits, and one more than the largest is still a number.
inline constexpr std::size_t max_trees = 65534;

template <class Code>
inline constexpr std::size_t trees_per_line = 4 / sizeof(Code);

inline std::size_t n_tiles_of(std::size_t n_rows) { return (n_rows + quad_rows - 1) / quad_rows * quad_tiles; }

}  // namespace ibug
