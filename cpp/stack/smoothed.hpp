// The distribution function that belongs to the smoothed density, as logarithms of both tails.
#pragma once

#include "stack/density.hpp"

namespace ibug::stack {

// log Φ(z), however far out.
inline double log_below(double z) {
    if (z > -20.0) return std::log(below(z));
    const double s = 1.0 / (z * z);  // Mills' ratio; the first term left out is below 1e-9
    return -0.5 * z * z - half_log_2pi - std::log(-z) + std::log1p(-s * (1.0 - 3.0 * s * (1.0 - 5.0 * s)));
}

// Φ(b) − Φ(a) for a ≤ b.
inline double probability(double a, double b) { return a > 0.0 ? above(a) - above(b) : below(b) - below(a); }

// log (Φ(b) − Φ(a)) for a ≤ b.
inline double log_between(double a, double b) {
    if (a > 0.0) return log_between(-b, -a);
    if (a == -infinity) return log_below(b);
    if (b > 0.0) return std::log(probability(a, b));
    const double high = log_below(b);
    return high + std::log1p(-std::exp(log_below(a) - high));
}

// Calls f(mass, center, width) for the normal part and for each kernel.
template <class Function>
void each_part(const Mixtures& all, const Smoothing& smoothing, std::size_t row, const Function& f) {
    const Support support{all.low, all.high};
    const double loc = all.loc[row], scale = all.scale[row];
    if (all.normal > 0.0) f(all.normal, loc, scale);
    if (all.error > 0.0)
        for (std::size_t i = 0; i < all.n_errors; ++i)
            f(all.error / static_cast<double>(all.n_errors), support.clamp(loc + scale * all.errors[i]),
              smoothing.error_width(scale));
    if (all.atom > 0.0) {
        const float* masses = all.masses + row * all.n_atoms;
        double total = 0.0;
        for (std::size_t i = 0; i < all.n_atoms; ++i) total += static_cast<double>(masses[i]);
        for (std::size_t i = 0; i < all.n_atoms; ++i)
            if (masses[i] > 0.0f)
                f(all.atom * static_cast<double>(masses[i]) / total, support.clamp(all.atoms[row * all.n_atoms + i]),
                  smoothing.atom_width(scale));
    }
}

inline void log_tails(const Mixtures& all, const Smoothing& smoothing, std::size_t row, double x, double& lower,
                      double& upper) {
    if (std::isnan(x)) {
        lower = upper = x;
        return;
    }
    const Support support{all.low, all.high};
    x = support.clamp(x);
    const auto place = [](double value, double center, double width) {
        return std::isinf(value) ? value : standardised(value, center, width);
    };
    double p = 0.0, q = 0.0;
    each_part(all, smoothing, row, [&](double mass, double center, double width) {
        const double z = place(x, center, width);
        if (!support.bounded()) {
            p += mass * below(z), q += mass * above(z);
            return;
        }
        const double a = place(support.low, center, width), b = place(support.high, center, width);
        const double inside = probability(a, b);
        p += mass * probability(a, z) / inside, q += mass * probability(z, b) / inside;
    });
    lower = std::log(p), upper = std::log(q);
    if (std::min(p, q) > 1e-280) return;
    lower = upper = -infinity;  // once more in logarithms, where probabilities are too small
    each_part(all, smoothing, row, [&](double mass, double center, double width) {
        const double a = place(support.low, center, width), z = place(x, center, width);
        const double b = place(support.high, center, width), inside = log_between(a, b);
        lower = log_add(lower, std::log(mass) + log_between(a, z) - inside);
        upper = log_add(upper, std::log(mass) + log_between(z, b) - inside);
    });
}

// For rows start to stop; x and the results are (n, m).
inline void log_tails(const Mixtures& all, const Smoothing& smoothing, const double* x, std::size_t m, std::size_t start,
                      std::size_t stop, double* lower, double* upper) {
    for (std::size_t i = start; i < stop; ++i)
        for (std::size_t j = i * m; j < (i + 1) * m; ++j) log_tails(all, smoothing, i, x[j], lower[j], upper[j]);
}

}  // namespace ibug::stack
