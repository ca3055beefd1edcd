// The submodule `walk`: trees that are walked by many rows at once.
#include "walk/walk.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "bindings/common.hpp"
#include "walk/forest.hpp"
#include "walk/forest_builder.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using ibug::Array;
using ibug::require;

const ibug::Tables<ibug::Walks>& all_walks() {
    using namespace ibug;
    static const Tables<Walks> tables(IBUG_TABLES(walks));
    return tables;
}

using Bytes = Array<const std::uint8_t, 2>;
using Offsets = Array<const std::int64_t, 1>;

ibug::Nodes nodes_of(const Offsets& first, const Bytes& nodes) {
    require(nodes.shape(1) == sizeof(ibug::Node), "nodes must be records of 40 bytes");
    require(reinterpret_cast<std::uintptr_t>(nodes.data()) % alignof(ibug::Node) == 0, "nodes must be aligned");
    require(first.shape(0) > 1 && first.data()[0] == 0, "at least one tree is expected, beginning at node 0");
    for (std::size_t t = 0; t + 1 < first.shape(0); ++t)
        require(first.data()[t] <= first.data()[t + 1], "trees must come one after another");
    require(first.data()[first.shape(0) - 1] == static_cast<std::int64_t>(nodes.shape(0)),
            "nodes do not fit the trees");
    return {first.shape(0) - 1, first.data(), reinterpret_cast<const ibug::Node*>(nodes.data())};
}

using Integers = Array<const std::int32_t, 1>;

ibug::CategorySets sets_of(const Offsets& first, const Integers& members, const Integers& n_categories,
                           std::size_t n_features) {
    require(first.shape(0) > 0 && first.data()[0] == 0, "sets of categories begin at 0");
    for (std::size_t s = 0; s + 1 < first.shape(0); ++s)
        require(first.data()[s] <= first.data()[s + 1], "sets of categories must come one after another");
    require(first.data()[first.shape(0) - 1] == static_cast<std::int64_t>(members.shape(0)),
            "members do not fit the sets");
    require(n_categories.shape(0) == n_features, "n_categories must be (n_features,)");
    for (std::size_t f = 0; f < n_features; ++f)
        require(n_categories.data()[f] >= 0 && n_categories.data()[f] <= ibug::most_categories, "too many categories");
    return {first.shape(0) - 1, first.data(), members.data(), n_categories.data()};
}

ibug::ChosenTrees chosen_of(const ibug::Forest& forest, const std::optional<Integers>& trees) {
    if (!trees) return {nullptr, forest.trees.size()};
    for (std::size_t i = 0; i < trees->shape(0); ++i)
        require(trees->data()[i] >= 0 && static_cast<std::size_t>(trees->data()[i]) < forest.trees.size(),
                "a chosen tree is not there");
    return {trees->data(), trees->shape(0)};
}

template <class T>
void register_rows(nb::class_<ibug::Forest>& forest) {
    forest.def(
        "walk",
        [](const ibug::Forest& self, Array<const T, 2> rows, std::size_t start, std::size_t stop,
           Array<std::int32_t, 2> leaves, Array<double, 1> sums, const std::string& instruction_set,
           std::optional<Integers> trees) {
            const ibug::ChosenTrees chosen = chosen_of(self, trees);
            require(rows.shape(1) == self.reading.n_features, "the rows have another number of features");
            require(start <= stop && stop <= rows.shape(0), "the range exceeds the rows");
            require(leaves.shape(0) == rows.shape(0) && leaves.shape(1) == chosen.n && sums.shape(0) == rows.shape(0),
                    "leaves must be (n_rows, n_trees), sums (n_rows,)");
            const ibug::Walks& walks = all_walks().choose(instruction_set);
            ibug::RowsView view{nullptr, nullptr, rows.shape(1)};
            if constexpr (std::is_same_v<T, float>)
                view.floats = rows.data();
            else
                view.doubles = rows.data();
            const ibug::WalkFunction walk = self.fits_bytes() ? walks.walk8 : walks.walk16;
            nb::gil_scoped_release released;
            std::vector<std::byte> memory(walk_memory(self));
            return walk(self, chosen, view, start, stop, leaves.data(), sums.data(), memory.data());
        },
        "rows"_a.noconvert(), "start"_a, "stop"_a, "leaves"_a.noconvert(), "sums"_a.noconvert(),
        "instruction_set"_a = "", "trees"_a.noconvert() = nb::none(),
        "Write leaf numbers and sums of leaf values of a range of rows, in all trees or the given ones; return False "
        "where a row cannot be taken.");
}

}  // namespace

void ibug::register_walk(nb::module_& m) {
    ibug::register_instruction_sets(m, all_walks());

    // In single precision, by the functions of the C library, as XGBoost does it.
    m.def(
        "exp",
        [](Array<float, 1> values) {
            for (std::size_t i = 0; i < values.shape(0); ++i) values.data()[i] = std::exp(values.data()[i]);
        },
        "values"_a.noconvert(), "Replace values by their exponentials.");
    m.def(
        "log",
        [](Array<float, 1> values) {
            for (std::size_t i = 0; i < values.shape(0); ++i) values.data()[i] = std::log(values.data()[i]);
        },
        "values"_a.noconvert(), "Replace values by their logarithms.");

    nb::class_<ibug::Reading>(m, "Reading", "How a library reads a row.")
        .def(nb::init<>())
        .def_rw("n_features", &ibug::Reading::n_features)
        .def_rw("single", &ibug::Reading::single)
        .def_rw("tiny_is_zero", &ibug::Reading::tiny_is_zero)
        .def_rw("refuse_infinite", &ibug::Reading::refuse_infinite)
        .def_rw("single_sums", &ibug::Reading::single_sums)
        .def_rw("members_left", &ibug::Reading::members_left)
        .def_rw("others_as_missing", &ibug::Reading::others_as_missing)
        .def_rw("truncated", &ibug::Reading::truncated)
        .def_rw("missing", &ibug::Reading::missing)
        .def_rw("start", &ibug::Reading::start);

    auto forest = nb::class_<ibug::Forest>(m, "Forest", "Trees ready to be walked.");
    forest.def_static(
        "build",
        [](Offsets first, Bytes nodes, Offsets first_member, Integers members, Integers n_categories,
           const ibug::Reading& reading) {
            const ibug::CategorySets sets = sets_of(first_member, members, n_categories, reading.n_features);
            return ibug::ForestBuilder(nodes_of(first, nodes), sets, reading).build();
        },
        "first"_a.noconvert(), "nodes"_a.noconvert(), "first_member"_a.noconvert(), "members"_a.noconvert(),
        "n_categories"_a.noconvert(), "reading"_a,
        "Make trees of nodes, tree t having those from first[t] to first[t + 1], and sets of categories likewise.");
    forest.def_static(
        "build_oblivious",
        [](Offsets first, Bytes levels, Array<const double, 1> values, const ibug::Reading& reading) {
            return ibug::ForestBuilder(nodes_of(first, levels), {0, nullptr, nullptr, nullptr}, reading)
                .build_oblivious(values.data(), values.shape(0));
        },
        "first"_a.noconvert(), "levels"_a.noconvert(), "values"_a.noconvert(), "reading"_a,
        "Make oblivious trees of one split per level and 2**levels leaf values each.");
    forest.def_prop_ro("n_trees", [](const ibug::Forest& self) { return self.trees.size(); });
    forest.def_prop_ro(
        "bits", [](const ibug::Forest& self) { return self.fits_bytes() ? 8 : 16; },
        "The width of ranks and leaf codes in bits.");
    register_rows<double>(forest);
    register_rows<float>(forest);
}
