// The submodule `spread`: variances of neighbours' values.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

#include "bindings/common.hpp"
#include "spread/spreads.hpp"

namespace nb = nanobind;
namespace spread = ibug::spread;
using namespace nb::literals;

namespace {

using ibug::Array;
using ibug::require;
using ibug::view;
using Vector = Array<const double, 1>;
using Strided = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;

}  // namespace

void ibug::register_spread(nb::module_& m) {
    m.def(
        "prefix_variances",
        [](Strided values, Array<const std::int64_t, 1> ks, bool centered, Array<double, 2> out) {
            const std::size_t n = values.shape(0), width = values.shape(1);
            require(n == 0 || width < 2 || values.stride(1) == 1, "the values of a row must lie side by side");
            require(n < 2 || values.stride(0) >= 0, "rows must lie one after the other");
            require(out.shape(0) == n && out.shape(1) == ks.shape(0), "the result must be (n, n_ks)");
            for (std::size_t j = 0; j < ks.shape(0); ++j)
                require(
                    ks.data()[j] >= (j == 0 ? 1 : ks.data()[j - 1]) && ks.data()[j] <= static_cast<std::int64_t>(width),
                    "numbers of neighbours must be ascending, from 1 to those there are");
            const spread::Rows rows = {values.data(), n, n < 2 ? 0 : static_cast<std::size_t>(values.stride(0))};
            nb::gil_scoped_release released;
            spread::prefix_variances(rows, view(ks), centered, view(out));
        },
        "values"_a.noconvert(), "ks"_a.noconvert(), "centered"_a, "out"_a.noconvert(),
        "Write the variance of each row's first values, for several numbers of them.");
    m.def(
        "combine",
        [](Array<const double, 2> variances, Vector floors, Vector centers, Vector lowest, Vector highest,
           Vector exponents, double intercept, Array<double, 1> out) {
            const std::size_t n = variances.shape(1);
            require(n > 0 && floors.shape(0) == n && centers.shape(0) == n && lowest.shape(0) == n &&
                        highest.shape(0) == n && exponents.shape(0) == n,
                    "each spread needs a floor, a center, a range and an exponent");
            require(out.shape(0) == variances.shape(0), "the result must have one number for each row");
            const spread::Combination with = {view(floors),  view(centers),   view(lowest),
                                              view(highest), view(exponents), intercept};
            nb::gil_scoped_release released;
            spread::combine(with, view(variances), view(out));
        },
        "variances"_a.noconvert(), "floors"_a.noconvert(), "centers"_a.noconvert(), "lowest"_a.noconvert(),
        "highest"_a.noconvert(), "exponents"_a.noconvert(), "intercept"_a, "out"_a.noconvert(),
        "Write the combined variance of each row.");
}
