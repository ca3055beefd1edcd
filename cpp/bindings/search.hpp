// The parts of the submodule `search`.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

#include "bindings/common.hpp"
#include "common/instruction_sets.hpp"
#include "search/layout.hpp"
#include "search/loops.hpp"

namespace ibug {

// The loops that this machine can run.
const Tables<Loops>& all_loops();

// Checks that tiles have the shape that n_rows and n_trees need.
template <class Tiles>
void require_tiles(const Tiles& tiles, std::size_t n_rows, std::size_t n_trees) {
    require(n_trees > 0 && n_trees <= max_trees, "from 1 to 65534 trees can be counted");
    require(tiles.shape(1) == padded_trees(n_trees) && tiles.shape(2) == tile_rows && tiles.shape(0) % quad_tiles == 0,
            "tiles must be (a multiple of 4, n_trees rounded up to a multiple of 4, 16)");
    require(n_rows <= tiles.shape(0) * tile_rows && n_rows < 0xffffffffu, "n_rows exceeds the tiles");
}

// From leaf numbers to the arrays of an index.
void register_building(nanobind::module_& m);

// The index that searches ask.
void register_index(nanobind::module_& m);

}  // namespace ibug
