// The submodule `likelihood`: families fitted to rows of values.
#include "likelihood/likelihood.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>

#include "bindings/common.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using ibug::Array;
using ibug::require;
using Values = Array<const double, 2>;
using PerRow = Array<const double, 1>;
using Out = Array<double, 1>;

const ibug::Tables<ibug::Fits>& all_fits() {
    using namespace ibug;
    static const Tables<Fits> tables(IBUG_TABLES(fits));
    return tables;
}

ibug::FittedFamily family_of(const std::string& name) {
    if (name == "logistic") return ibug::FittedFamily::logistic;
    if (name == "gumbel") return ibug::FittedFamily::gumbel;
    if (name == "student_t") return ibug::FittedFamily::student_t;
    if (name == "skewnormal") return ibug::FittedFamily::skew_normal;
    throw std::invalid_argument("no compiled fit for the family '" + name + "'");
}

// The values, with memory to work in.
class Fitted {
   public:
    template <class... Arrays>
    explicit Fitted(const Values& values, const Arrays&... arrays) : values_(values) {
        require(values.shape(1) > 0, "values must be (n, k) with k of at least 1");
        require(((arrays.shape(0) == values.shape(0)) && ...), "all arrays must have as many rows as values");
    }

    // To be called once, without the GIL.
    ibug::Rows rows() {
        const std::size_t k = values_.shape(1);
        if (2 * k > std::size(few_)) many_.reset(new double[2 * k]);
        return {values_.data(), k, 0, values_.shape(0), many_ ? many_.get() : few_};
    }

   private:
    const Values& values_;
    double few_[512];  // a row alone allocates nothing
    std::unique_ptr<double[]> many_;
};

using MomentsFunction = void (*ibug::Fits::*)(const ibug::Rows&, double*, double*);

void register_moments(nb::module_& m, const char* name, MomentsFunction function, const char* doc) {
    m.def(
        name,
        [function](Values values, Out center, Out spread, const std::string& instruction_set) {
            Fitted fitted(values, center, spread);
            const ibug::Fits& fits = all_fits().choose(instruction_set);
            nb::gil_scoped_release released;
            (fits.*function)(fitted.rows(), center.data(), spread.data());
        },
        "values"_a.noconvert(), "center"_a.noconvert(), "spread"_a.noconvert(), "instruction_set"_a = "", doc);
}

}  // namespace

void ibug::register_likelihood(nb::module_& m) {
    ibug::register_instruction_sets(m, all_fits());
    register_moments(m, "moments", &ibug::Fits::moments, "Write each row's mean and standard deviation.");
    register_moments(m, "log_moments", &ibug::Fits::log_moments,
                     "Write mean and standard deviation of each row's logarithms.");
    register_moments(m, "median_deviation", &ibug::Fits::median_deviation,
                     "Write each row's median and the mean absolute deviation from it.");
    m.def(
        "most_likely",
        [](const std::string& family, Values values, PerRow center, PerRow spread, Array<double, 2> parameters,
           const std::string& instruction_set) {
            Fitted fitted(values, center, spread, parameters);
            require(parameters.shape(1) == 3, "parameters must be (n, 3)");
            const ibug::FittedFamily number = family_of(family);
            const ibug::Fits& fits = all_fits().choose(instruction_set);
            nb::gil_scoped_release released;
            fits.most_likely(number, fitted.rows(), center.data(), spread.data(), parameters.data());
        },
        "family"_a, "values"_a.noconvert(), "center"_a.noconvert(), "spread"_a.noconvert(), "parameters"_a.noconvert(),
        "instruction_set"_a = "", "Write the most likely location, scale and shape of each row.");
    m.def(
        "most_likely_shape",
        [](const std::string& family, Values values, PerRow mean, PerRow std, Out shape,
           const std::string& instruction_set) {
            Fitted fitted(values, mean, std, shape);
            const ibug::FittedFamily number = family_of(family);
            require(number == ibug::FittedFamily::student_t || number == ibug::FittedFamily::skew_normal,
                    "this family has no shape");
            const ibug::Fits& fits = all_fits().choose(instruction_set);
            nb::gil_scoped_release released;
            fits.most_likely_shape(number, fitted.rows(), mean.data(), std.data(), shape.data());
        },
        "family"_a, "values"_a.noconvert(), "mean"_a.noconvert(), "std"_a.noconvert(), "shape"_a.noconvert(),
        "instruction_set"_a = "", "Write the most likely shape of each row for given means and standard deviations.");
}
