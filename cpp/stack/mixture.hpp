// Mixtures of a normal distribution, pooled errors and weighted atoms, row by row: what ibug.distributions.Stack
// computes.
//
// The mixture of row i is w₀ N(μᵢ, σᵢ²) + w₁ mean of δ(μᵢ + σᵢ eⱼ) + w₂ Σ mᵢᵣ δ(xᵢᵣ) / Σ mᵢᵣ, and values outside the
// support count as its nearest end. Functions take arrays, a range of rows and the place for the results; they start no
// thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/matrix.hpp"
#include "stack/normal.hpp"

namespace ibug::stack {

struct Mixtures {
    std::span<const double> loc, scale;  // (n,)
    Matrix<const double> atoms;          // (n, n_atoms), ascending in each row
    Matrix<const float> masses;          // (n, n_atoms), relative
    std::span<const double> errors;      // ascending
    double normal, error, atom;          // the weights
    double low, high;                    // the support
};

// One row's mixture: the normal part, and the discrete parts merged into one list with sums of mass from both ends.
class Row {
   public:
    explicit Row(const Mixtures& all)
        : all_(all), value_(all.atoms.width + all.errors.size()), mass_(value_.size()), below_(value_.size() + 1),
          above_(value_.size() + 1) {}

    void load(std::size_t row) {
        loc_ = all_.loc[row];
        scale_ = all_.scale[row];
        merge(all_.atoms[row], all_.masses[row]);
        below_[0] = above_[n_] = 0.0;
        for (std::size_t i = 0; i < n_; ++i) below_[i + 1] = below_[i] + mass_[i];
        for (std::size_t i = n_; i > 0; --i) above_[i - 1] = above_[i] + mass_[i - 1];
    }

    // P(X ≤ x) and P(X > x).
    void tails(double x, double& lower, double& upper) const {
        if (std::isnan(x)) {
            lower = upper = x;
        } else if (x < all_.low) {
            lower = 0.0, upper = 1.0;
        } else if (x >= all_.high) {
            lower = 1.0, upper = 0.0;
        } else {
            at(x, std::upper_bound(value_.begin(), value_.begin() + n_, x) - value_.begin(), lower, upper);
        }
    }

    // The smallest x with P(X ≤ x) ≥ p, for p below and q above it; they sum to 1.
    double quantile(double p, double q) const {
        if (std::isnan(p)) return p;
        std::size_t first = 0, count = n_;  // the first jump that reaches p
        while (count > 0) {
            const std::size_t half = count / 2, middle = first + half;
            if (reached(middle, p, q)) {
                count = half;
            } else {
                first = middle + 1;
                count -= half + 1;
            }
        }
        double x = first < n_ ? value_[first] : infinity;
        if (all_.normal > 0.0) {
            // Before that jump only the normal part grows.
            const double lower = (p - below_[first]) / all_.normal, upper = (q - above_[first]) / all_.normal;
            const double z = stack::quantile(std::max(lower, 0.0), std::max(upper, 0.0));
            double inner = loc_ + scale_ * z;
            if (first > 0) inner = std::max(inner, value_[first - 1]);
            x = std::min(x, inner);
        } else if (first == n_ && n_ > 0) {
            x = value_[n_ - 1];
        }
        return std::min(std::max(x, all_.low), all_.high);
    }

    // E|X − y| − E|X − X'|/2.
    double crps(double y) const {
        if (!std::isfinite(y)) return std::isnan(y) ? y : infinity;
        const double inside = clamp(y);
        double near = 0.0;
        for (std::size_t i = 0; i < n_; ++i) near += mass_[i] * std::abs(clamp(value_[i]) - inside);
        if (all_.normal > 0.0) near += all_.normal * normal_distance(inside);
        return std::max(near - half_spread_ + std::abs(y - inside), 0.0);
    }

    // E|X − X'|/2 once for a row, before crps.
    void measure() {
        set_cut();
        double pairs = 0.0;  // of two discrete draws, halved: Σ gap · mass below · mass above
        for (std::size_t i = 0; i + 1 < n_; ++i)
            pairs += (clamp(value_[i + 1]) - clamp(value_[i])) * below_[i + 1] * above_[i + 1];
        half_spread_ = pairs;
        if (all_.normal > 0.0) {
            double mixed = 0.0;
            for (std::size_t i = 0; i < n_; ++i)
                if (mass_[i] > 0.0) mixed += mass_[i] * normal_distance(clamp(value_[i]));
            const double own = scale_ * (pair_integral(z_of(all_.high)) - pair_integral(z_of(all_.low)));
            half_spread_ += all_.normal * (mixed + all_.normal * own);
        }
    }

    void moments(double& mean, double& deviation) {
        set_cut();
        // Relative to the location and in units of the widest distance, so that no square is too large or too small.
        double unit = scale_, first = 0.0;
        for (std::size_t i = 0; i < n_; ++i) {
            const double offset = clamp(value_[i]) - clamp(loc_);
            unit = std::max(unit, std::abs(offset));
            first += mass_[i] * offset;
        }
        const double normal_mean = (loc_ - clamp(loc_)) + cut_below_ - cut_above_;
        first += all_.normal * normal_mean;
        double second = 0.0;
        for (std::size_t i = 0; i < n_; ++i) {
            const double offset = (clamp(value_[i]) - clamp(loc_) - first) / unit;
            second += mass_[i] * offset * offset;
        }
        if (all_.normal > 0.0) second += all_.normal * normal_square(clamp(loc_) + first, unit);
        mean = clamp(loc_) + first;
        deviation = unit * std::sqrt(second);
    }

   private:
    void merge(std::span<const double> atoms, std::span<const float> masses) {
        double total = 0.0;
        for (const float mass : masses) total += mass;
        const double share = all_.atom > 0.0 && total > 0.0 ? all_.atom / total : 0.0;
        const double each = all_.errors.empty() ? 0.0 : all_.error / static_cast<double>(all_.errors.size());
        const std::size_t n_atoms = share > 0.0 ? atoms.size() : 0, n_errors = each > 0.0 ? all_.errors.size() : 0;
        std::size_t i = 0, j = 0;
        n_ = 0;
        while (i < n_atoms || j < n_errors) {
            const double error = j < n_errors ? loc_ + scale_ * all_.errors[j] : infinity;
            if (j == n_errors || (i < n_atoms && atoms[i] <= error)) {
                value_[n_] = atoms[i];
                mass_[n_++] = share * masses[i++];
            } else {
                value_[n_] = error;
                mass_[n_++] = each;
                ++j;
            }
        }
    }

    double clamp(double x) const { return std::min(std::max(x, all_.low), all_.high); }
    double z_of(double x) const { return (x - loc_) / scale_; }

    void at(double x, std::size_t count, double& lower, double& upper) const {
        const double z = z_of(x);
        lower = std::min(below_[count] + (all_.normal > 0.0 ? all_.normal * stack::below(z) : 0.0), 1.0);
        upper = std::min(above_[count] + (all_.normal > 0.0 ? all_.normal * stack::above(z) : 0.0), 1.0);
    }

    bool reached(std::size_t i, double p, double q) const {
        double lower, upper;
        at(value_[i], i + 1, lower, upper);
        return lower > 0.0 && (p <= q ? lower >= p : upper <= q);
    }

    // What the ends of the support cut off: E(low − N)⁺ and E(N − high)⁺.
    void set_cut() {
        cut_below_ = all_.low > -infinity ? scale_ * shortfall(z_of(all_.low)) : 0.0;
        cut_above_ = all_.high < infinity ? scale_ * shortfall(-z_of(all_.high)) : 0.0;
    }

    // E|N − x| for the normal part inside the support, x inside it.
    double normal_distance(double x) const { return scale_ * distance(z_of(x)) - cut_below_ - cut_above_; }

    // E(N − center)² / unit² for the normal part inside the support.
    double normal_square(double center, double unit) const {
        const double shift = (loc_ - center) / unit, s = scale_ / unit;
        if (all_.low == -infinity && all_.high == infinity) return shift * shift + s * s;
        const double a = z_of(all_.low), b = z_of(all_.high);
        const double fa = std::abs(a) < 40.0 ? density(a) : 0.0, fb = std::abs(b) < 40.0 ? density(b) : 0.0;
        const double inside = a > 0.0 ? stack::above(a) - stack::above(b) : stack::below(b) - stack::below(a);
        const double first = fa - fb, second = inside + (fa > 0.0 ? a * fa : 0.0) - (fb > 0.0 ? b * fb : 0.0);
        double total = shift * shift * inside + 2.0 * shift * s * first + s * s * second;
        const double to_low = (all_.low - center) / unit, to_high = (all_.high - center) / unit;
        if (all_.low > -infinity) total += to_low * to_low * stack::below(a);
        if (all_.high < infinity) total += to_high * to_high * stack::above(b);
        return std::max(total, 0.0);
    }

    const Mixtures& all_;
    std::vector<double> value_, mass_;
    std::vector<double> below_, above_;  // sums of the masses before and from each place on
    std::size_t n_ = 0;
    double loc_ = 0.0, scale_ = 1.0, half_spread_ = 0.0, cut_below_ = 0.0, cut_above_ = 0.0;
};

// For rows start to stop; x, p, q and the results are (n, m).
inline void tails(const Mixtures& all, Matrix<const double> x, std::size_t start, std::size_t stop,
                  Matrix<double> lower, Matrix<double> upper) {
    Row row(all);
    for (std::size_t i = start; i < stop; ++i) {
        row.load(i);
        for (std::size_t j = 0; j < x.width; ++j) row.tails(x[i][j], lower[i][j], upper[i][j]);
    }
}

inline void quantiles(const Mixtures& all, Matrix<const double> p, Matrix<const double> q, std::size_t start,
                      std::size_t stop, Matrix<double> out) {
    Row row(all);
    for (std::size_t i = start; i < stop; ++i) {
        row.load(i);
        for (std::size_t j = 0; j < p.width; ++j) out[i][j] = row.quantile(p[i][j], q[i][j]);
    }
}

inline void crps(const Mixtures& all, Matrix<const double> y, std::size_t start, std::size_t stop, Matrix<double> out) {
    Row row(all);
    for (std::size_t i = start; i < stop; ++i) {
        row.load(i);
        row.measure();
        for (std::size_t j = 0; j < y.width; ++j) out[i][j] = row.crps(y[i][j]);
    }
}

inline void moments(const Mixtures& all, std::size_t start, std::size_t stop, std::span<double> mean,
                    std::span<double> deviation) {
    Row row(all);
    for (std::size_t i = start; i < stop; ++i) {
        row.load(i);
        row.moments(mean[i], deviation[i]);
    }
}

}  // namespace ibug::stack
