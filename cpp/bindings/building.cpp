// The functions that build an index. Each checks that its arrays fit together, releases the GIL and runs in the
// caller's thread.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "bindings/common.hpp"
#include "bindings/search.hpp"
#include "search/cells.hpp"
#include "search/codes.hpp"
#include "search/full_scan.hpp"
#include "search/layout.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace ibug {
namespace {

void register_numbering(nb::module_& m) {
    m.def(
        "number_leaves",
        [](Array<const std::int32_t, 2> leaves, Array<std::int32_t, 2> numbering, Array<std::int32_t, 1> counts) {
            require(leaves.shape(1) == numbering.shape(0) && leaves.shape(1) == counts.shape(0),
                    "leaves, numbering and counts must agree in the number of trees");
            const std::size_t width = numbering.shape(1);
            nb::gil_scoped_release released;
            for (const std::int32_t leaf : std::span(leaves.data(), leaves.size()))
                require(static_cast<std::uint32_t>(leaf) < width, "a leaf number is outside the table");
            number_leaves(view(leaves), view(numbering), view(counts));
        },
        "leaves"_a.noconvert(), "numbering"_a.noconvert(), "counts"_a.noconvert(),
        "Give each leaf that is new in `leaves` (n_rows, n_trees) the next code of its tree, in place.");
}

template <class Code>
void register_codes(nb::module_& m) {
    m.def(
        "pack_rows",
        [](Array<const std::int32_t, 2> leaves, Array<const std::int32_t, 2> numbering, std::size_t first_row,
           Array<Code, 3> tiles) {
            require(leaves.shape(1) == numbering.shape(0), "leaves and numbering do not fit together");
            require_tiles(tiles, 0, leaves.shape(1));
            const std::size_t room = tiles.shape(0) * tile_rows;
            require(first_row <= room && leaves.shape(0) <= room - first_row, "more rows than the tiles hold");
            nb::gil_scoped_release released;
            pack_rows(view(leaves), {view(numbering)}, first_row, tiles.data());
        },
        "leaves"_a.noconvert(), "numbering"_a.noconvert(), "first_row"_a, "tiles"_a.noconvert(),
        "Write the codes of training rows into `tiles` (n_tiles, padded n_trees, 16), from row `first_row` on.");

    m.def(
        "nearest_prototypes",
        [](Array<const Code, 3> tiles, std::size_t n_rows, std::size_t n_trees, Array<const Code, 3> prototypes,
           std::size_t first, Array<std::int64_t, 1> cells, std::size_t n_prototypes,
           const std::string& instruction_set) {
            require_tiles(tiles, n_rows, n_trees);
            require_tiles(prototypes, n_prototypes, n_trees);
            require(n_prototypes > 0 && prototypes.shape(0) == n_tiles_of(n_prototypes),
                    "prototypes must be as many as their tiles");
            require(first <= n_rows && cells.shape(0) <= n_rows - first, "cells must be of rows of the tiles");
            std::vector<std::uint32_t> order(n_prototypes);
            std::iota(order.begin(), order.end(), 0u);
            const Loops& loops = all_loops().choose(instruction_set);
            nb::gil_scoped_release released;
            nearest_prototypes<Code>({tiles.data(), n_rows, n_trees, nullptr},
                                     {prototypes.data(), n_prototypes, n_trees, order.data()}, first,
                                     first + cells.shape(0), view(cells), loops);
        },
        "tiles"_a.noconvert(), "n_rows"_a, "n_trees"_a, "prototypes"_a.noconvert(), "first"_a, "cells"_a.noconvert(),
        "n_prototypes"_a, "instruction_set"_a = "",
        "Write the number of the nearest prototype of each row from place `first` on, ties by the lower number.");

    m.def(
        "permute_rows",
        [](Array<Code, 3> tiles, std::size_t n_trees, Array<const std::uint32_t, 1> order,
           std::size_t trees_at_a_time) {
            const std::size_t n_rows = order.shape(0);
            require_tiles(tiles, n_rows, n_trees);
            require(trees_at_a_time > 0, "at least one tree at a time is expected");
            nb::gil_scoped_release released;
            for (const std::uint32_t row : view(order)) require(row < n_rows, "the order has a row that is not there");
            permute_rows(tiles.data(), n_trees, view(order), trees_at_a_time);
        },
        "tiles"_a.noconvert(), "n_trees"_a, "order"_a.noconvert(), "trees_at_a_time"_a,
        "Move the rows in place: to place i the one from place order[i].");

    m.def(
        "count_repeatedly",
        [](Array<const Code, 3> tiles, Array<const Code, 2> queries, std::size_t repeats,
           const std::string& instruction_set) {
            require(queries.shape(0) > 0, "at least one query is expected");
            require_tiles(tiles, 0, queries.shape(1));
            require(tiles.shape(0) == quad_tiles, "four tiles are expected");
            const Loops& loops = all_loops().choose(instruction_set);
            nb::gil_scoped_release released;
            return count_repeatedly(tiles.data(), view(queries), repeats, loops);
        },
        "tiles"_a.noconvert(), "queries"_a.noconvert(), "repeats"_a, "instruction_set"_a = "",
        "Run the counting loop of `scan` over four tiles again and again: the peak for benchmarks.");
}

}  // namespace

void register_building(nb::module_& m) {
    register_numbering(m);
    register_codes<std::uint8_t>(m);
    register_codes<std::uint16_t>(m);
    register_codes<std::uint32_t>(m);
}

}  // namespace ibug
