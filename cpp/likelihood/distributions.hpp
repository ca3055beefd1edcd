// The distributions of μ + σZ that are fitted by iteration: log density g(z), and its derivatives in z and in a
// transformed shape t.
#pragma once

#include <cmath>
#include <cstddef>

#include "common/target.hpp"
#include "likelihood/vector_math.hpp"

namespace ibug::IBUG_TARGET {
namespace {

constexpr double log_2 = 0.69314718055994531, half_log_2pi = 0.91893853320467274;

// g, ∂g/∂z, ∂²g/∂z², ∂g/∂t, ∂²g/∂z∂t, ∂²g/∂t².
struct Derivatives {
    double g, g1, g2, gt, g1t, gtt;
};

// A row in units of its own spread, with what the starts need.
struct Standardized {
    const double* u;
    std::size_t k;
    double mean_cube;
    double median;
};

struct Logistic {
    static constexpr int n_shapes = 0;
    static constexpr double lowest = 0, highest = 0;
    explicit Logistic(double) {}
    static double scale_for_unit_variance() { return 0.55132889542179204; }  // √3/π
    static double mean() { return 0.0; }

    Derivatives at(double z) const {
        const double distance = std::fabs(z), e = vector_exp(-distance);
        const double magnitude = (1.0 - e) / (1.0 + e);  // tanh(|z|/2)
        return {-distance - 2.0 * vector_log(1.0 + e),
                z < 0 ? magnitude : -magnitude,
                -0.5 * (1.0 - magnitude * magnitude),
                0,
                0,
                0};
    }
};

struct Gumbel {
    static constexpr int n_shapes = 0;
    static constexpr double lowest = 0, highest = 0;
    explicit Gumbel(double) {}
    static double scale_for_unit_variance() { return 0.77969680123368; }  // √6/π
    static double mean() { return 0.57721566490153286; }

    Derivatives at(double z) const {
        const double tail = vector_exp(z < -700.0 ? 700.0 : -z);
        return {-z - tail, tail - 1.0, -tail, 0, 0, 0};
    }
};

// log Γ(x), its first and its second derivative, for x above 0.
struct GammaFunctions {
    double log_gamma, digamma, trigamma;

    explicit GammaFunctions(double x) : log_gamma(0), digamma(0), trigamma(0) {
        for (; x < 10.0; x += 1.0) {  // Γ(x + 1) = x Γ(x), up to where Stirling's series is exact to rounding
            log_gamma -= std::log(x);
            digamma -= 1.0 / x;
            trigamma += 1.0 / (x * x);
        }
        const double r = 1.0 / x, s = r * r;
        const double log_x = std::log(x);
        log_gamma += (x - 0.5) * log_x - x + half_log_2pi +
                     r * (1.0 / 12 - s * (1.0 / 360 -
                                          s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188 - s * 691.0 / 360360)))));
        digamma +=
            log_x - 0.5 * r -
            s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * 691.0 / 32760)))));
        trigamma +=
            r + 0.5 * s +
            r * s * (1.0 / 6 - s * (1.0 / 30 - s * (1.0 / 42 - s * (1.0 / 30 - s * (5.0 / 66 - s * 691.0 / 2730)))));
    }
};

// With t = log df. Below the lowest df the mean and the CRPS do not exist; above the highest, the distribution is
// normal for every purpose; with a given variance df must be above 2.
struct StudentT {
    static constexpr int n_shapes = 1;
    static constexpr double lowest = 0.048790164169432049, highest = 6.9077552789821368;  // log 1.05, log 1000
    static constexpr double lowest_with_variance = 0.74193734472937733, highest_with_variance = highest;  // log 2.1
    static constexpr int grid_points = 16;

    double df, constant, by_df, by_df_twice;

    explicit StudentT(double t) : df(std::exp(t)) {
        const GammaFunctions upper((df + 1) / 2), lower(df / 2);
        constant = upper.log_gamma - lower.log_gamma - 0.5 * std::log(df * 3.1415926535897932);
        by_df = upper.digamma - lower.digamma - 1 / df;
        by_df_twice = 0.5 * (upper.trigamma - lower.trigamma) + 1 / (df * df);
    }

    double shape() const { return df; }
    double mean() const { return 0.0; }
    double variance() const { return df / (df - 2); }

    double log_density(double z) const { return constant - 0.5 * (df + 1) * vector_log(1.0 + z * z / df); }

    Derivatives at(double z) const {
        const double square = z * z, total = df + square, inverse = 1.0 / total, share = square * inverse;
        const double logarithm = vector_log(1.0 + square / df);
        const double first = 0.5 * (by_df - logarithm + (df + 1) / df * share);
        const double second =
            0.5 * (by_df_twice + share / df + (share - (df + 1) * share * (2 * df + square) / df * inverse) / df);
        return {constant - 0.5 * (df + 1) * logarithm,         -(df + 1) * z * inverse,
                -(df + 1) * (df - square) * inverse * inverse, df * first,
                -df * z * (square - 1.0) * inverse * inverse,  df * first + df * df * second};
    }
};

// With t = arsinh α: like a logarithm for large shapes, of both signs. At the bounds the distribution is half a normal
// one. With given moments the bounds are narrower: few values often fit half a normal distribution best, whose sharp
// edge would call new values impossible; at ±10 the skewness is 0.96, of at most 0.995.
struct SkewNormal {
    static constexpr int n_shapes = 1;
    static constexpr double lowest = -19.113827924512312, highest = 19.113827924512312;  // arsinh 1e8
    static constexpr double lowest_with_variance = -2.99822295029797,
                            highest_with_variance = 2.99822295029797;  // arsinh 10
    static constexpr int grid_points = 25;

    double alpha, slope, delta;

    explicit SkewNormal(double t) : alpha(std::sinh(t)), slope(std::hypot(1.0, alpha)), delta(alpha / slope) {}

    double shape() const { return alpha; }
    double mean() const { return 0.79788456080286536 * delta; }
    double variance() const { return 1.0 - mean() * mean(); }

    double log_density(double z) const { return log_2 - half_log_2pi - 0.5 * z * z + normal_tail(alpha * z).log_cdf; }

    Derivatives at(double z) const {
        const double u = alpha * z;
        const auto [log_cdf, ratio] = normal_tail(u);
        const double curve = -ratio * (u + ratio), stretched = z * slope;
        return {log_2 - half_log_2pi - 0.5 * z * z + log_cdf,
                -z + alpha * ratio,
                -1.0 + alpha * alpha * curve,
                stretched * ratio,
                slope * (ratio + u * curve),
                stretched * stretched * curve + u * ratio};
    }
};

}  // namespace
}  // namespace ibug::IBUG_TARGET
