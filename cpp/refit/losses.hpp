// Gradients and hessians of losses in the raw prediction, as the boosting libraries define them.
#pragma once

#include <cmath>

namespace ibug::refit {

struct Slopes {
    double gradient, hessian;
};

struct Squared {
    Slopes operator()(double raw, double y) const { return {raw - y, 1.0}; }
};

struct Huber {
    double slope;
    Slopes operator()(double raw, double y) const {
        const double error = raw - y;
        return {std::abs(error) <= slope ? error : std::copysign(slope, error), 1.0};
    }
};

struct PseudoHuber {
    double slope;
    Slopes operator()(double raw, double y) const {
        const double error = raw - y, square = 1.0 + error * error / (slope * slope), root = std::sqrt(square);
        return {error / root, 1.0 / (square * root)};
    }
};

// Of the logarithm of the mean. The libraries make the hessian of Poisson's larger, so that steps are smaller.
struct Poisson {
    double added;
    Slopes operator()(double raw, double y) const { return {std::exp(raw) - y, std::exp(raw + added)}; }
};

struct Gamma {
    Slopes operator()(double raw, double y) const {
        const double ratio = y * std::exp(-raw);
        return {1.0 - ratio, ratio};
    }
};

struct Tweedie {
    double power;
    Slopes operator()(double raw, double y) const {
        const double a = y * std::exp((1.0 - power) * raw), b = std::exp((2.0 - power) * raw);
        return {b - a, (2.0 - power) * b - (1.0 - power) * a};
    }
};

}  // namespace ibug::refit
