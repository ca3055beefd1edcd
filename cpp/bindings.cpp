// The extension module `ibug.neighbors._kernel`. Each function checks that its arrays fit together, releases the GIL and
// runs in the caller's thread: threads, chunks and shards are made outside.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "ibug/encode.hpp"
#include "ibug/instruction_sets.hpp"
#include "ibug/scan.hpp"
#include "ibug/top_k.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T, std::size_t n_dim>
using Array = nb::ndarray<T, nb::ndim<n_dim>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

ibug::Numbering numbering_of(const Array<const std::int32_t, 2>& numbering) {
    return {numbering.shape(0), numbering.shape(1), numbering.data()};
}

void register_numbering(nb::module_& m) {
    m.def(
        "number_leaves",
        [](Array<const std::int32_t, 2> leaves, Array<std::int32_t, 2> numbering, Array<std::int32_t, 1> counts) {
            require(leaves.shape(1) == numbering.shape(0) && leaves.shape(1) == counts.shape(0),
                    "leaves, numbering and counts must agree in the number of trees");
            const std::size_t n = leaves.size(), width = numbering.shape(1);
            nb::gil_scoped_release released;
            for (std::size_t i = 0; i < n; ++i)
                require(static_cast<std::uint32_t>(leaves.data()[i]) < width, "a leaf number is outside the table");
            ibug::number_leaves(leaves.data(), leaves.shape(0), leaves.shape(1), width, numbering.data(), counts.data());
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
            require(leaves.shape(1) == numbering.shape(0) && leaves.shape(1) == tiles.shape(1) &&
                        tiles.shape(2) == ibug::tile_rows,
                    "leaves, numbering and tiles do not fit together");
            const std::size_t room = tiles.shape(0) * ibug::tile_rows;
            require(first_row <= room && leaves.shape(0) <= room - first_row, "more rows than the tiles hold");
            nb::gil_scoped_release released;
            ibug::pack_rows(leaves.data(), leaves.shape(0), numbering_of(numbering), first_row, tiles.data());
        },
        "leaves"_a.noconvert(), "numbering"_a.noconvert(), "first_row"_a, "tiles"_a.noconvert(),
        "Write the codes of training rows into `tiles` (n_tiles, n_trees, 64), from row `first_row` on.");

    m.def(
        "encode_rows",
        [](Array<const std::int32_t, 2> leaves, Array<const std::int32_t, 2> numbering,
           Array<const std::int32_t, 1> counts, Array<Code, 2> out) {
            require(leaves.shape(1) == numbering.shape(0) && leaves.shape(1) == counts.shape(0) &&
                        leaves.shape(1) == out.shape(1) && leaves.shape(0) == out.shape(0),
                    "leaves, numbering, counts and out do not fit together");
            nb::gil_scoped_release released;
            return ibug::encode_rows(leaves.data(), leaves.shape(0), numbering_of(numbering), counts.data(), out.data());
        },
        "leaves"_a.noconvert(), "numbering"_a.noconvert(), "counts"_a.noconvert(), "out"_a.noconvert(),
        "Write the codes of query rows into `out`; return how many leaves without training rows found no free code.");

    m.def(
        "top_k",
        [](Array<const Code, 3> tiles, std::size_t n_rows, Array<const Code, 2> queries, std::size_t tile_start,
           std::size_t tile_stop, std::size_t query_start, std::size_t query_stop, Array<std::int32_t, 2> affinities,
           Array<std::int64_t, 2> rows, const std::string& instruction_set) {
            require(tiles.shape(1) == queries.shape(1) && tiles.shape(2) == ibug::tile_rows,
                    "tiles and queries do not fit together");
            require(tiles.shape(1) <= ibug::max_trees, "at most 65534 trees can be counted");
            require(n_rows <= tiles.shape(0) * ibug::tile_rows && n_rows < 0xffffffffu, "n_rows exceeds the tiles");
            require(tile_start <= tile_stop && tile_stop <= (n_rows + ibug::tile_rows - 1) / ibug::tile_rows,
                    "the tile range exceeds the rows");
            require(query_start <= query_stop && query_stop <= queries.shape(0), "the query range exceeds the queries");
            require(affinities.shape(0) == queries.shape(0) && rows.shape(0) == queries.shape(0) &&
                        affinities.shape(1) == rows.shape(1) && rows.shape(1) > 0,
                    "affinities and rows must be (n_queries, k) with k of at least 1");
            const ibug::InstructionSet& set = ibug::instruction_set(instruction_set);
            nb::gil_scoped_release released;
            ibug::top_k(tiles.data(), n_rows, tiles.shape(1), queries.data(), rows.shape(1), tile_start, tile_stop,
                        query_start, query_stop, affinities.data(), rows.data(), set);
        },
        "tiles"_a.noconvert(), "n_rows"_a, "queries"_a.noconvert(), "tile_start"_a, "tile_stop"_a, "query_start"_a,
        "query_stop"_a, "affinities"_a.noconvert(), "rows"_a.noconvert(), "instruction_set"_a = "",
        "Find the k rows of highest affinity within a range of tiles for a range of queries, best first, ties by row.");

    m.def(
        "count_repeatedly",
        [](Array<const Code, 3> tiles, Array<const Code, 2> queries, std::size_t repeats,
           const std::string& instruction_set) {
            require(tiles.shape(0) == 1 && tiles.shape(1) == queries.shape(1) && tiles.shape(2) == ibug::tile_rows,
                    "one tile is expected, with as many trees as the queries have");
            require(queries.shape(0) > 0 && queries.shape(1) <= ibug::max_trees, "at least one query is expected");
            const ibug::InstructionSet& set = ibug::instruction_set(instruction_set);
            nb::gil_scoped_release released;
            return ibug::count_repeatedly(tiles.data(), tiles.shape(1), queries.data(), queries.shape(0), repeats, set);
        },
        "tiles"_a.noconvert(), "queries"_a.noconvert(), "repeats"_a, "instruction_set"_a = "",
        "Run the counting loop of `top_k` over one tile again and again: the peak for benchmarks.");
}

}  // namespace

NB_MODULE(_kernel, m) {
    m.doc() = "Leaf codes and affinity search, compiled. Use ibug.LeafIndex instead.";
    m.attr("TILE_ROWS") = ibug::tile_rows;
    m.attr("MAX_TREES") = ibug::max_trees;
    m.def(
        "instruction_sets",
        [] {
            std::vector<std::string> names;
            for (const ibug::InstructionSet* set : ibug::instruction_sets()) names.emplace_back(set->name);
            return names;
        },
        "The instruction sets that this build and this machine share, best last.");
    register_numbering(m);
    register_codes<std::uint8_t>(m);
    register_codes<std::uint16_t>(m);
    register_codes<std::uint32_t>(m);
}
