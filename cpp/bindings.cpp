// The extension module `ibug.neighbors._kernel`. Each function checks that its arrays fit together, releases the GIL and
// runs in the caller's thread: threads, chunks and shards are made outside.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ibug/bounds.hpp"
#include "ibug/encode.hpp"
#include "ibug/full_scan.hpp"
#include "ibug/instruction_sets.hpp"
#include "ibug/order.hpp"
#include "ibug/prune.hpp"
#include "ibug/scan.hpp"
#include "ibug/tiles.hpp"
#include "ibug/two_stage.hpp"

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

template <class Code>
void require_tiles(const Array<Code, 3>& tiles, std::size_t n_rows, std::size_t n_trees) {
    require(n_trees > 0 && n_trees <= ibug::max_trees, "from 1 to 65534 trees can be counted");
    require(tiles.shape(1) == ibug::padded_trees(n_trees) && tiles.shape(2) == ibug::tile_rows &&
                tiles.shape(0) % ibug::quad_tiles == 0,
            "tiles must be (a multiple of 4, n_trees rounded up to a multiple of 4, 16)");
    require(n_rows <= tiles.shape(0) * ibug::tile_rows && n_rows < 0xffffffffu, "n_rows exceeds the tiles");
}

template <class Code>
ibug::Tiles<Code> tiles_of(const Array<const Code, 3>& tiles, const Array<const std::uint32_t, 1>& order,
                           std::size_t n_trees) {
    require_tiles(tiles, order.shape(0), n_trees);
    return {tiles.data(), order.shape(0), n_trees, order.data()};
}

template <class Masks, class Starts>
void require_places(const Masks& masks, const Starts& starts, std::size_t n_leaves, std::size_t n_rows) {
    const std::size_t n_chunks = ibug::n_chunks_of(n_rows);
    require(masks.shape(0) == n_leaves * n_chunks + 7 && starts.shape(0) == n_leaves &&
                starts.shape(1) == (n_chunks + 7) / 8,
            "masks must be (n_leaves * n_chunks + 7,), starts (n_leaves, n_chunks / 8 rounded up)");
}

// What to search, and where the results go.
struct Task {
    std::size_t tile_start, tile_stop, query_start, query_stop;
    Array<std::int32_t, 2> affinities;
    Array<std::int64_t, 2> rows;

    template <class Code>
    void check(const ibug::Tiles<Code>& tiles, const Array<const Code, 2>& queries, std::size_t n_tiles,
               std::size_t tile_unit) const {
        require(queries.shape(1) == tiles.width(), "tiles and queries do not fit together");
        require(tile_start <= tile_stop && tile_stop <= n_tiles, "the tile range exceeds the tiles");
        require(tile_start % tile_unit == 0 && (tile_stop % tile_unit == 0 || tile_stop == n_tiles),
                "the tile range cuts tiles apart that are searched together");
        require(query_start <= query_stop && query_stop <= queries.shape(0), "the query range exceeds the queries");
        require(affinities.shape(0) == queries.shape(0) && rows.shape(0) == queries.shape(0) &&
                    affinities.shape(1) == rows.shape(1) && rows.shape(1) > 0,
                "affinities and rows must be (n_queries, k) with k of at least 1");
    }
};

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
            require(leaves.shape(1) == numbering.shape(0), "leaves and numbering do not fit together");
            require_tiles(tiles, 0, leaves.shape(1));
            const std::size_t room = tiles.shape(0) * ibug::tile_rows;
            require(first_row <= room && leaves.shape(0) <= room - first_row, "more rows than the tiles hold");
            nb::gil_scoped_release released;
            ibug::pack_rows(leaves.data(), leaves.shape(0), numbering_of(numbering), first_row, tiles.data());
        },
        "leaves"_a.noconvert(), "numbering"_a.noconvert(), "first_row"_a, "tiles"_a.noconvert(),
        "Write the codes of training rows into `tiles` (n_tiles, padded n_trees, 16), from row `first_row` on.");

    m.def(
        "encode_rows",
        [](Array<const std::int32_t, 2> leaves, Array<const std::int32_t, 2> numbering,
           Array<const std::int32_t, 1> counts, Array<Code, 2> out) {
            require(leaves.shape(1) == numbering.shape(0) && leaves.shape(1) == counts.shape(0) &&
                        ibug::padded_trees(leaves.shape(1)) == out.shape(1) && leaves.shape(0) == out.shape(0),
                    "leaves, numbering, counts and out do not fit together");
            nb::gil_scoped_release released;
            const ibug::Encoded encoded =
                ibug::encode_rows(leaves.data(), leaves.shape(0), numbering_of(numbering), counts.data(), out.data());
            require(!encoded.outside, "leaf numbers must be from 0 to 2**31 - 2");
            return encoded.without_code;
        },
        "leaves"_a.noconvert(), "numbering"_a.noconvert(), "counts"_a.noconvert(), "out"_a.noconvert(),
        "Write the codes of query rows into `out`; return how many leaves without training rows found no free code.");

    m.def(
        "order_rows",
        [](Array<const Code, 3> tiles, std::size_t n_trees, std::size_t n_sampled, Array<std::uint32_t, 1> order) {
            require_tiles(tiles, order.shape(0), n_trees);
            require(n_sampled > 0 && n_sampled <= n_trees && n_sampled <= 1024,
                    "a sample has from one to all trees, at most 1024");
            nb::gil_scoped_release released;
            const auto sample = ibug::sample_trees(tiles.data(), order.shape(0), n_trees, n_sampled);
            ibug::Bisection(sample.data(), order.shape(0), n_sampled).write(order.data());
        },
        "tiles"_a.noconvert(), "n_trees"_a, "n_sampled"_a, "order"_a.noconvert(),
        "Find an order of the rows that keeps similar ones together, by some of the trees.");

    m.def(
        "permute_rows",
        [](Array<Code, 3> tiles, std::size_t n_trees, Array<const std::uint32_t, 1> order, std::size_t trees_at_a_time) {
            const std::size_t n_rows = order.shape(0);
            require_tiles(tiles, n_rows, n_trees);
            require(trees_at_a_time > 0, "at least one tree at a time is expected");
            nb::gil_scoped_release released;
            require(std::all_of(order.data(), order.data() + n_rows, [n_rows](std::uint32_t row) { return row < n_rows; }),
                    "the order has a row that is not there");
            ibug::permute_rows(tiles.data(), n_rows, n_trees, order.data(), trees_at_a_time);
        },
        "tiles"_a.noconvert(), "n_trees"_a, "order"_a.noconvert(), "trees_at_a_time"_a,
        "Move the rows in place: to place i the one from place order[i].");

    m.def(
        "find_places",
        [](Array<const Code, 3> tiles, std::size_t n_rows, Array<const std::int32_t, 1> leaf_counts,
           Array<std::uint8_t, 1> masks, Array<std::uint32_t, 2> starts, std::size_t max_words)
            -> std::optional<nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>> {
            const std::size_t n_trees = leaf_counts.shape(0);
            require_tiles(tiles, n_rows, n_trees);
            std::size_t n_leaves = 0;
            for (std::size_t t = 0; t < n_trees; ++t) {
                require(leaf_counts.data()[t] > 0, "every tree must have a leaf");
                n_leaves += static_cast<std::size_t>(leaf_counts.data()[t]);
            }
            require(max_words < 0xffffffffu, "at most 2**32 - 2 words can be told apart");
            require_places(masks, starts, n_leaves, n_rows);
            auto* words = new std::vector<std::uint64_t>;
            nb::capsule owner(words, [](void* p) noexcept { delete static_cast<std::vector<std::uint64_t>*>(p); });
            {
                nb::gil_scoped_release released;
                std::fill(masks.data(), masks.data() + masks.size(), std::uint8_t{0});
                if (!ibug::find_places(tiles.data(), n_rows, n_trees, leaf_counts.data(), max_words, masks.data(),
                                       starts.data(), *words))
                    return std::nullopt;
                words->resize(words->size() + 7);  // so that eight words can be read wherever one is
                words->shrink_to_fit();
            }
            return nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>(words->data(), {words->size()}, owner);
        },
        "tiles"_a.noconvert(), "n_rows"_a, "leaf_counts"_a.noconvert(), "masks"_a.noconvert(),
        "starts"_a.noconvert(), "max_words"_a,
        "Fill `masks` and `starts`, where each leaf occurs, and return their words, or None if there are more than `max_words`.");

    m.def(
        "scan",
        [](Array<const Code, 3> tiles, Array<const std::uint32_t, 1> order, std::size_t n_trees,
           Array<const Code, 2> queries, std::size_t tile_start, std::size_t tile_stop, std::size_t query_start,
           std::size_t query_stop, Array<std::int32_t, 2> affinities, Array<std::int64_t, 2> rows,
           const std::string& instruction_set) {
            const auto index = tiles_of(tiles, order, n_trees);
            const Task task{tile_start, tile_stop, query_start, query_stop, affinities, rows};
            task.check(index, queries, tiles.shape(0), ibug::quad_tiles);
            const ibug::InstructionSet& set = ibug::instruction_set(instruction_set);
            nb::gil_scoped_release released;
            std::vector<std::uint32_t> outputs(query_stop - query_start);
            std::iota(outputs.begin(), outputs.end(), static_cast<std::uint32_t>(query_start));
            ibug::scan(index, queries.data() + query_start * index.width(), outputs.data(), outputs.size(), rows.shape(1),
                       tile_start, tile_stop, affinities.data(), rows.data(), set);
        },
        "tiles"_a.noconvert(), "order"_a.noconvert(), "n_trees"_a, "queries"_a.noconvert(), "tile_start"_a, "tile_stop"_a,
        "query_start"_a, "query_stop"_a, "affinities"_a.noconvert(), "rows"_a.noconvert(), "instruction_set"_a = "",
        "Find the k rows of highest affinity within a range of tiles for a range of queries, best first, ties by row.");

    m.def(
        "search",
        [](Array<const Code, 3> tiles, Array<const std::uint32_t, 1> order, Array<const std::uint8_t, 1> masks,
           Array<const std::uint32_t, 2> starts, Array<const std::uint64_t, 1> words, Array<const std::uint32_t, 1> first_leaf,
           Array<const std::uint32_t, 1> least_row, Array<const Code, 2> queries, std::size_t tile_start,
           std::size_t tile_stop, std::size_t query_start, std::size_t query_stop, std::size_t most_visits,
           Array<std::int32_t, 2> affinities, Array<std::int64_t, 2> rows, Array<std::int64_t, 1> visits,
           const std::string& instruction_set) {
            require(first_leaf.shape(0) > 1, "first_leaf must be (n_trees + 1,)");
            const std::size_t n_trees = first_leaf.shape(0) - 1;
            const auto index = tiles_of(tiles, order, n_trees);
            const Task task{tile_start, tile_stop, query_start, query_stop, affinities, rows};
            task.check(index, queries, tiles.shape(0), ibug::chunk_tiles);
            require_places(masks, starts, first_leaf.data()[n_trees], index.n_rows);
            require(least_row.shape(0) == tiles.shape(0) && visits.shape(0) == queries.shape(0),
                    "least_row must be (n_tiles,), visits (n_queries,)");
            const ibug::Places places{masks.data(), starts.data(), words.data(), ibug::n_chunks_of(index.n_rows)};
            const ibug::Bounds bounds{places, first_leaf.data(), least_row.data()};
            const ibug::InstructionSet& set = ibug::instruction_set(instruction_set);
            nb::gil_scoped_release released;
            ibug::search(index, bounds, queries.data(), rows.shape(1), tile_start, tile_stop, query_start, query_stop,
                         most_visits, affinities.data(), rows.data(), visits.data(), set);
        },
        "tiles"_a.noconvert(), "order"_a.noconvert(), "masks"_a.noconvert(), "starts"_a.noconvert(),
        "words"_a.noconvert(), "first_leaf"_a.noconvert(), "least_row"_a.noconvert(), "queries"_a.noconvert(), "tile_start"_a, "tile_stop"_a,
        "query_start"_a, "query_stop"_a, "most_visits"_a, "affinities"_a.noconvert(), "rows"_a.noconvert(),
        "visits"_a.noconvert(), "instruction_set"_a = "",
        "Find what `scan` finds, but skip the tiles that cannot have a row among the best.");

    m.def(
        "two_stage",
        [](Array<const Code, 3> tiles, Array<const std::uint32_t, 1> order, std::size_t n_trees,
           Array<const Code, 2> queries, std::size_t first_trees, std::size_t n_candidates, std::size_t query_start,
           std::size_t query_stop, Array<std::int32_t, 2> affinities, Array<std::int64_t, 2> rows,
           const std::string& instruction_set) {
            const auto index = tiles_of(tiles, order, n_trees);
            const Task task{0, tiles.shape(0), query_start, query_stop, affinities, rows};
            task.check(index, queries, tiles.shape(0), ibug::quad_tiles);
            require(first_trees > 0 && first_trees % ibug::tree_step == 0, "first_trees must be a multiple of 4");
            require(n_candidates >= rows.shape(1) && n_candidates <= index.n_rows, "from k to n_rows candidates are expected");
            const ibug::InstructionSet& set = ibug::instruction_set(instruction_set);
            nb::gil_scoped_release released;
            ibug::two_stage(index, queries.data(), rows.shape(1), first_trees, n_candidates, query_start, query_stop,
                            affinities.data(), rows.data(), set);
        },
        "tiles"_a.noconvert(), "order"_a.noconvert(), "n_trees"_a, "queries"_a.noconvert(), "first_trees"_a,
        "n_candidates"_a, "query_start"_a, "query_stop"_a, "affinities"_a.noconvert(), "rows"_a.noconvert(),
        "instruction_set"_a = "",
        "Find k rows of high affinity among candidates that the first trees propose.");

    m.def(
        "count_repeatedly",
        [](Array<const Code, 3> tiles, Array<const Code, 2> queries, std::size_t repeats,
           const std::string& instruction_set) {
            require(queries.shape(0) > 0, "at least one query is expected");
            require_tiles(tiles, 0, queries.shape(1));
            require(tiles.shape(0) == ibug::quad_tiles, "four tiles are expected");
            const ibug::InstructionSet& set = ibug::instruction_set(instruction_set);
            nb::gil_scoped_release released;
            return ibug::count_repeatedly(tiles.data(), tiles.shape(1), queries.data(), queries.shape(0), repeats, set);
        },
        "tiles"_a.noconvert(), "queries"_a.noconvert(), "repeats"_a, "instruction_set"_a = "",
        "Run the counting loop of `scan` over four tiles again and again: the peak for benchmarks.");
}

}  // namespace

NB_MODULE(_kernel, m) {
    m.doc() = "Leaf codes and affinity search, compiled. Use ibug.LeafIndex instead.";
    m.attr("TILE_ROWS") = ibug::tile_rows;
    m.attr("QUAD_TILES") = ibug::quad_tiles;
    m.attr("CHUNK_TILES") = ibug::chunk_tiles;
    m.attr("TREE_STEP") = ibug::tree_step;
    m.attr("MAX_TREES") = ibug::max_trees;
    m.def(
        "instruction_sets",
        [] {
            std::vector<std::string> names;
            for (const ibug::InstructionSet* set : ibug::instruction_sets()) names.emplace_back(set->name);
            return names;
        },
        "The instruction sets that this build and this machine share, best last.");
    m.def(
        "least_queries", [](const std::string& name) { return ibug::instruction_set(name).least_queries; },
        "instruction_set"_a = "", "From so many queries on, full scans of one-byte codes share bitmaps of the queries' leaves.");
    m.def(
        "check_places",
        [](Array<const std::uint8_t, 1> masks, Array<const std::uint32_t, 2> starts, std::size_t n_rows,
           std::size_t n_words) {
            require_places(masks, starts, starts.shape(0), n_rows);
            nb::gil_scoped_release released;
            const std::size_t n_chunks = ibug::n_chunks_of(n_rows);
            std::size_t next = 0;
            for (std::size_t i = 0; i < starts.shape(0) * n_chunks; ++i) {
                const std::size_t leaf = i / n_chunks, chunk = i % n_chunks;
                if (chunk % 8 == 0 && starts.data()[leaf * starts.shape(1) + chunk / 8] != next) return false;
                next += static_cast<std::size_t>(std::popcount(masks.data()[i]));
            }
            return next + 7 == n_words;
        },
        "masks"_a.noconvert(), "starts"_a.noconvert(), "n_rows"_a, "n_words"_a,
        "Whether every leaf's words are among `n_words`, one after the other, and seven more behind them.");
    register_numbering(m);
    register_codes<std::uint8_t>(m);
    register_codes<std::uint16_t>(m);
    register_codes<std::uint32_t>(m);
}
