// The k best training rows of a query.
//
// Order is total: affinity descending, then row ascending, so that every schedule finds the same neighbours.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "search/layout.hpp"

namespace ibug {

// The best k of the rows offered so far, in any order. A histogram of the affinities that have entered tells at any
// time which the k-th best is, so that few rows are kept in vain.
class TopK {
   public:
    // The memory of one.
    static std::size_t bytes(std::size_t k, std::size_t n_trees) {
        return (2 * k + room) * sizeof(std::uint64_t) + n_slots(n_trees) * sizeof(std::uint32_t);
    }

    void reset(std::size_t k, std::size_t n_trees) {
        k_ = k;
        capacity_ = 2 * k + room;
        if (best_.size() < capacity_) best_.resize(capacity_);
        size_ = 0;
        entered_.assign(n_slots(n_trees), 0);
        at_least_ = kth_ = 0;
        last_row_ = any_row;
    }

    bool full() const { return at_least_ >= k_; }

    // The k-th best affinity, which a further row must have at least; 0 while there are fewer than k.
    std::uint32_t needed() const { return kth_; }

    // The rows that `mask` names: bit i is the row order[i] with affinity counts[i].
    void offer(const std::uint16_t* counts, const std::uint32_t* order, std::uint64_t mask) {
        if (size_ + 64 > capacity_) make_room();
        std::uint64_t* const best = best_.data();
        const std::size_t before = size_;
        for (; mask != 0; mask &= mask - 1) {
            const auto i = static_cast<std::size_t>(std::countr_zero(mask));
            const std::uint32_t affinity = counts[i], row = order[i];
            const bool enters = affinity > kth_ || (affinity == kth_ && row < last_row_);
            best[size_] = std::uint64_t{affinity} << 32 | (any_row - row);
            entered_[affinity] += enters;
            size_ += enters;
        }
        if (size_ == before) return;
        at_least_ += size_ - before;
        while (at_least_ - entered_[kth_] >= k_) {
            at_least_ -= entered_[kth_++];
            last_row_ = any_row;
        }
    }

    // Writes k affinities and rows, best first; where fewer rows were offered the rest is -1. No more can be offered
    // then.
    void write(std::int32_t* affinities, std::int64_t* rows) {
        drop_worse();
        // Those above the k-th affinity are put in order by counting, and those that are equal to it come apart: it may
        // be that some of them only are among the k best.
        std::fill(entered_.begin() + kth_, entered_.end(), 0u);
        for (std::size_t i = 0; i < size_; ++i) ++entered_[best_[i] >> 32];
        std::uint32_t start = 0;
        for (std::size_t affinity = entered_.size(); --affinity > kth_;)
            start += std::exchange(entered_[affinity], start);
        std::size_t n_equal = 0;
        for (std::size_t i = 0; i < size_; ++i) {
            const auto affinity = static_cast<std::uint32_t>(best_[i] >> 32);
            if (affinity > kth_) {
                const std::uint32_t at = entered_[affinity]++;
                affinities[at] = static_cast<std::int32_t>(affinity);
                rows[at] = row_of(best_[i]);
            } else {
                best_[n_equal++] = best_[i];
            }
        }
        for (std::size_t first = 0; first < start;) {
            const std::size_t last = entered_[static_cast<std::size_t>(affinities[first])];
            if (last - first > 1) std::sort(rows + first, rows + last);
            first = last;
        }
        const std::size_t n_taken = std::min(n_equal, k_ - start);
        const auto equal = best_.begin(), taken = equal + static_cast<std::ptrdiff_t>(n_taken);
        if (n_taken < n_equal)
            std::nth_element(equal, taken, equal + static_cast<std::ptrdiff_t>(n_equal), std::greater<>());
        std::sort(equal, taken, std::greater<>());
        for (std::size_t i = start; i < k_; ++i) {
            affinities[i] = i - start < n_taken ? static_cast<std::int32_t>(kth_) : -1;
            rows[i] = i - start < n_taken ? std::int64_t{row_of(best_[i - start])} : -1;
        }
    }

   private:
    static constexpr std::uint32_t any_row = 0xffffffffu;

    // One for each affinity that can be offered. Trees that fill up a line match nothing in an index that was built
    // here; in one from a damaged or forged file they may, and are counted like the others. Counts have 16 bits.
    static std::size_t n_slots(std::size_t n_trees) { return padded_trees(n_trees) + 2; }
    static_assert(padded_trees(max_trees) + 2 > 0xffff);

    static std::uint32_t row_of(std::uint64_t key) { return any_row - static_cast<std::uint32_t>(key); }

    // Most of those that have entered are worse than the k-th best by now.
    void drop_worse() {
        std::size_t n = 0;
        for (std::size_t i = 0; i < size_; ++i) {
            const std::uint64_t key = best_[i];
            best_[n] = key;
            n += key >> 32 >= kth_;
        }
        size_ = n;
    }

    // Where many are equal to the k-th best, row numbers decide.
    void make_room() {
        drop_worse();
        if (size_ > k_ + room / 2) compact();
    }

    // Keeps the k best of those that have entered. The last of them is the row that a tie must be before.
    void compact() {
        if (size_ < k_) return;
        const auto last = best_.begin() + static_cast<std::ptrdiff_t>(k_) - 1;
        std::nth_element(best_.begin(), last, best_.begin() + static_cast<std::ptrdiff_t>(size_), std::greater<>());
        size_ = k_;
        last_row_ = row_of(*last);
    }

    static constexpr std::size_t room = 128;  // beyond twice k, at least the 64 rows that are offered at a time

    std::size_t k_ = 0;
    std::size_t capacity_ = 0, size_ = 0;
    std::vector<std::uint64_t>
        best_;  // size_ of them, and room: affinity, then the row number, both such that more is better
    std::vector<std::uint32_t> entered_;  // by affinity: how many rows have entered
    std::size_t at_least_ = 0;            // how many of them have an affinity of kth_ or more
    std::uint32_t kth_ = 0;
    std::uint32_t last_row_ = any_row;  // of equal affinities only rows before this one can enter
};

}  // namespace ibug
