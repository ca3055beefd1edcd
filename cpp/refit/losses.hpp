// Gradients and hessians of losses in the raw prediction, as the boosting libraries define them.
#pragma once

#include <cmath>

namespace ibug::refit {

struct Slopes {
    double gradient, hessian;
};

// A loss tells whether its hessian is 1 everywhere.

struct Squared {
    static constexpr bool unit_hessian = true;
    Slopes operator()(double raw, double y) const { return {raw - y, 1.0}; }
};

struct Huber {
    static constexpr bool unit_hessian = true;
    double slope;
    Slopes operator()(double raw, double y) const {
        const double error = raw - y;
        return {std::abs(error) <= slope ? error : std::copysign(slope, error), 1.0};
    }
};

struct PseudoHuber {
    static constexpr bool unit_hessian = false;
    double slope;
    Slopes operator()(double raw, double y) const {
        const double error = raw - y, square = 1.0 + error * error / (slope * slope), root = std::sqrt(square);
        return {error / root, 1.0 / (square * root)};
    }
};

// Of the logarithm of the mean. The libraries make the hessian of Poisson's larger, so that steps are smaller.
struct Poisson {
    static constexpr bool unit_hessian = false;
    double added;
    Slopes operator()(double raw, double y) const { return {std::exp(raw) - y, std::exp(raw + added)}; }
};

struct Gamma {
    static constexpr bool unit_hessian = false;
    Slopes operator()(double raw, double y) const {
        const double ratio = y * std::exp(-raw);
        return {1.0 - ratio, ratio};
    }
};

struct Tweedie {
    static constexpr bool unit_hessian = false;
    double power;
    Slopes operator()(double raw, double y) const {
        const double a = y * std::exp((1.0 - power) * raw), b = std::exp((2.0 - power) * raw);
        return {b - a, (2.0 - power) * b - (1.0 - power) * a};
    }
};

}  // namespace ibug::refit
