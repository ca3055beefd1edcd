// The submodule `refit`: leaf values without the row itself.
#include <string>
#include <type_traits>

#include "bindings/common.hpp"
#include "refit/leave_one_out.hpp"

namespace nb = nanobind;
namespace refit = ibug::refit;
using namespace nb::literals;
using ibug::Array;
using ibug::require;
using ibug::require_range;
using ibug::view;

namespace {

using Vector = Array<const double, 1>;
using Weights = Array<const double, 2>;
using Whole = Array<const std::int64_t, 1>;
using OutVector = Array<double, 1>;

// Call a function with the loss of this name.
template <class Function>
void with_loss(const std::string& name, double parameter, const Function& function) {
    if (name == "squared") return function(refit::Squared{});
    if (name == "huber") return function(refit::Huber{parameter});
    if (name == "pseudo_huber") return function(refit::PseudoHuber{parameter});
    if (name == "poisson") return function(refit::Poisson{parameter});
    if (name == "gamma") return function(refit::Gamma{});
    if (name == "tweedie") return function(refit::Tweedie{parameter});
    throw std::invalid_argument("there is no loss of this name");
}

// Check everything that a position is made of, the codes of the rows from start to stop included.
template <class Code>
refit::Trees<Code> checked_trees(const Array<const Code, 2>& codes, const Whole& first, const Vector& values,
                                 std::size_t n_rows, std::size_t start, std::size_t stop) {
    const std::size_t n_trees = codes.shape(0);
    require_range(start, stop, n_rows);
    require(n_rows <= codes.shape(1), "each row needs a leaf in each tree");
    require(first.shape(0) == n_trees + 1 && first.data()[0] == 0, "each tree needs a first leaf, from 0 on");
    for (std::size_t tree = 0; tree < n_trees; ++tree) {
        const std::int64_t n_leaves = first.data()[tree + 1] - first.data()[tree];
        require(n_leaves > 0, "each tree needs a leaf");
        Code largest = 0;
        for (const Code code : view(codes)[tree].subspan(start, stop - start)) largest = std::max(largest, code);
        require(static_cast<std::int64_t>(largest) < n_leaves, "a row is in a leaf that its tree does not have");
    }
    require(values.shape(0) == static_cast<std::size_t>(first.data()[n_trees]), "each leaf needs a value");
    return {view(codes), view(first), view(values)};
}

refit::Rows checked_rows(const Vector& targets, const Weights& weights, bool single, std::size_t n_trees) {
    const std::size_t n = weights.shape(0);
    require(n == 0 || n == 1 || n == n_trees, "weights are those of each tree, or of all, or there are none");
    require(n == 0 || weights.shape(1) == targets.shape(0), "each row needs a weight, or none has one");
    return {view(targets), view(weights), single};
}

template <class Code>
void register_code(nb::module_& m) {
    m.def(
        "leaf_sums",
        [](Array<const Code, 2> codes, Whole first, Vector values, Vector targets, Weights weights, bool single,
           const std::string& loss, double parameter, Vector raw, std::size_t start, std::size_t stop,
           Array<double, 3> sums, Array<double, 2> sizes) {
            const std::size_t n = targets.shape(0);
            const refit::Trees<Code> trees = checked_trees<Code>(codes, first, values, n, start, stop);
            const refit::Rows rows = checked_rows(targets, weights, single, trees.n_trees());
            require(raw.shape(0) == n, "each row needs a raw prediction");
            require(sums.shape(0) == values.shape(0) && sums.shape(1) == refit::lanes && sums.shape(2) == 2,
                    "the sums must be (n_leaves, LANES, 2)");
            require(sizes.shape(0) == trees.n_trees() && sizes.shape(1) == 2, "the sizes must be (n_trees, 2)");
            nb::gil_scoped_release released;
            with_loss(loss, parameter, [&](const auto& slopes) {
                refit::leaf_sums(trees, rows, slopes, view(raw), start, stop, sums.data(), view(sizes));
            });
        },
        "codes"_a.noconvert(), "first"_a.noconvert(), "values"_a.noconvert(), "targets"_a.noconvert(),
        "weights"_a.noconvert(), "single"_a, "loss"_a, "parameter"_a, "raw"_a.noconvert(), "start"_a, "stop"_a,
        "sums"_a.noconvert(), "sizes"_a.noconvert(),
        "Add each leaf's sums of gradients and hessians over some rows, and each tree's of their sizes.");
    m.def(
        "leave_out",
        [](Array<const Code, 2> codes, Whole first, Vector values, Vector targets, Weights weights, bool single,
           const std::string& loss, double parameter, Vector rates, Vector l2, double l1, double max_step,
           Array<const double, 2> sums, std::size_t start, std::size_t stop, OutVector raw, OutVector left_out) {
            const std::size_t n = targets.shape(0);
            const refit::Trees<Code> trees = checked_trees<Code>(codes, first, values, n, start, stop);
            const refit::Rows rows = checked_rows(targets, weights, single, trees.n_trees());
            require(raw.shape(0) == n && left_out.shape(0) == n, "each row needs two raw predictions");
            require(rates.shape(0) == trees.n_trees(), "each tree needs a rate");
            require(sums.shape(0) == values.shape(0) && sums.shape(1) == 2, "the sums must be (n_leaves, 2)");
            require(l2.shape(0) == values.shape(0), "each leaf needs a penalty");
            const refit::Formula formula = {view(rates), view(l2), l1, max_step};
            nb::gil_scoped_release released;
            with_loss(loss, parameter, [&](const auto& slopes) {
                const auto leaves = view(sums);
                if (slopes.unit_hessian && rows.weights.n_rows == 0 && formula.is_linear())
                    refit::leave_out_linear(trees, rows, slopes, formula, leaves, start, stop, view(raw),
                                            view(left_out));
                else
                    refit::leave_out(trees, rows, slopes, formula, leaves, start, stop, view(raw), view(left_out));
            });
        },
        "codes"_a.noconvert(), "first"_a.noconvert(), "values"_a.noconvert(), "targets"_a.noconvert(),
        "weights"_a.noconvert(), "single"_a, "loss"_a, "parameter"_a, "rates"_a.noconvert(), "l2"_a.noconvert(), "l1"_a,
        "max_step"_a, "sums"_a.noconvert(), "start"_a, "stop"_a, "raw"_a.noconvert(), "left_out"_a.noconvert(),
        "Move the raw predictions of some rows on by all trees: the model's, and those without the row itself.");
}

}  // namespace

void ibug::register_refit(nb::module_& m) {
    m.attr("LANES") = refit::lanes;
    register_code<std::uint8_t>(m);
    register_code<std::uint16_t>(m);
    register_code<std::uint32_t>(m);
}
