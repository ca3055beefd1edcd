// The experts of the submodule `stack`.
#include "stack/experts.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bindings/common.hpp"

namespace nb = nanobind;
namespace stack = ibug::stack;
using namespace nb::literals;

namespace {

using ibug::Array;
using ibug::require;
using ibug::require_range;
using ibug::view;
using Vector = Array<const double, 1>;
using Table = Array<const double, 2>;
using Whole = Array<const std::int64_t, 1>;
using Out = Array<double, 2>;

stack::Experts experts(const Whole& k, const Vector& sharpness, std::size_t most) {
    require(k.shape(0) == sharpness.shape(0), "each expert needs k and sharpness");
    require(k.shape(0) == 0 || most > 0, "an expert needs neighbours");
    for (const std::int64_t each : view(k)) require(each > 0, "an expert needs one neighbour at least");
    return {view(k), view(sharpness)};
}

stack::Neighbors neighbors(const Vector& loc, const Table& targets, const Table& moved, const Table& shares,
                           const Table& counts) {
    const std::size_t n = loc.shape(0);
    require(targets.shape(0) == n && moved.shape(0) == n && shares.shape(0) == n, "all arrays need the same rows");
    require(shares.shape(1) >= targets.shape(1) && shares.shape(1) >= moved.shape(1),
            "each neighbour needs the share of trees");
    require(counts.shape(0) == n && (counts.shape(1) == 0 || counts.shape(1) == shares.shape(1)),
            "each neighbour counts for something, or all alike");
    return {view(loc), view(targets), view(moved), view(shares), view(counts)};
}

}  // namespace

void ibug::register_experts(nb::module_& m) {
    m.def(
        "all_finite",
        [](Vector loc, Table targets, Table moved, Table shares, Table counts) {
            nb::gil_scoped_release released;
            const auto finite = [](const auto& array) { return stack::all_finite({array.data(), array.size()}); };
            return finite(loc) && finite(targets) && finite(moved) && finite(shares) && finite(counts);
        },
        "loc"_a.noconvert(), "targets"_a.noconvert(), "moved"_a.noconvert(), "shares"_a.noconvert(),
        "counts"_a.noconvert(), "Tell whether no number is infinite or missing.");
    m.def(
        "combine",
        [](Vector loc, Table targets, Table moved, Table shares, Table counts, Whole target_k, Vector target_sharpness,
           Vector target_weights, Whole residual_k, Vector residual_sharpness, Vector residual_weights,
           std::size_t start, std::size_t stop, Out atoms, Array<float, 2> masses) {
            const stack::Neighbors near = neighbors(loc, targets, moved, shares, counts);
            const stack::Experts on_targets = experts(target_k, target_sharpness, targets.shape(1));
            const stack::Experts on_residuals = experts(residual_k, residual_sharpness, moved.shape(1));
            require(target_weights.shape(0) == on_targets.n() && residual_weights.shape(0) == on_residuals.n(),
                    "each expert needs a weight");
            const std::size_t n = targets.shape(1) + moved.shape(1);
            require(atoms.shape(0) == loc.shape(0) && masses.shape(0) == loc.shape(0) && atoms.shape(1) == n &&
                        masses.shape(1) == n,
                    "the results must be (n, n_targets + n_residuals)");
            require_range(start, stop, loc.shape(0));
            nb::gil_scoped_release released;
            stack::combine(near, on_targets, view(target_weights), on_residuals, view(residual_weights), start, stop,
                           view(atoms), view(masses));
        },
        "loc"_a.noconvert(), "targets"_a.noconvert(), "moved"_a.noconvert(), "shares"_a.noconvert(),
        "counts"_a.noconvert(), "target_k"_a.noconvert(), "target_sharpness"_a.noconvert(),
        "target_weights"_a.noconvert(), "residual_k"_a.noconvert(), "residual_sharpness"_a.noconvert(),
        "residual_weights"_a.noconvert(), "start"_a, "stop"_a, "atoms"_a.noconvert(), "masses"_a.noconvert(),
        "Write each row's sorted atoms and their masses.");
    m.def(
        "compare",
        [](Vector loc, Table targets, Table moved, Table shares, Table counts, Whole target_k, Vector target_sharpness,
           Whole residual_k, Vector residual_sharpness, Vector scale, Vector y, Vector errors, Vector bandwidths,
           double error_bandwidth, double least, Vector support, std::size_t start, std::size_t stop, Out to_target,
           Out to_each_other, Array<double, 3> log_density) {
            const stack::Neighbors near = neighbors(loc, targets, moved, shares, counts);
            const stack::Experts on_targets = experts(target_k, target_sharpness, targets.shape(1));
            const stack::Experts on_residuals = experts(residual_k, residual_sharpness, moved.shape(1));
            const std::size_t n = loc.shape(0);
            require(scale.shape(0) == n && y.shape(0) == n && support.shape(0) == 2, "all arrays need the same rows");
            const stack::Comparison with = {view(scale),     view(y), view(errors),      view(bandwidths),
                                            error_bandwidth, least,   support.data()[0], support.data()[1]};
            const std::size_t j = 1 + (errors.shape(0) > 0) + on_targets.n() + on_residuals.n();
            require(to_target.shape(0) == n && to_target.shape(1) == j && to_each_other.shape(0) == n &&
                        to_each_other.shape(1) == j * (j + 1) / 2 && log_density.shape(0) == n &&
                        log_density.shape(1) == bandwidths.shape(0) && log_density.shape(2) == j,
                    "the results must fit the experts");
            require_range(start, stop, n);
            nb::gil_scoped_release released;
            stack::compare(near, on_targets, on_residuals, with, start, stop, view(to_target), view(to_each_other),
                           view(log_density));
        },
        "loc"_a.noconvert(), "targets"_a.noconvert(), "moved"_a.noconvert(), "shares"_a.noconvert(),
        "counts"_a.noconvert(), "target_k"_a.noconvert(), "target_sharpness"_a.noconvert(), "residual_k"_a.noconvert(),
        "residual_sharpness"_a.noconvert(), "scale"_a.noconvert(), "y"_a.noconvert(), "errors"_a.noconvert(),
        "bandwidths"_a.noconvert(), "error_bandwidth"_a, "least"_a, "support"_a.noconvert(), "start"_a, "stop"_a,
        "to_target"_a.noconvert(), "to_each_other"_a.noconvert(), "log_density"_a.noconvert(),
        "Write the distances of the experts to y and to each other, and their log densities at y.");
}
