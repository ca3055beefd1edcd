// Densities of mixtures whose discrete parts are smoothed by kernels: atoms by normal ones, errors by such with tails.
#pragma once

#include "stack/mixture.hpp"

namespace ibug::stack {

struct Smoothing {
    double error, atom;   // widths of the kernels, relative to the scale of the row
    double least;         // no kernel is narrower
    bool tailed = false;  // whether atoms have the kernels of errors

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

struct NormalKernel {
    static double log_density(double u) { return -0.5 * u * u - half_log_2pi; }
    // The logarithm of the density at u divided by that at v.
    static double log_ratio(double u, double v) { return -0.5 * (u - v) * (u + v); }
    // The probability between a and b.
    static double between(double a, double b) { return a > 0.0 ? above(a) - above(b) : below(b) - below(a); }
};

// Student's t distribution with two degrees of freedom. The errors of a few validation rows do not tell where errors
// end: beyond the last of them the density falls with the third power of the distance, and not faster than any.
struct TailedKernel {
    static double log_density(double u) { return -1.5 * std::log(2.0 + u * u); }
    static double log_ratio(double u, double v) { return -1.5 * std::log((2.0 + u * u) / (2.0 + v * v)); }
    static double between(double a, double b) { return 0.5 * (sine(b) - sine(a)); }

   private:
    static double sine(double u) { return std::isinf(u) ? std::copysign(1.0, u) : u / std::hypot(u, std::sqrt(2.0)); }
};

// The support: what is outside counts as the nearest end, and what a kernel has outside is cut off and given to the
// rest.
struct Support {
    double low, high;

    bool bounded() const { return low > -infinity || high < infinity; }
    double clamp(double x) const { return std::min(std::max(x, low), high); }

    // What a kernel has inside.
    template <class Kernel = NormalKernel>
    double inside(double center, double width) const {
        if (!bounded()) return 1.0;
        return std::max(Kernel::between((low - center) / width, (high - center) / width), 1e-300);
    }
};

// log Σ mass(i) times the kernel at value(i), relative to the nearest kernel so that nothing underflows.
template <class Kernel, class Value, class Mass>
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
        const double exponent = Kernel::log_ratio(u, nearest);
        if (exponent > -745.0) total += mass(i) * std::exp(exponent) / support.inside<Kernel>(center, width);
    }
    return std::log(total) + Kernel::log_density(nearest) - std::log(width);
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
        const double part =
            log_kernels<TailedKernel>(x, all.errors.size(), error, one, smoothing.error_width(scale), support);
        out = log_add(out, std::log(all.error / static_cast<double>(all.errors.size())) + part);
    }
    if (all.atom > 0.0) {
        const std::span atoms = all.atoms[row];
        const std::span masses = all.masses[row];
        const auto atom = [&](std::size_t i) { return atoms[i]; };
        const auto mass = [&](std::size_t i) { return static_cast<double>(masses[i]); };
        double total = 0.0;
        for (const float each : masses) total += each;
        const double width = smoothing.atom_width(scale);
        const double part = smoothing.tailed ? log_kernels<TailedKernel>(x, atoms.size(), atom, mass, width, support)
                                             : log_kernels<NormalKernel>(x, atoms.size(), atom, mass, width, support);
        out = log_add(out, std::log(all.atom / total) + part);
    }
    return out;
}

// For rows start to stop; x and the results are (n, m).
inline void log_densities(const Mixtures& all, const Smoothing& smoothing, Matrix<const double> x, std::size_t start,
                          std::size_t stop, Matrix<double> out) {
    for (std::size_t i = start; i < stop; ++i)
        for (std::size_t j = 0; j < x.width; ++j) out[i][j] = log_density(all, smoothing, i, x[i][j]);
}

}  // namespace ibug::stack
