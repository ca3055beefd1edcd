// The functions that build an index. Each checks that its arrays fit together, releases the GIL and runs in the
// caller's thread.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bindings/common.hpp"
#include "bindings/search.hpp"
#include "search/codes.hpp"
#include "search/full_scan.hpp"
#include "search/layout.hpp"
#include "search/order.hpp"
#include "search/places.hpp"

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

// What `find_places` found for an index that had only some of the rows, of which the first have not moved.
struct PlacesBefore {
    Array<const std::uint8_t, 1> masks;
    Array<const std::uint32_t, 2> starts;
    Array<const std::uint64_t, 1> words;
    Array<const std::int32_t, 1> leaf_counts;
    std::size_t n_rows;  // of that index
    std::size_t n_same;  // those that have not moved

    // Raises ValueError where something could be read that is not there.
    Before checked(const Array<const std::int32_t, 1>& counts, std::size_t n_rows_after) const {
        const std::size_t n_chunks = n_chunks_of(n_rows);
        require(is_aligned(starts) && is_aligned(words) && is_aligned(leaf_counts), "arrays of before must be aligned");
        require(leaf_counts.shape(0) == counts.shape(0) && n_same <= n_rows && n_rows <= n_rows_after,
                "an index has as many trees and no fewer rows than before");
        std::size_t n_leaves = 0;
        for (std::size_t t = 0; t < counts.shape(0); ++t) {
            require(leaf_counts.data()[t] >= 0 && leaf_counts.data()[t] <= counts.data()[t],
                    "a tree has no fewer leaves than before");
            n_leaves += static_cast<std::size_t>(leaf_counts.data()[t]);
        }
        require(masks.shape(0) == n_leaves * n_chunks + 7 && starts.shape(0) == n_leaves &&
                    starts.shape(1) == (n_chunks + 7) / 8,
                "masks and starts of before do not fit its leaves");
        const Places places{masks.data(), starts.data(), words.data(), n_chunks};
        require(fit_together(places, n_leaves, words.shape(0)),
                "masks, starts and words of before do not fit together");
        return {places, view(leaf_counts), n_same / superblock_rows};
    }
};

void register_places(nb::module_& m) {
    nb::class_<PlacesBefore>(m, "PlacesBefore", "Where leaves occurred in an index that had fewer rows.")
        .def(
            "__init__",
            [](PlacesBefore* self, Array<const std::uint8_t, 1> masks, Array<const std::uint32_t, 2> starts,
               Array<const std::uint64_t, 1> words, Array<const std::int32_t, 1> leaf_counts, std::size_t n_rows,
               std::size_t n_same) { new (self) PlacesBefore{masks, starts, words, leaf_counts, n_rows, n_same}; },
            "masks"_a.noconvert(), "starts"_a.noconvert(), "words"_a.noconvert(), "leaf_counts"_a.noconvert(),
            "n_rows"_a, "n_same"_a);
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
        "order_rows",
        [](Array<const Code, 3> tiles, std::size_t n_trees, std::size_t n_sampled, Array<std::uint32_t, 1> order) {
            require_tiles(tiles, order.shape(0), n_trees);
            require(n_sampled > 0 && n_sampled <= n_trees && n_sampled <= 1024,
                    "a sample has from one to all trees, at most 1024");
            nb::gil_scoped_release released;
            const auto sample = sample_trees(tiles.data(), order.shape(0), n_trees, n_sampled);
            Bisection({sample.data(), order.shape(0), n_sampled}).write(view(order));
        },
        "tiles"_a.noconvert(), "n_trees"_a, "n_sampled"_a, "order"_a.noconvert(),
        "Find an order of the rows that keeps similar ones together, by some of the trees.");

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
        "find_places",
        [](Array<const Code, 3> tiles, std::size_t n_rows, Array<const std::int32_t, 1> leaf_counts,
           Array<std::uint8_t, 1> masks, Array<std::uint32_t, 2> starts, std::size_t max_words,
           const std::optional<PlacesBefore>& before)
            -> std::optional<nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>> {
            require_tiles(tiles, n_rows, leaf_counts.shape(0));
            std::size_t n_leaves = 0;
            for (const std::int32_t count : view(leaf_counts)) {
                require(count > 0, "every tree must have a leaf");
                n_leaves += static_cast<std::size_t>(count);
            }
            require(max_words < 0xffffffffu, "at most 2**32 - 2 words can be told apart");
            const std::size_t n_chunks = n_chunks_of(n_rows);
            require(masks.shape(0) == n_leaves * n_chunks + 7 && starts.shape(0) == n_leaves &&
                        starts.shape(1) == (n_chunks + 7) / 8,
                    "masks must be (n_leaves * n_chunks + 7,), starts (n_leaves, n_chunks / 8 rounded up)");
            std::optional<Before> known;
            if (before) known = before->checked(leaf_counts, n_rows);
            auto* words = new std::vector<std::uint64_t>;
            nb::capsule owner(words, [](void* p) noexcept { delete static_cast<std::vector<std::uint64_t>*>(p); });
            {
                nb::gil_scoped_release released;
                std::fill(masks.data(), masks.data() + masks.size(), std::uint8_t{0});
                if (!find_places(tiles.data(), n_rows, view(leaf_counts), max_words, masks.data(), starts.data(),
                                 *words, known ? &*known : nullptr))
                    return std::nullopt;
                words->resize(words->size() + 7);  // so that eight words can be read wherever one is
                words->shrink_to_fit();
            }
            return nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>(words->data(), {words->size()}, owner);
        },
        "tiles"_a.noconvert(), "n_rows"_a, "leaf_counts"_a.noconvert(), "masks"_a.noconvert(), "starts"_a.noconvert(),
        "max_words"_a, "before"_a = nb::none(),
        "Fill `masks` and `starts`, where each leaf occurs, and return their words, or None if there are more than "
        "`max_words`. `before` has what was found for the first rows.");

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
    register_places(m);
    register_codes<std::uint8_t>(m);
    register_codes<std::uint16_t>(m);
    register_codes<std::uint32_t>(m);
}

}  // namespace ibug
