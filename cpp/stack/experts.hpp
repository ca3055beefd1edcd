// What several experts say of each row: joined to one list of weighted atoms, or compared with the target and with each
// other to find their weights.
//
// An expert on neighbours gives its k nearest the weights exp(β (aᵣ − a₀)), divided by their sum, where aᵣ is the
// affinity as a share of the trees; β = 0 means equal weights. Where training rows count for more or less than one,
// these weights are multiplied by what each counts for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/matrix.hpp"
#include "stack/density.hpp"

namespace ibug::stack {

// Whether all numbers are finite: the difference of such a number to itself is zero, that of any other is none.
inline bool all_finite(std::span<const double> numbers) {
    double sum = 0;
    for (const double number : numbers) sum += number - number;
    return sum == 0;
}

struct Experts {
    std::span<const std::int64_t> k;
    std::span<const double> sharpness;

    std::size_t n() const { return k.size(); }
};

// The neighbours of the rows: what they say, (n, n_targets) and (n, n_residuals), nearest first.
struct Neighbors {
    std::span<const double> loc;   // (n,), the predictions
    Matrix<const double> targets;  // (n, n_targets)
    Matrix<const double> moved;    // (n, n_residuals), the predictions plus the neighbours' residuals
    Matrix<const double> shares;   // (n, n_shares)
    Matrix<const double> counts;   // (n, n_shares), or (n, 0) where all neighbours count alike
};

// Write the weights that one expert gives the nearest k, and zeros to all others. No counts: all count alike.
inline void expert_weights(std::span<const double> shares, std::span<const double> counts, std::int64_t k,
                           double sharpness, std::span<double> out) {
    const std::size_t last = std::min(static_cast<std::size_t>(k), out.size());
    double total = 0.0;
    for (std::size_t i = 0; i < last; ++i) {
        out[i] = sharpness == 0.0 ? 1.0 : std::exp(sharpness * (shares[i] - shares[0]));
        if (!counts.empty()) out[i] *= counts[i];
        total += out[i];
    }
    for (std::size_t i = 0; i < last; ++i) out[i] /= total;
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(last), out.end(), 0.0);
}

// Write each row's atoms, ascending, and their masses, both (n, n_targets + n_residuals), for given weights of experts.
inline void combine(const Neighbors& near, const Experts& on_targets, std::span<const double> target_weights,
                    const Experts& on_residuals, std::span<const double> residual_weights, std::size_t start,
                    std::size_t stop, Matrix<double> atoms, Matrix<float> masses) {
    struct Atom {
        double value, mass;
    };
    std::vector<Atom> list(atoms.width);
    std::vector<double> own(atoms.width);
    const auto add = [&](std::size_t row, std::span<const double> values, const Experts& experts,
                         std::span<const double> weights, std::span<Atom> out) {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = {values[i], 0.0};
        for (std::size_t j = 0; j < experts.n(); ++j) {
            if (!(weights[j] > 0.0)) continue;
            expert_weights(near.shares[row], near.counts[row], experts.k[j], experts.sharpness[j],
                           std::span(own).first(out.size()));
            for (std::size_t i = 0; i < out.size(); ++i) out[i].mass += weights[j] * own[i];
        }
    };
    const std::span on_all = list;
    const std::span first = on_all.first(near.targets.width), last = on_all.subspan(near.targets.width);
    for (std::size_t row = start; row < stop; ++row) {
        add(row, near.targets[row], on_targets, target_weights, first);
        add(row, near.moved[row], on_residuals, residual_weights, last);
        std::sort(list.begin(), list.end(), [](const Atom& a, const Atom& b) { return a.value < b.value; });
        for (std::size_t i = 0; i < list.size(); ++i) {
            atoms[row][i] = list[i].value;
            masses[row][i] = static_cast<float>(list[i].mass);
        }
    }
}

// What the statistics of a row are made of, beside its neighbours.
struct Comparison {
    std::span<const double> scale, y;    // (n,)
    std::span<const double> errors;      // ascending
    std::span<const double> bandwidths;  // relative to the scale
    double error_bandwidth, least;       // of the errors, relative to the scale; no kernel is narrower than the least
    double low, high;                    // the support
};

// One row's experts, of which the first is normal and the others are weights on one list of atoms: the errors, then the
// experts on targets, then those on residuals.
class RowOfExperts {
   public:
    RowOfExperts(const Neighbors& near, const Experts& on_targets, const Experts& on_residuals, const Comparison& with)
        : near_(near), on_targets_(on_targets), on_residuals_(on_residuals), with_(with), n_errors_(with.errors.size()),
          n_(n_errors_ + near.targets.width + near.moved.width),
          n_discrete_((n_errors_ > 0) + on_targets.n() + on_residuals.n()), value_(n_), order_(n_),
          weights_(n_discrete_ * n_), sorted_(n_discrete_ * n_), cumulative_(n_discrete_ * n_), scratch_(n_) {}

    std::size_t n_experts() const { return 1 + n_discrete_; }

    void load(std::size_t row) {
        loc_ = near_.loc[row];
        scale_ = with_.scale[row];
        y_ = with_.y[row];
        std::fill(weights_.begin(), weights_.end(), 0.0);
        for (std::size_t i = 0; i < n_errors_; ++i) {
            value_[i] = loc_ + scale_ * with_.errors[i];
            weights_[i] = 1.0 / static_cast<double>(n_errors_);
        }
        std::size_t expert = n_errors_ > 0, from = n_errors_;
        for (const auto& [values, experts] :
             {std::pair{near_.targets[row], on_targets_}, std::pair{near_.moved[row], on_residuals_}}) {
            std::copy(values.begin(), values.end(), value_.begin() + static_cast<std::ptrdiff_t>(from));
            for (std::size_t j = 0; j < experts.n(); ++j)
                expert_weights(near_.shares[row], near_.counts[row], experts.k[j], experts.sharpness[j],
                               std::span(weights_).subspan(expert++ * n_ + from, values.size()));
            from += values.size();
        }
        sort();
    }

    // E|Xⱼ − y| of each expert, and E|Xⱼ − Xₖ| for k ≤ j, row after row of the lower triangle.
    void distances(std::span<double> to_target, std::span<double> to_each_other) {
        const double inside = clamp(y_), outside = std::abs(y_ - inside);
        const double cut = (with_.low > -infinity ? scale_ * shortfall(z_of(with_.low)) : 0.0) +
                           (with_.high < infinity ? scale_ * shortfall(-z_of(with_.high)) : 0.0);
        to_target[0] = scale_ * distance(z_of(inside)) - cut + outside;
        to_each_other[0] = 2.0 * scale_ * (pair_integral(z_of(with_.high)) - pair_integral(z_of(with_.low)));
        std::vector<double>& normal = scratch_;
        for (std::size_t i = 0; i < n_; ++i) normal[i] = scale_ * distance(z_of(ordered_[i])) - cut;
        auto out = to_each_other.begin() + 1;
        for (std::size_t j = 0; j < n_discrete_; ++j) {
            const double* weights = sorted_.data() + j * n_;
            double near = 0.0, mixed = 0.0;
            for (std::size_t i = 0; i < n_; ++i) {
                near += weights[i] * std::abs(ordered_[i] - inside);
                mixed += weights[i] * normal[i];
            }
            to_target[1 + j] = near + outside;
            *out++ = mixed;
            for (std::size_t k = 0; k <= j; ++k) *out++ = discrete_distance(j, k);
        }
    }

    // The log densities of the experts at y, (n_bandwidths, n_experts), within the support.
    void log_densities(std::span<double> out) {
        const std::size_t n_all = n_experts(), first = n_errors_ > 0;
        const double normal = log_normal_density(y_, loc_, scale_) - std::log(support().inside(loc_, scale_));
        // The kernels of errors have one width.
        const double errors =
            first ? log_density<TailedKernel>(0, std::max(with_.error_bandwidth * scale_, with_.least)) : 0.0;
        for (const double bandwidth : with_.bandwidths) {
            const double width = std::max(bandwidth * scale_, with_.least);
            out[0] = normal;
            if (first) out[1] = errors;
            // Kernels are computed once for all experts, relative to the nearest atom.
            double nearest = infinity;
            for (std::size_t i = n_errors_; i < n_; ++i) {
                scratch_[i] = std::abs(standardised(y_, clamp(value_[i]), width));
                nearest = std::min(nearest, scratch_[i]);
            }
            for (std::size_t i = n_errors_; i < n_; ++i) {
                const double exponent = -0.5 * (scratch_[i] - nearest) * (scratch_[i] + nearest);
                scratch_[i] = exponent > -700.0 ? std::exp(exponent) / support().inside(clamp(value_[i]), width) : 0.0;
            }
            for (std::size_t j = first; j < n_discrete_; ++j) {
                const double* weights = weights_.data() + j * n_;
                double total = 0.0;
                for (std::size_t i = n_errors_; i < n_; ++i) total += weights[i] * scratch_[i];
                if (total > 1e-290)
                    out[1 + j] = std::log(total) - 0.5 * nearest * nearest - std::log(width) - half_log_2pi;
                else  // its own atoms are too far from the nearest of all
                    out[1 + j] = log_density<NormalKernel>(j, width);
            }
            out = out.subspan(n_all);
        }
    }

   private:
    void sort() {
        for (std::size_t i = 0; i < n_; ++i) order_[i] = i;
        std::sort(order_.begin(), order_.end(),
                  [&](std::size_t a, std::size_t b) { return value_[a] != value_[b] ? value_[a] < value_[b] : a < b; });
        ordered_.resize(n_);
        gap_.resize(n_);
        for (std::size_t i = 0; i < n_; ++i) ordered_[i] = clamp(value_[order_[i]]);
        for (std::size_t i = 0; i + 1 < n_; ++i) gap_[i] = ordered_[i + 1] - ordered_[i];
        for (std::size_t j = 0; j < n_discrete_; ++j) {
            double sum = 0.0;
            for (std::size_t i = 0; i < n_; ++i) {
                const double weight = weights_[j * n_ + order_[i]];
                sorted_[j * n_ + i] = weight;
                cumulative_[j * n_ + i] = sum += weight;
            }
        }
    }

    // Σ gap · (Fⱼ (1 − Fₖ) + Fₖ (1 − Fⱼ)).
    double discrete_distance(std::size_t j, std::size_t k) const {
        const double *f = cumulative_.data() + j * n_, *g = cumulative_.data() + k * n_;
        double total = 0.0;
        for (std::size_t i = 0; i + 1 < n_; ++i) total += gap_[i] * (f[i] + g[i] - 2.0 * f[i] * g[i]);
        return total;
    }

    // The log density of one discrete expert at y.
    template <class Kernel>
    double log_density(std::size_t j, double width) const {
        const double* weights = weights_.data() + j * n_;
        return log_kernels<Kernel>(
            y_, n_, [&](std::size_t i) { return value_[i]; }, [&](std::size_t i) { return weights[i]; }, width,
            support());
    }

    Support support() const { return {with_.low, with_.high}; }
    double clamp(double x) const { return std::min(std::max(x, with_.low), with_.high); }
    double z_of(double x) const { return (x - loc_) / scale_; }

    const Neighbors& near_;
    const Experts &on_targets_, &on_residuals_;
    const Comparison& with_;
    std::size_t n_errors_, n_, n_discrete_;
    std::vector<double> value_;
    std::vector<std::size_t> order_;
    std::vector<double> ordered_, gap_;  // inside the support, ascending
    std::vector<double> weights_, sorted_, cumulative_, scratch_;
    double loc_ = 0.0, scale_ = 1.0, y_ = 0.0;
};

// For rows start to stop: to_target (n, J), to_each_other (n, J(J + 1)/2), log_density (n, n_bandwidths · J).
inline void compare(const Neighbors& near, const Experts& on_targets, const Experts& on_residuals,
                    const Comparison& with, std::size_t start, std::size_t stop, Matrix<double> to_target,
                    Matrix<double> to_each_other, Matrix<double> log_density) {
    RowOfExperts row(near, on_targets, on_residuals, with);
    for (std::size_t i = start; i < stop; ++i) {
        row.load(i);
        row.distances(to_target[i], to_each_other[i]);
        row.log_densities(log_density[i]);
    }
}

}  // namespace ibug::stack
