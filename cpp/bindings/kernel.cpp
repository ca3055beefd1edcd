// The extension module `ibug.neighbors._kernel`: leaf codes and affinity search. Threads, chunks and shards are made
// outside.
#include "bindings/kernel.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bindings/arrays.hpp"
#include "search/layout.hpp"

namespace nb = nanobind;
using namespace nb::literals;

const ibug::Tables<ibug::Loops>& ibug::all_loops() {
    static const Tables<Loops> tables(IBUG_TABLES(loops));
    return tables;
}

NB_MODULE(_kernel, m) {
    m.doc() = "Leaf codes and affinity search, compiled. Use ibug.LeafIndex instead.";
    m.attr("TILE_ROWS") = ibug::tile_rows;
    m.attr("QUAD_TILES") = ibug::quad_tiles;
    m.attr("CHUNK_TILES") = ibug::chunk_tiles;
    m.attr("TREE_STEP") = ibug::tree_step;
    m.attr("TREE_BLOCK") = ibug::tree_block;
    m.attr("MAX_TREES") = ibug::max_trees;
    ibug::register_instruction_sets(m, ibug::all_loops());
    m.def(
        "least_queries", [](const std::string& name) { return ibug::all_loops().choose(name).least_queries; },
        "instruction_set"_a = "",
        "The number of queries from which on full scans of one-byte codes share bitmaps of the queries' leaves.");
    m.def(
        "many_queries", [](const std::string& name) { return ibug::all_loops().choose(name).many_queries; },
        "instruction_set"_a = "",
        "The number of queries from which on such a scan is likely to be faster than a search by bounds.");
    ibug::register_building(m);
    ibug::register_index(m);
}
