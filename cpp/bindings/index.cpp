// The index that searches ask, made once from the arrays of an index, which it keeps alive. A search checks that its
// own arrays fit, releases the GIL and runs in the caller's thread.
#include "search/index.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/common.hpp"
#include "bindings/search.hpp"
#include "search/layout.hpp"
#include "search/loops.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace ibug {
namespace {

using Leaves = Array<const std::int32_t, 2>;
using Affinities = Array<std::int32_t, 2>;
using Rows = Array<std::int64_t, 2>;

template <class Code>
struct CellArrays {
    Array<const Code, 3> prototypes;
    Array<const std::uint32_t, 1> starts;
    std::vector<std::uint32_t> order;  // of the prototypes: as they are

    CellArrays(Array<const Code, 3> codes, Array<const std::uint32_t, 1> places)
        : prototypes(codes), starts(places), order(places.shape(0)) {
        std::iota(order.begin(), order.end(), 0u);
    }

    // Everything that a search takes for a position is checked, so that no array of these shapes leads it astray.
    Cells<Code> checked(std::size_t n_rows, std::size_t n_trees) const {
        require(starts.shape(0) > 1 && is_aligned(starts) && is_aligned(prototypes), "there must be a cell");
        const std::size_t n_cells = starts.shape(0) - 1;
        require_tiles(prototypes, n_cells, n_trees);
        require(prototypes.shape(0) == n_tiles_of(n_cells), "prototypes must be as many as the cells");
        require(starts.data()[0] == 0 && starts.data()[n_cells] == n_rows, "cells must have all rows");
        for (std::size_t c = 0; c < n_cells; ++c)
            require(starts.data()[c] <= starts.data()[c + 1], "cells must follow each other");
        return {{prototypes.data(), n_cells, n_trees, order.data()}, view(starts)};
    }
};

// An index of codes of any width, with its arrays.
class PythonIndex {
   public:
    template <class Code>
    PythonIndex(Array<const Code, 3> tiles, Array<const std::uint32_t, 1> order, Leaves numbering,
                Array<const std::int32_t, 1> leaf_counts, std::optional<CellArrays<Code>> cells = std::nullopt)
        : tiles_(tiles), order_(order), numbering_(numbering), leaf_counts_(leaf_counts), n_tiles_(tiles.shape(0)),
          cells_(std::move(cells)), index_(made(tiles)) {}

    const auto& index() const { return index_; }
    std::size_t n_tiles() const { return n_tiles_; }
    std::size_t n_trees() const { return leaf_counts_.shape(0); }
    std::size_t n_rows() const { return order_.shape(0); }
    std::size_t n_leaves() const {
        return std::accumulate(leaf_counts_.data(), leaf_counts_.data() + n_trees(), std::size_t{0});
    }
    bool has_cells() const {
        return std::visit([](const auto& index) { return index.has_cells(); }, index_);
    }

   private:
    template <class Code>
    Index<Code> made(const Array<const Code, 3>& tiles) const {
        require_tiles(tiles, n_rows(), n_trees());
        require(n_rows() > 0, "an index has at least one row");
        require(numbering_.shape(0) == n_trees(), "numbering and leaf_counts must agree in the number of trees");
        require(is_aligned(tiles) && is_aligned(order_) && is_aligned(numbering_) && is_aligned(leaf_counts_),
                "the arrays of an index must be aligned");
        std::optional<Cells<Code>> cells;
        if (const auto& own = std::get<std::optional<CellArrays<Code>>>(cells_)) {
            require(n_tiles_ == n_tiles_of(n_rows()), "tiles must be as many as the rows need");
            cells = own->checked(n_rows(), n_trees());
        }
        return {{tiles.data(), n_rows(), n_trees(), order_.data()}, {view(numbering_)}, view(leaf_counts_), cells};
    }

    std::variant<Array<const std::uint8_t, 3>, Array<const std::uint16_t, 3>, Array<const std::uint32_t, 3>> tiles_;
    Array<const std::uint32_t, 1> order_;
    Leaves numbering_;
    Array<const std::int32_t, 1> leaf_counts_;
    std::size_t n_tiles_;
    std::variant<std::optional<CellArrays<std::uint8_t>>, std::optional<CellArrays<std::uint16_t>>,
                 std::optional<CellArrays<std::uint32_t>>>
        cells_;
    std::variant<Index<std::uint8_t>, Index<std::uint16_t>, Index<std::uint32_t>> index_;
};

void require_leaves(const PythonIndex& self, const Leaves& leaves) {
    require(leaves.shape(1) == self.n_trees() && is_aligned(leaves), "leaves must be (n_queries, n_trees)");
}

// What a search is asked for, checked.
struct Task {
    Range range;
    Results out;

    Task(const PythonIndex& self, const Leaves& leaves, const Range& asked, const Affinities& affinities,
         const Rows& rows, std::size_t tile_unit)
        : range(asked), out{view(affinities), view(rows)} {
        require_leaves(self, leaves);
        require(range.tile_start <= range.tile_stop && range.tile_stop <= self.n_tiles(),
                "the tile range exceeds the tiles");
        require(range.tile_start % tile_unit == 0 &&
                    (range.tile_stop % tile_unit == 0 || range.tile_stop == self.n_tiles()),
                "the tile range cuts tiles apart that are searched together");
        require(range.query_start <= range.query_stop && range.query_stop <= leaves.shape(0),
                "the query range exceeds the queries");
        require(affinities.shape(0) == leaves.shape(0) && rows.shape(0) == leaves.shape(0) &&
                    affinities.shape(1) == rows.shape(1) && rows.shape(1) > 0,
                "affinities and rows must be (n_queries, k) with k of at least 1");
    }
};

// Calls `act` with the index in the width of its codes, without the GIL.
template <class Act>
void ask(const PythonIndex& self, Act act) {
    nb::gil_scoped_release released;
    std::visit(act, self.index());
}

template <class Code>
void register_constructors(nb::class_<PythonIndex>& index) {
    index.def(
        "__init__",
        [](PythonIndex* self, Array<const Code, 3> tiles, Array<const std::uint32_t, 1> order, Leaves numbering,
           Array<const std::int32_t, 1> leaf_counts) { new (self) PythonIndex(tiles, order, numbering, leaf_counts); },
        "tiles"_a.noconvert(), "order"_a.noconvert(), "numbering"_a.noconvert(), "leaf_counts"_a.noconvert(),
        "An index without cells.");
    index.def(
        "__init__",
        [](PythonIndex* self, Array<const Code, 3> tiles, Array<const std::uint32_t, 1> order, Leaves numbering,
           Array<const std::int32_t, 1> leaf_counts, Array<const Code, 3> prototypes,
           Array<const std::uint32_t, 1> cell_starts) {
            new (self) PythonIndex(tiles, order, numbering, leaf_counts,
                                   std::optional<CellArrays<Code>>(std::in_place, prototypes, cell_starts));
        },
        "tiles"_a.noconvert(), "order"_a.noconvert(), "numbering"_a.noconvert(), "leaf_counts"_a.noconvert(),
        "prototypes"_a.noconvert(), "cell_starts"_a.noconvert(), "An index with cells.");
}

void register_searches(nb::class_<PythonIndex>& index) {
    index.def(
        "scan",
        [](const PythonIndex& self, Leaves leaves, std::size_t query_start, std::size_t query_stop,
           std::size_t tile_start, std::size_t tile_stop, Affinities affinities, Rows rows,
           const std::string& instruction_set) {
            const Task task(self, leaves, {query_start, query_stop, tile_start, tile_stop}, affinities, rows,
                            quad_tiles);
            const Loops& loops = all_loops().choose(instruction_set);
            ask(self, [&](const auto& codes) { codes.scan(view(leaves), task.range, task.out, loops); });
        },
        "leaves"_a.noconvert(), "query_start"_a, "query_stop"_a, "tile_start"_a, "tile_stop"_a,
        "affinities"_a.noconvert(), "rows"_a.noconvert(), "instruction_set"_a = "",
        "Find the k rows of highest affinity within a range of tiles for a range of queries, best first, ties by row.");
    index.def(
        "search",
        [](const PythonIndex& self, Leaves leaves, std::size_t query_start, std::size_t query_stop, std::size_t n_cells,
           Affinities affinities, Rows rows, Array<std::int64_t, 1> visited, const std::string& instruction_set) {
            const Task task(self, leaves, {query_start, query_stop, 0, self.n_tiles()}, affinities, rows, quad_tiles);
            require(self.has_cells(), "the index has no cells");
            require(n_cells > 0, "a query visits a cell at least");
            require(visited.shape(0) == leaves.shape(0), "visited must be (n_queries,)");
            require(rows.shape(1) <= self.n_rows(), "k must be at most n_rows");
            const Loops& loops = all_loops().choose(instruction_set);
            ask(self, [&](const auto& index) {
                index.search(view(leaves), task.range, n_cells, task.out, view(visited), loops);
            });
        },
        "leaves"_a.noconvert(), "query_start"_a, "query_stop"_a, "n_cells"_a, "affinities"_a.noconvert(),
        "rows"_a.noconvert(), "visited"_a.noconvert(), "instruction_set"_a = "",
        "Find the k rows of highest affinity among those of the n_cells nearest cells, for a range of queries.");
}

void register_answers(nb::class_<PythonIndex>& index) {
    index.def(
        "number",
        [](const PythonIndex& self, Leaves leaves, Affinities codes) {
            require_leaves(self, leaves);
            require(codes.shape(0) == leaves.shape(0) && codes.shape(1) == leaves.shape(1),
                    "codes must be of the shape of leaves");
            ask(self, [&](const auto& index) { index.number(view(leaves), view(codes)); });
        },
        "leaves"_a.noconvert(), "codes"_a.noconvert(),
        "Write the code of each leaf, -1 where no training row has been.");
    index.def(
        "count_rows",
        [](const PythonIndex& self, Array<std::int64_t, 1> sizes) {
            require(sizes.shape(0) == self.n_leaves(), "sizes must be (n_leaves,), of all trees together");
            ask(self, [&](const auto& index) { index.count_rows(view(sizes)); });
        },
        "sizes"_a.noconvert(), "Write the number of rows in each leaf, those of all trees one after the other.");
}

}  // namespace

void register_index(nb::module_& m) {
    auto index = nb::class_<PythonIndex>(m, "Index",
                                         "The arrays of an index, checked once and kept alive, and the searches in it. "
                                         "Nothing here changes it: any number of threads may ask at the same time.");
    register_constructors<std::uint8_t>(index);
    register_constructors<std::uint16_t>(index);
    register_constructors<std::uint32_t>(index);
    register_searches(index);
    register_answers(index);
}

}  // namespace ibug
