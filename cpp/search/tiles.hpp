// The training rows as a search sees them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "search/layout.hpp"

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

}  // namespace ibug
