// The submodule `search`: leaf codes and affinity search.
#include "bindings/search.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bindings/common.hpp"
#include "search/layout.hpp"

namespace nb = nanobind;
using namespace nb::literals;

const ibug::Tables<ibug::Loops>& ibug::all_loops() {
    static const Tables<Loops> tables(IBUG_TABLES(loops));
    return tables;
}

void ibug::register_search(nb::module_& m) {
    m.attr("TILE_ROWS") = tile_rows;
    m.attr("QUAD_TILES") = quad_tiles;
    m.attr("TREE_STEP") = tree_step;
    m.attr("TREE_BLOCK") = tree_block;
    m.attr("MAX_TREES") = max_trees;
    register_instruction_sets(m, all_loops());
    m.def(
        "least_queries", [](const std::string& name) { return all_loops().choose(name).least_queries; },
        "instruction_set"_a = "",
        "The number of queries from which on full scans of one-byte codes share bitmaps of the queries' leaves.");
    register_building(m);
    register_index(m);
}
