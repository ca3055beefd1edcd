// What several experts say of each row: joined to one list of weighted atoms, or compared with the target and with each
// other to find their weights.
//
// An expert on neighbours gives its k nearest the weights exp(β (aᵣ − a₀)), divided by their sum, where aᵣ is the
// affinity as a share of the trees; β = 0 means equal weights. Where training rows count for more or less than one,
// these weights are multiplied by what each counts for.
#pragma once

#include "stack/density.hpp"

namespace ibug::stack {

// Whether all numbers are finite: the difference of such a number to itself is zero, that of any other is none.
inline bool all_finite(const double* numbers, std::size_t n) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += numbers[i] - numbers[i];
    return sum == 0;
}

struct Experts {
    const std::int64_t* k;
    const double* sharpness;
    std::size_t n;
};

// The neighbours of the rows: what they say, (n, n_targets) and (n, n_residuals), nearest first.
struct Neighbors {
    const double* loc;      // (n,), the predictions
    const double* targets;  // (n, n_targets)
    std::size_t n_targets;
    const double* moved;  // (n, n_residuals), the predictions plus the neighbours' residuals
    std::size_t n_residuals;
    const double* shares;  // (n, n_shares)
    std::size_t n_shares;
    const double* counts;  // (n, n_shares), or null where all neighbours count alike

    const double* counts_of(std::size_t row) const { return counts == nullptr ? nullptr : counts + row * n_shares; }
};

// Write the weights that one expert gives the nearest k, and zeros up to n.
inline void expert_weights(const double* shares, const double* counts, std::int64_t k, double sharpness, std::size_t n,
                           double* out) {
    const std::size_t last = std::min(static_cast<std::size_t>(k), n);
    double total = 0.0;
    for (std::size_t i = 0; i < last; ++i) {
        out[i] = sharpness == 0.0 ? 1.0 : std::exp(sharpness * (shares[i] - shares[0]));
        if (counts != nullptr) out[i] *= counts[i];
        total += out[i];
    }
    for (std::size_t i = 0; i < last; ++i) out[i] /= total;
    std::fill(out + last, out + n, 0.0);
}

// Write each row's atoms, ascending, and their masses, both (n, n_targets + n_residuals), for given weights of experts.
inline void combine(const Neighbors& near, const Experts& on_targets, const double* target_weights,
                    const Experts& on_residuals, const double* residual_weights, std::size_t start, std::size_t stop,
                    double* atoms, float* masses) {
    struct Atom {
        double value, mass;
    };
    const std::size_t n = near.n_targets + near.n_residuals;
    std::vector<Atom> list(n);
    std::vector<double> own(n);
    const auto add = [&](const Experts& experts, const double* weights, const double* shares, const double* counts,
                         std::size_t count, Atom* out) {
        for (std::size_t j = 0; j < experts.n; ++j) {
            if (!(weights[j] > 0.0)) continue;
            expert_weights(shares, counts, experts.k[j], experts.sharpness[j], count, own.data());
            for (std::size_t i = 0; i < count; ++i) out[i].mass += weights[j] * own[i];
        }
    };
    for (std::size_t row = start; row < stop; ++row) {
        const double* shares = near.shares + row * near.n_shares;
        for (std::size_t i = 0; i < near.n_targets; ++i) list[i] = {near.targets[row * near.n_targets + i], 0.0};
        for (std::size_t i = 0; i < near.n_residuals; ++i)
            list[near.n_targets + i] = {near.moved[row * near.n_residuals + i], 0.0};
        const double* counts = near.counts_of(row);
        add(on_targets, target_weights, shares, counts, near.n_targets, list.data());
        add(on_residuals, residual_weights, shares, counts, near.n_residuals, list.data() + near.n_targets);
        std::sort(list.begin(), list.end(), [](const Atom& a, const Atom& b) { return a.value < b.value; });
        for (std::size_t i = 0; i < n; ++i) {
            atoms[row * n + i] = list[i].value;
            masses[row * n + i] = static_cast<float>(list[i].mass);
        }
    }
}

// What the statistics of a row are made of, beside its neighbours.
struct Comparison {
    const double* scale;   // (n,)
    const double* y;       // (n,)
    const double* errors;  // (n_errors,), ascending
    std::size_t n_errors;
    const double* bandwidths;  // (n_bandwidths,), relative to the scale
    std::size_t n_bandwidths;
    double error_bandwidth, least;  // of the errors, relative to the scale; no kernel is narrower than the least
    double low, high;               // the support
};

// One row's experts, of which the first is normal and the others are weights on one list of atoms: the errors, then the
// experts on targets, then those on residuals.
class RowOfExperts {
   public:
    RowOfExperts(const Neighbors& near, const Experts& on_targets, const Experts& on_residuals, const Comparison& with)
        : near_(near), on_targets_(on_targets), on_residuals_(on_residuals), with_(with),
          n_(with.n_errors + near.n_targets + near.n_residuals),
          n_discrete_((with.n_errors > 0) + on_targets.n + on_residuals.n), value_(n_), order_(n_),
          weights_(n_discrete_ * n_), sorted_(n_discrete_ * n_), cumulative_(n_discrete_ * n_), scratch_(n_) {}

    std::size_t n_experts() const { return 1 + n_discrete_; }

    void load(std::size_t row) {
        loc_ = near_.loc[row];
        scale_ = with_.scale[row];
        y_ = with_.y[row];
        std::fill(weights_.begin(), weights_.end(), 0.0);
        double* weights = weights_.data();
        std::size_t from = 0;
        for (std::size_t i = 0; i < with_.n_errors; ++i) {
            value_[i] = loc_ + scale_ * with_.errors[i];
            weights[i] = 1.0 / static_cast<double>(with_.n_errors);
        }
        if (with_.n_errors > 0) weights += n_;
        from += with_.n_errors;
        const double *shares = near_.shares + row * near_.n_shares, *counts = near_.counts_of(row);
        for (std::size_t i = 0; i < near_.n_targets; ++i) value_[from + i] = near_.targets[row * near_.n_targets + i];
        for (std::size_t j = 0; j < on_targets_.n; ++j, weights += n_)
            expert_weights(shares, counts, on_targets_.k[j], on_targets_.sharpness[j], near_.n_targets, weights + from);
        from += near_.n_targets;
        for (std::size_t i = 0; i < near_.n_residuals; ++i) value_[from + i] = near_.moved[row * near_.n_residuals + i];
        for (std::size_t j = 0; j < on_residuals_.n; ++j, weights += n_)
            expert_weights(shares, counts, on_residuals_.k[j], on_residuals_.sharpness[j], near_.n_residuals,
                           weights + from);
        sort();
    }

    // E|Xⱼ − y| of each expert, and E|Xⱼ − Xₖ| for k ≤ j, row after row of the lower triangle.
    void distances(double* to_target, double* to_each_other) {
        const double inside = clamp(y_), outside = std::abs(y_ - inside);
        const double cut = (with_.low > -infinity ? scale_ * shortfall(z_of(with_.low)) : 0.0) +
                           (with_.high < infinity ? scale_ * shortfall(-z_of(with_.high)) : 0.0);
        to_target[0] = scale_ * distance(z_of(inside)) - cut + outside;
        to_each_other[0] = 2.0 * scale_ * (pair_integral(z_of(with_.high)) - pair_integral(z_of(with_.low)));
        std::vector<double>& normal = scratch_;
        for (std::size_t i = 0; i < n_; ++i) normal[i] = scale_ * distance(z_of(ordered_[i])) - cut;
        double* out = to_each_other + 1;
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
    void log_densities(double* out) {
        const std::size_t n_all = n_experts(), first = with_.n_errors > 0;
        const double normal = log_normal_density(y_, loc_, scale_) - std::log(support().inside(loc_, scale_));
        // The kernels of errors have one width.
        const double errors =
            first ? log_density<TailedKernel>(0, std::max(with_.error_bandwidth * scale_, with_.least)) : 0.0;
        for (std::size_t b = 0; b < with_.n_bandwidths; ++b, out += n_all) {
            const double width = std::max(with_.bandwidths[b] * scale_, with_.least);
            out[0] = normal;
            if (first) out[1] = errors;
            // Kernels are computed once for all experts, relative to the nearest atom.
            double nearest = infinity;
            for (std::size_t i = with_.n_errors; i < n_; ++i) {
                scratch_[i] = std::abs(standardised(y_, clamp(value_[i]), width));
                nearest = std::min(nearest, scratch_[i]);
            }
            for (std::size_t i = with_.n_errors; i < n_; ++i) {
                const double exponent = -0.5 * (scratch_[i] - nearest) * (scratch_[i] + nearest);
                scratch_[i] = exponent > -700.0 ? std::exp(exponent) / support().inside(clamp(value_[i]), width) : 0.0;
            }
            for (std::size_t j = first; j < n_discrete_; ++j) {
                const double* weights = weights_.data() + j * n_;
                double total = 0.0;
                for (std::size_t i = with_.n_errors; i < n_; ++i) total += weights[i] * scratch_[i];
                if (total > 1e-290)
                    out[1 + j] = std::log(total) - 0.5 * nearest * nearest - std::log(width) - half_log_2pi;
                else  // its own atoms are too far from the nearest of all
                    out[1 + j] = log_density<NormalKernel>(j, width);
            }
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
    std::size_t n_, n_discrete_;
    std::vector<double> value_;
    std::vector<std::size_t> order_;
    std::vector<double> ordered_, gap_;  // inside the support, ascending
    std::vector<double> weights_, sorted_, cumulative_, scratch_;
    double loc_ = 0.0, scale_ = 1.0, y_ = 0.0;
};

// For rows start to stop: to_target (n, J), to_each_other (n, J(J + 1)/2), log_density (n, n_bandwidths, J).
inline void compare(const Neighbors& near, const Experts& on_targets, const Experts& on_residuals,
                    const Comparison& with, std::size_t start, std::size_t stop, double* to_target,
                    double* to_each_other, double* log_density) {
    RowOfExperts row(near, on_targets, on_residuals, with);
    const std::size_t j = row.n_experts(), pairs = j * (j + 1) / 2;
    for (std::size_t i = start; i < stop; ++i) {
        row.load(i);
        row.distances(to_target + i * j, to_each_other + i * pairs);
        row.log_densities(log_density + i * with.n_bandwidths * j);
    }
}

}  // namespace ibug::stack
