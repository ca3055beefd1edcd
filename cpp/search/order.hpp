// An order of the training rows in which similar ones are neighbours, so that tiles of 16 rows have few leaves each and
// whole tiles can be skipped by a bound. Recursive bisection: the rows of a node are divided into two halves of fixed
// sizes, first by two rows far from each other, then by the halves' own leaves (a balanced 2-means of the leaves'
// indicator vectors), and so on down to single tiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "common/matrix.hpp"
#include "search/layout.hpp"

namespace ibug {

class Bisection {
   public:
    // Leaves are told apart modulo this number, which keeps the tables of a sample within the first-level cache.
    static constexpr std::size_t buckets = 64;

    // codes: (n_rows, n_sampled), a sample of at most 1,024 trees, row-major, modulo `buckets`. It must outlive this
    // object.
    explicit Bisection(Matrix<const std::uint8_t> codes)
        : codes_(codes.data), n_sampled_(codes.width), rows_(codes.n_rows), gain_(n_sampled_ * buckets),
          occurs_(n_sampled_ * buckets) {
        for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].row = static_cast<std::uint32_t>(i);
        divide(0, rows_.size());
    }

    void write(std::span<std::uint32_t> order) const {
        for (std::size_t i = 0; i < rows_.size(); ++i) order[i] = rows_[i].row;
    }

   private:
    struct Scored {
        std::int32_t score;
        std::uint32_t row;
    };

    // The row number breaks ties, so that the order does not depend on the library's nth_element.
    static bool higher(const Scored& a, const Scored& b) {
        return a.score != b.score ? a.score > b.score : a.row < b.row;
    }

    // Halves are whole superblocks while there are several, and whole tiles below.
    static std::size_t half(std::size_t n) {
        const std::size_t unit = n > superblock_rows ? superblock_rows : tile_rows;
        const std::size_t units = (n + unit - 1) / unit;
        return (units + 1) / 2 * unit;
    }

    const std::uint8_t* codes(std::size_t i) const { return codes_ + std::size_t{rows_[i].row} * n_sampled_; }

    void prefetch(std::size_t i, std::size_t stop) const {
#if defined(__GNUC__) || defined(__clang__)
        if (i < stop)
            for (std::size_t at = 0; at < n_sampled_; at += 64) __builtin_prefetch(codes(i) + at);
#else
        (void)i, (void)stop;
#endif
    }

    void divide(std::size_t start, std::size_t stop) {
        while (stop - start > tile_rows) {
            const std::size_t middle = start + half(stop - start);
            score_by_pivots(start, stop);
            split(start, middle, stop);
            // The upper levels decide most and cost least for each row, so they get a second look.
            for (int i = 0; i < (stop - start > superblock_rows ? 2 : 1); ++i) {
                score_by_halves(start, middle, stop);
                split(start, middle, stop);
            }
            divide(start, middle);
            start = middle;
        }
    }

    void split(std::size_t start, std::size_t middle, std::size_t stop) {
        const auto at = [this](std::size_t i) { return rows_.begin() + static_cast<std::ptrdiff_t>(i); };
        std::nth_element(at(start), at(middle), at(stop), higher);
    }

    std::int32_t affinity(const std::uint8_t* a, const std::uint8_t* b) const {
        // Byte counters side by side, which become one vector register; a sample is too small for them to overflow.
        constexpr std::size_t lanes = 16;
        std::uint8_t equal[lanes] = {};
        std::size_t t = 0;
        for (; t + lanes <= n_sampled_; t += lanes)
            for (std::size_t i = 0; i < lanes; ++i)
                equal[i] = static_cast<std::uint8_t>(equal[i] + (a[t + i] == b[t + i]));
        std::int32_t sum = 0;
        for (const std::uint8_t n : equal) sum += n;
        for (; t < n_sampled_; ++t) sum += a[t] == b[t];
        return sum;
    }

    // The one of some rows that shares fewest leaves with `row`.
    std::size_t farthest(const std::uint8_t* row, std::size_t start, std::size_t stop) const {
        const std::size_t step = std::max<std::size_t>(1, (stop - start) / sample);
        std::int32_t least = std::int32_t{1} << 30;
        std::size_t found = start;
        for (std::size_t i = start; i < stop; i += step)
            if (const std::int32_t a = affinity(row, codes(i)); a < least) {
                least = a;
                found = i;
            }
        return found;
    }

    void score_by_pivots(std::size_t start, std::size_t stop) {
        const std::uint8_t* a = codes(farthest(codes(start + random_() % (stop - start)), start, stop));
        const std::uint8_t* b = codes(farthest(a, start, stop));
        for (std::size_t i = start; i < stop; ++i) {
            prefetch(i + ahead, stop);
            rows_[i].score = affinity(codes(i), a) - affinity(codes(i), b);
        }
    }

    // A row gains by being in the half where its leaves are more frequent.
    void score_by_halves(std::size_t start, std::size_t middle, std::size_t stop) {
        const std::size_t step = std::max<std::size_t>(1, (stop - start) / (8 * sample));
        std::fill(gain_.begin(), gain_.end(), std::int16_t{0});
        add_occurrences(start, middle, step, 1);
        add_occurrences(middle, stop, step, -1);
        for (std::size_t i = start; i < stop; ++i) {
            prefetch(i + ahead, stop);
            const std::uint8_t* own = codes(i);
            const std::int16_t* gain = gain_.data();
            std::int32_t score = 0;
            for (std::size_t t = 0; t < n_sampled_; ++t, gain += buckets) score += gain[own[t]];
            rows_[i].score = score;
        }
    }

    // Adds sign * frequency of each leaf among every step-th row.
    void add_occurrences(std::size_t start, std::size_t stop, std::size_t step, int sign) {
        std::fill(occurs_.begin(), occurs_.end(), std::uint16_t{0});
        std::int32_t n = 0;
        for (std::size_t i = start; i < stop; i += step, ++n) {
            prefetch(i + ahead * step, stop);
            const std::uint8_t* own = codes(i);
            for (std::size_t t = 0; t < n_sampled_; ++t) ++occurs_[t * buckets + own[t]];
        }
        // As fixed-point numbers with 12 bits; the sum of up to 128 trees is far from the limit of 32 bits.
        const float scale = 4096.0f / static_cast<float>(n);
        for (std::size_t j = 0; j < gain_.size(); ++j)
            gain_[j] =
                static_cast<std::int16_t>(gain_[j] + sign * static_cast<int>(static_cast<float>(occurs_[j]) * scale));
    }

    static constexpr std::size_t sample = 128;
    static constexpr std::size_t ahead = 8;

    const std::uint8_t* codes_;
    std::size_t n_sampled_;
    std::vector<Scored> rows_;
    std::vector<std::int16_t> gain_;
    std::vector<std::uint16_t> occurs_;
    std::minstd_rand random_;  // the same on every machine
};

// A sample of the trees of all rows, (n_rows, n_sampled), from tiles.
template <class Code>
std::vector<std::uint8_t> sample_trees(const Code* tiles, std::size_t n_rows, std::size_t n_trees,
                                       std::size_t n_sampled) {
    const std::size_t stride = padded_trees(n_trees) * tile_rows;
    std::vector<std::uint8_t> out(n_rows * n_sampled);
    for (std::size_t r0 = 0; r0 < n_rows; r0 += tile_rows) {
        const Code* tile = tiles + r0 / tile_rows * stride;
        const std::size_t size = std::min(tile_rows, n_rows - r0);
        for (std::size_t s = 0; s < n_sampled; ++s) {
            const Code* from = tile + s * n_trees / n_sampled * tile_rows;
            for (std::size_t r = 0; r < size; ++r)
                out[(r0 + r) * n_sampled + s] = static_cast<std::uint8_t>(from[r] % Bisection::buckets);
        }
    }
    return out;
}

}  // namespace ibug
