// The mixtures of the submodule `stack`.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bindings/common.hpp"
#include "stack/density.hpp"
#include "stack/distances.hpp"

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
using Masses = Array<const float, 2>;
using Out = Array<double, 2>;
using OutVector = Array<double, 1>;

// The arrays of a batch of mixtures, checked once and kept alive while it lives.
class MixtureArrays {
   public:
    MixtureArrays(Vector loc, Vector scale, Table atoms, Masses masses, Vector errors, Vector weights, Vector support)
        : loc_(loc), scale_(scale), atoms_(atoms), masses_(masses), errors_(errors) {
        const std::size_t n = loc.shape(0);
        require(scale.shape(0) == n && atoms.shape(0) == n && masses.shape(0) == n,
                "all parameters need the same rows");
        require(masses.shape(1) == atoms.shape(1), "each atom needs a mass");
        require(weights.shape(0) == 3 && support.shape(0) == 2, "weights must be (3,) and the support (2,)");
        const double* w = weights.data();
        require(!(w[1] > 0.0) || errors.shape(0) > 0, "a weight for errors needs errors");
        require(!(w[2] > 0.0) || atoms.shape(1) > 0, "a weight for atoms needs atoms");
        all_ = {view(loc), view(scale), view(atoms), view(masses),      view(errors),
                w[0],      w[1],        w[2],        support.data()[0], support.data()[1]};
    }

    void tails(Table x, std::size_t start, std::size_t stop, Out below, Out above) const {
        check(x, below, start, stop);
        check(x, above, start, stop);
        nb::gil_scoped_release released;
        stack::tails(all_, view(x), start, stop, view(below), view(above));
    }

    void quantiles(Table p, Table q, std::size_t start, std::size_t stop, Out out) const {
        check(p, out, start, stop);
        check(q, out, start, stop);
        nb::gil_scoped_release released;
        stack::quantiles(all_, view(p), view(q), start, stop, view(out));
    }

    void crps(Table y, std::size_t start, std::size_t stop, Out out) const {
        check(y, out, start, stop);
        nb::gil_scoped_release released;
        stack::crps(all_, view(y), start, stop, view(out));
    }

    void log_densities(double error_bandwidth, double bandwidth, double least, bool tailed, Table x, std::size_t start,
                       std::size_t stop, Out out) const {
        check(x, out, start, stop);
        nb::gil_scoped_release released;
        stack::log_densities(all_, {error_bandwidth, bandwidth, least, tailed}, view(x), start, stop, view(out));
    }

    void moments(std::size_t start, std::size_t stop, OutVector mean, OutVector deviation) const {
        require(mean.shape(0) == loc_.shape(0) && deviation.shape(0) == loc_.shape(0), "the results must be (n,)");
        require_range(start, stop, loc_.shape(0));
        nb::gil_scoped_release released;
        stack::moments(all_, start, stop, view(mean), view(deviation));
    }

   private:
    void check(const Table& argument, const Out& out, std::size_t start, std::size_t stop) const {
        require(
            argument.shape(0) == loc_.shape(0) && out.shape(0) == loc_.shape(0) && out.shape(1) == argument.shape(1),
            "arguments and results must be (n, m)");
        require_range(start, stop, loc_.shape(0));
    }

    Vector loc_, scale_;
    Table atoms_;
    Masses masses_;
    Vector errors_;
    stack::Mixtures all_;
};

}  // namespace

void ibug::register_mixtures(nb::module_& m) {
    nb::class_<MixtureArrays>(m, "Mixtures",
                              "A normal part, pooled errors and atoms for each row; checked once, and kept alive.")
        .def(nb::init<Vector, Vector, Table, Masses, Vector, Vector, Vector>(), "loc"_a.noconvert(),
             "scale"_a.noconvert(), "atoms"_a.noconvert(), "masses"_a.noconvert(), "errors"_a.noconvert(),
             "weights"_a.noconvert(), "support"_a.noconvert())
        .def("tails", &MixtureArrays::tails, "x"_a.noconvert(), "start"_a, "stop"_a, "below"_a.noconvert(),
             "above"_a.noconvert(), "Write the probabilities of at most x and of more than x.")
        .def("quantiles", &MixtureArrays::quantiles, "p"_a.noconvert(), "q"_a.noconvert(), "start"_a, "stop"_a,
             "out"_a.noconvert(), "Write the quantiles with probability p below and q above.")
        .def("crps", &MixtureArrays::crps, "y"_a.noconvert(), "start"_a, "stop"_a, "out"_a.noconvert(),
             "Write the continuous ranked probability scores at y.")
        .def("log_densities", &MixtureArrays::log_densities, "error_bandwidth"_a, "bandwidth"_a, "least"_a, "tailed"_a,
             "x"_a.noconvert(), "start"_a, "stop"_a, "out"_a.noconvert(), "Write the smoothed log densities at x.")
        .def("moments", &MixtureArrays::moments, "start"_a, "stop"_a, "mean"_a.noconvert(), "deviation"_a.noconvert(),
             "Write means and standard deviations.");
    m.def(
        "mean_distances",
        [](Array<const double, 3> points, Array<const double, 3> masses, Table y, std::size_t start, std::size_t stop,
           Out to_target, Array<double, 3> to_each_other) {
            const std::size_t n = points.shape(0), j = masses.shape(1);
            require(masses.shape(0) == n && y.shape(0) == n, "all arrays need the same rows");
            require(masses.shape(2) == points.shape(1), "each point needs a mass of each measure");
            require(y.shape(1) == points.shape(2), "points and targets need the same number of coordinates");
            require(to_target.shape(0) == n && to_target.shape(1) == j && to_each_other.shape(0) == n &&
                        to_each_other.shape(1) == j && to_each_other.shape(2) == j,
                    "the results must fit the measures");
            require_range(start, stop, n);
            const stack::Points all = {view(points), view(masses), view(y), points.shape(1), j};
            nb::gil_scoped_release released;
            stack::mean_distances(all, start, stop, view(to_target), view(to_each_other));
        },
        "points"_a.noconvert(), "masses"_a.noconvert(), "y"_a.noconvert(), "start"_a, "stop"_a,
        "to_target"_a.noconvert(), "to_each_other"_a.noconvert(),
        "Write the mean distances of weighted points to y, and of each two measures on them.");
}
