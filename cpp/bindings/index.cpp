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
#include "search/places.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace ibug {
namespace {

using Leaves = Array<const std::int32_t, 2>;
using Affinities = Array<std::int32_t, 2>;
using Rows = Array<std::int64_t, 2>;

struct BoundsArrays {
    Array<const std::uint8_t, 1> masks;
    Array<const std::uint32_t, 2> starts;
    Array<const std::uint64_t, 1> words;
    Array<const std::uint32_t, 1> first_leaf, least_row;

    // Everything that a search takes for a position is checked, so that no array of these shapes leads it astray.
    Bounds checked(std::size_t n_tiles, std::size_t n_rows, const Array<const std::int32_t, 1>& leaf_counts) const {
        const std::size_t n_trees = leaf_counts.shape(0), n_chunks = n_chunks_of(n_rows);
        require(n_tiles == n_tiles_of(n_rows), "tiles must be as many as the rows need");
        require(first_leaf.shape(0) == n_trees + 1 && first_leaf.data()[0] == 0,
                "first_leaf must be (n_trees + 1,), from 0 on");
        for (std::size_t t = 0; t < n_trees; ++t)
            require(std::int64_t{first_leaf.data()[t]} + leaf_counts.data()[t] == first_leaf.data()[t + 1],
                    "first_leaf must be the running sum of leaf_counts");
        const std::size_t n_leaves = first_leaf.data()[n_trees];
        require(masks.shape(0) == n_leaves * n_chunks + 7 && starts.shape(0) == n_leaves &&
                    starts.shape(1) == (n_chunks + 7) / 8,
                "masks must be (n_leaves * n_chunks + 7,), starts (n_leaves, n_chunks / 8 rounded up)");
        require(least_row.shape(0) == n_tiles, "least_row must be (n_tiles,)");
        require(is_aligned(starts) && is_aligned(words) && is_aligned(first_leaf) && is_aligned(least_row),
                "the arrays of bounds must be aligned");
        const Places places{masks.data(), starts.data(), words.data(), n_chunks};
        require(fit_together(places, n_leaves, words.shape(0)),
                "masks, starts and words of the index do not fit together");
        return {places, first_leaf.data(), least_row.data()};
    }
};

// An index of codes of any width, with its arrays.
class PythonIndex {
   public:
    template <class Code>
    PythonIndex(Array<const Code, 3> tiles, Array<const std::uint32_t, 1> order, Leaves numbering,
                Array<const std::int32_t, 1> leaf_counts, std::optional<BoundsArrays> bounds = std::nullopt)
        : tiles_(tiles), order_(order), numbering_(numbering), leaf_counts_(leaf_counts), bounds_(bounds),
          n_tiles_(tiles.shape(0)), index_(made(tiles)) {}

    const auto& index() const { return index_; }
    std::size_t n_tiles() const { return n_tiles_; }
    std::size_t n_trees() const { return leaf_counts_.shape(0); }
    std::size_t n_rows() const { return order_.shape(0); }
    std::size_t n_leaves() const {
        return std::accumulate(leaf_counts_.data(), leaf_counts_.data() + n_trees(), std::size_t{0});
    }
    bool has_bounds() const { return bounds_.has_value(); }

   private:
    template <class Code>
    Index<Code> made(const Array<const Code, 3>& tiles) const {
        require_tiles(tiles, n_rows(), n_trees());
        require(n_rows() > 0, "an index has at least one row");
        require(numbering_.shape(0) == n_trees(), "numbering and leaf_counts must agree in the number of trees");
        require(is_aligned(tiles) && is_aligned(order_) && is_aligned(numbering_) && is_aligned(leaf_counts_),
                "the arrays of an index must be aligned");
        std::optional<Bounds> bounds;
        if (bounds_) bounds = bounds_->checked(n_tiles_, n_rows(), leaf_counts_);
        return {{tiles.data(), n_rows(), n_trees(), order_.data()}, {view(numbering_)}, view(leaf_counts_), bounds};
    }

    std::variant<Array<const std::uint8_t, 3>, Array<const std::uint16_t, 3>, Array<const std::uint32_t, 3>> tiles_;
    Array<const std::uint32_t, 1> order_;
    Leaves numbering_;
    Array<const std::int32_t, 1> leaf_counts_;
    std::optional<BoundsArrays> bounds_;
    std::size_t n_tiles_;
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
        "An index without bounds.");
    index.def(
        "__init__",
        [](PythonIndex* self, Array<const Code, 3> tiles, Array<const std::uint32_t, 1> order, Leaves numbering,
           Array<const std::int32_t, 1> leaf_counts, Array<const std::uint8_t, 1> masks,
           Array<const std::uint32_t, 2> starts, Array<const std::uint64_t, 1> words,
           Array<const std::uint32_t, 1> first_leaf, Array<const std::uint32_t, 1> least_row) {
            new (self) PythonIndex(tiles, order, numbering, leaf_counts,
                                   BoundsArrays{masks, starts, words, first_leaf, least_row});
        },
        "tiles"_a.noconvert(), "order"_a.noconvert(), "numbering"_a.noconvert(), "leaf_counts"_a.noconvert(),
        "masks"_a.noconvert(), "starts"_a.noconvert(), "words"_a.noconvert(), "first_leaf"_a.noconvert(),
        "least_row"_a.noconvert(), "An index with bounds.");
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
        [](const PythonIndex& self, Leaves leaves, std::size_t query_start, std::size_t query_stop,
           std::size_t tile_start, std::size_t tile_stop, std::size_t most_visits, Affinities affinities, Rows rows,
           const std::string& instruction_set) {
            const Task task(self, leaves, {query_start, query_stop, tile_start, tile_stop}, affinities, rows,
                            chunk_tiles);
            require(self.has_bounds(), "the index has no bounds");
            const Loops& loops = all_loops().choose(instruction_set);
            ask(self, [&](const auto& codes) { codes.search(view(leaves), task.range, most_visits, task.out, loops); });
        },
        "leaves"_a.noconvert(), "query_start"_a, "query_stop"_a, "tile_start"_a, "tile_stop"_a, "most_visits"_a,
        "affinities"_a.noconvert(), "rows"_a.noconvert(), "instruction_set"_a = "",
        "Find what `scan` finds, but skip the tiles that cannot have a row among the best; a query that seems to "
        "need more than `most_visits` further tiles is answered by a scan.");
}

void register_answers(nb::class_<PythonIndex>& index) {
    index.def(
        "count_visits",
        [](const PythonIndex& self, Leaves leaves, std::size_t k, Array<std::int64_t, 1> visits,
           const std::string& instruction_set) {
            require_leaves(self, leaves);
            require(self.has_bounds(), "the index has no bounds");
            require(k > 0 && k <= self.n_rows() && visits.shape(0) == leaves.shape(0),
                    "k must be from 1 to n_rows, visits (n_queries,)");
            const Loops& loops = all_loops().choose(instruction_set);
            ask(self, [&](const auto& codes) { codes.count_visits(view(leaves), k, view(visits), loops); });
        },
        "leaves"_a.noconvert(), "k"_a, "visits"_a.noconvert(), "instruction_set"_a = "",
        "Write the number of tiles that `search` visits for each query, if it never gives up.");
    index.def(
        "count_visits_of_rows",
        [](const PythonIndex& self, Array<const std::int64_t, 1> places, std::size_t k, Array<std::int64_t, 1> visits) {
            require(self.has_bounds(), "the index has no bounds");
            require(k > 0 && k <= self.n_rows() && visits.shape(0) == places.shape(0),
                    "k must be from 1 to n_rows, visits (n_places,)");
            std::vector<std::size_t> chosen(places.shape(0));
            for (std::size_t i = 0; i < chosen.size(); ++i) {
                chosen[i] = static_cast<std::size_t>(places.data()[i]);
                require(chosen[i] < self.n_rows(), "a place is not in the index");
            }
            const Loops& loops = all_loops().choose("");
            ask(self, [&](const auto& codes) { codes.count_visits_of_rows(chosen, k, view(visits), loops); });
        },
        "places"_a.noconvert(), "k"_a, "visits"_a.noconvert(),
        "Do the same for rows of the index as queries, by their places in the tiles.");
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
