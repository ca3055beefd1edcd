// The standard normal distribution, for mixtures: tails, quantiles and the integrals that scores are made of.
#pragma once

#include <cmath>
#include <limits>

namespace ibug::stack {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double sqrt_half = 0.70710678118654752440;
inline constexpr double inverse_sqrt_2pi = 0.39894228040143267794;
inline constexpr double half_log_2pi = 0.91893853320467274178;
inline constexpr double inverse_sqrt_pi = 0.56418958354775628695;

inline double density(double z) { return inverse_sqrt_2pi * std::exp(-0.5 * z * z); }
inline double below(double z) { return 0.5 * std::erfc(-z * sqrt_half); }
inline double above(double z) { return 0.5 * std::erfc(z * sqrt_half); }

// E|Z − z|.
inline double distance(double z) {
    if (std::abs(z) > 40.0) return std::abs(z);
    return 2.0 * density(z) + z * std::erf(z * sqrt_half);
}

// E(z − Z)⁺, the integral of Φ up to z; exact far down, where z Φ(z) + φ(z) cancels to too few digits only where it
// does not matter beside the rest of a score.
inline double shortfall(double z) {
    if (z == -infinity) return 0.0;
    const double value = z * below(z) + density(z);
    return value > 0.0 ? value : 0.0;
}

// The integral of Φ (1 − Φ) up to z.
inline double pair_integral(double z) {
    if (z <= -40.0) return 0.0;
    if (z >= 40.0) return inverse_sqrt_pi;
    // ∫Φ − ∫Φ², with ∫Φ² = z Φ² + 2 Φ φ − Φ(√2 z)/√π.
    const double p = below(z), q = above(z), f = density(z);
    return z * p * q + f * (q - p) + inverse_sqrt_pi * below(z / sqrt_half);
}

// Φ⁻¹(p) for the lower tail p of at most 1/2: Acklam's rational approximation (relative error 1e-9) and one step of
// Halley's method, which leaves rounding errors only.
inline double quantile_below(double p) {
    if (!(p > 0.0)) return p == 0.0 ? -infinity : p;
    double z;
    // clang-format off: Horner's scheme, two lines for each polynomial
    if (p < 0.02425) {
        const double q = std::sqrt(-2.0 * std::log(p));
        z = (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q -
               2.549732539343734e+00) * q + 4.374664141464968e+00) * q + 2.938163982698783e+00) /
            ((((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q +
              3.754408661907416e+00) * q + 1.0);
    } else {
        const double q = p - 0.5, r = q * q;
        z = (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
               1.383577518672690e+02) * r - 3.066479806614716e+01) * r + 2.506628277459239e+00) * q /
            (((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
               6.680131188771972e+01) * r - 1.328068155288572e+01) * r + 1.0);
    }
    // clang-format on
    if (p < 1e-300) return z;
    const double step = (below(z) - p) / density(z);
    return z - step / (1.0 + 0.5 * z * step);
}

// Φ⁻¹ from both tails, p below and q above, of which the smaller one counts.
inline double quantile(double p, double q) { return p <= q ? quantile_below(p) : -quantile_below(q); }

}  // namespace ibug::stack
