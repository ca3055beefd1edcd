// Densities of mixtures whose discrete parts are smoothed by normal kernels.
#pragma once

#include "stack/mixture.hpp"

namespace ibug::stack {

struct Smoothing {
    double error, atom;  // widths of the kernels, relative to the scale of the row
    double least;        // no kernel is narrower

    double error_width(double scale) const { return std::max(error * scale, least); }
    double atom_width(double scale) const { return std::max(atom * scale, least); }
};

// (x − center)/width, cut so that its square stays finite.
inline double standardised(double x, double center, double width) {
    return std::min(std::max((x - center) / width, -1e150), 1e150);
}

inline double log_normal_density(double x, double loc, double scale) {
    const double z = standardised(x, loc, scale);
    return -0.5 * z * z - std::log(scale) - half_log_2pi;
}

inline double log_add(double a, double b) {
    const double top = std::max(a, b);
    return top == -infinity ? top : top + std::log1p(std::exp(std::min(a, b) - top));
}

// The probability between two values of a normal distribution.
inline double between(double low, double high, double loc, double scale) {
    const double a = (low - loc) / scale, b = (high - loc) / scale;
    return std::max(a > 0.0 ? above(a) - above(b) : below(b) - below(a), 1e-300);
}

// The support: what is outside counts as the nearest end, and what a kernel has outside is cut off and given to the
// rest.
struct Support {
    double low, high;

    bool bounded() const { return low > -infinity || high < infinity; }
    double clamp(double x) const { return std::min(std::max(x, low), high); }
    double inside(double center, double width) const { return bounded() ? between(low, high, center, width) : 1.0; }
};

// log Σ mass(i) times the kernel at value(i), relative to the nearest kernel so that nothing underflows.
template <class Value, class Mass>
double log_kernels(double x, std::size_t n, const Value& value, const Mass& mass, double width,
                   const Support& support) {
    double nearest = infinity;
    for (std::size_t i = 0; i < n; ++i)
        if (mass(i) > 0.0) nearest = std::min(nearest, std::abs(standardised(x, support.clamp(value(i)), width)));
    if (nearest == infinity) return -infinity;
    double total = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        if (!(mass(i) > 0.0)) continue;
        const double center = support.clamp(value(i)), u = std::abs(standardised(x, center, width));
        const double exponent = -0.5 * (u - nearest) * (u + nearest);
        if (exponent > -745.0) total += mass(i) * std::exp(exponent) / support.inside(center, width);
    }
    return std::log(total) - 0.5 * nearest * nearest - std::log(width) - half_log_2pi;
}

inline double log_density(const Mixtures& all, const Smoothing& smoothing, std::size_t row, double x) {
    if (std::isnan(x)) return x;
    if (std::isinf(x) || x < all.low || x > all.high) return -infinity;
    const Support support{all.low, all.high};
    const double loc = all.loc[row], scale = all.scale[row];
    double out = -infinity;
    if (all.normal > 0.0)
        out = std::log(all.normal) + log_normal_density(x, loc, scale) - std::log(support.inside(loc, scale));
    if (all.error > 0.0) {
        const auto error = [&](std::size_t i) { return loc + scale * all.errors[i]; };
        const auto one = [](std::size_t) { return 1.0; };
        const double part = log_kernels(x, all.n_errors, error, one, smoothing.error_width(scale), support);
        out = log_add(out, std::log(all.error / static_cast<double>(all.n_errors)) + part);
    }
    if (all.atom > 0.0) {
        const double* atoms = all.atoms + row * all.n_atoms;
        const float* masses = all.masses + row * all.n_atoms;
        const auto atom = [&](std::size_t i) { return atoms[i]; };
        const auto mass = [&](std::size_t i) { return static_cast<double>(masses[i]); };
        double total = 0.0;
        for (std::size_t i = 0; i < all.n_atoms; ++i) total += mass(i);
        const double part = log_kernels(x, all.n_atoms, atom, mass, smoothing.atom_width(scale), support);
        out = log_add(out, std::log(all.atom / total) + part);
    }
    return out;
}

// For rows start to stop; x and the results are (n, m).
inline void log_densities(const Mixtures& all, const Smoothing& smoothing, const double* x, std::size_t m,
                          std::size_t start, std::size_t stop, double* out) {
    for (std::size_t i = start; i < stop; ++i)
        for (std::size_t j = i * m; j < (i + 1) * m; ++j) out[j] = log_density(all, smoothing, i, x[j]);
}

}  // namespace ibug::stack
