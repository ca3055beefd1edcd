// The extension module `ibug.distributions._likelihood`. Each function checks that its arrays fit together, releases the
// GIL and runs in the caller's thread.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "ibug/likelihood.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T, std::size_t n_dim>
using Array = nb::ndarray<T, nb::ndim<n_dim>, nb::c_contig, nb::device::cpu>;
using Values = Array<const double, 2>;
using PerRow = Array<const double, 1>;
using Out = Array<double, 1>;

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

const std::vector<const ibug::Likelihood*>& instruction_sets() {
    static const std::vector<const ibug::Likelihood*> sets = [] {
        std::vector<const ibug::Likelihood*> found = {&ibug::likelihood_baseline};
#ifdef IBUG_X86
        const ibug::X86Features has;
        if (has.avx2) found.push_back(&ibug::likelihood_avx2);
        if (has.avx512) found.push_back(&ibug::likelihood_avx512);
#endif
        return found;
    }();
    return sets;
}

// By name, or the best one for an empty name.
const ibug::Likelihood& likelihood(const std::string& name) {
    if (name.empty()) return *instruction_sets().back();
    for (const ibug::Likelihood* set : instruction_sets())
        if (name == set->name) return *set;
    throw std::invalid_argument("instruction set '" + name + "' is not available on this machine");
}

ibug::Law law_of(const std::string& name) {
    if (name == "logistic") return ibug::Law::logistic;
    if (name == "gumbel") return ibug::Law::gumbel;
    if (name == "student_t") return ibug::Law::student_t;
    if (name == "skewnormal") return ibug::Law::skew_normal;
    throw std::invalid_argument("no compiled fit for the law '" + name + "'");
}

template <class... Arrays>
ibug::Rows rows_of(const Values& values, const Arrays&... arrays) {
    require(values.shape(1) > 0, "values must be (n, k) with k of at least 1");
    require(((arrays.shape(0) == values.shape(0)) && ...), "all arrays must have as many rows as values");
    return {values.data(), values.shape(1), 0, values.shape(0)};
}

using MomentsFunction = void (*ibug::Likelihood::*)(const ibug::Rows&, double*, double*);

void register_moments(nb::module_& m, const char* name, MomentsFunction function, const char* doc) {
    m.def(
        name,
        [function](Values values, Out center, Out spread, const std::string& instruction_set) {
            const ibug::Rows rows = rows_of(values, center, spread);
            const ibug::Likelihood& set = likelihood(instruction_set);
            nb::gil_scoped_release released;
            (set.*function)(rows, center.data(), spread.data());
        },
        "values"_a.noconvert(), "center"_a.noconvert(), "spread"_a.noconvert(), "instruction_set"_a = "", doc);
}

}  // namespace

NB_MODULE(_likelihood, m) {
    m.doc() = "Laws fitted to rows of values, compiled. Use the families of ibug.distributions instead.";
    m.def(
        "instruction_sets",
        [] {
            std::vector<std::string> names;
            for (const ibug::Likelihood* set : instruction_sets()) names.emplace_back(set->name);
            return names;
        },
        "The instruction sets that this build and this machine share, best last.");
    register_moments(m, "moments", &ibug::Likelihood::moments, "Write each row's mean and standard deviation.");
    register_moments(m, "log_moments", &ibug::Likelihood::log_moments,
                     "Write mean and standard deviation of each row's logarithms.");
    register_moments(m, "median_deviation", &ibug::Likelihood::median_deviation,
                     "Write each row's median and the mean absolute deviation from it.");
    m.def(
        "most_likely",
        [](const std::string& law, Values values, PerRow center, PerRow spread, Array<double, 2> parameters,
           const std::string& instruction_set) {
            const ibug::Rows rows = rows_of(values, center, spread, parameters);
            require(parameters.shape(1) == 3, "parameters must be (n, 3)");
            const ibug::Law number = law_of(law);
            const ibug::Likelihood& set = likelihood(instruction_set);
            nb::gil_scoped_release released;
            set.most_likely(number, rows, center.data(), spread.data(), parameters.data());
        },
        "law"_a, "values"_a.noconvert(), "center"_a.noconvert(), "spread"_a.noconvert(), "parameters"_a.noconvert(),
        "instruction_set"_a = "", "Write the most likely location, scale and shape of each row.");
    m.def(
        "most_likely_shape",
        [](const std::string& law, Values values, PerRow mean, PerRow std, Out shape, const std::string& instruction_set) {
            const ibug::Rows rows = rows_of(values, mean, std, shape);
            const ibug::Law number = law_of(law);
            require(number == ibug::Law::student_t || number == ibug::Law::skew_normal, "this law has no shape");
            const ibug::Likelihood& set = likelihood(instruction_set);
            nb::gil_scoped_release released;
            set.most_likely_shape(number, rows, mean.data(), std.data(), shape.data());
        },
        "law"_a, "values"_a.noconvert(), "mean"_a.noconvert(), "std"_a.noconvert(), "shape"_a.noconvert(),
        "instruction_set"_a = "", "Write the most likely shape of each row for given means and standard deviations.");
}
