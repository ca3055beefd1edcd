// Leaf numbers to codes. A model's leaf numbers are renumbered per tree, in order of first appearance among the
// training rows, so that codes are as narrow as the number of leaves that training rows reach.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/matrix.hpp"
#include "search/layout.hpp"

namespace ibug {

inline constexpr std::int32_t unseen = -1;

// A view of numbering[tree][leaf] -> code, (n_trees, width), `unseen` where no training row has reached the leaf.
struct Numbering {
    Matrix<const std::int32_t> codes;

    std::size_t n_trees() const { return codes.n_rows; }

    std::int32_t operator()(std::size_t tree, std::int32_t leaf) const {
        // A leaf number beyond the table, or a negative one seen as a huge unsigned, was never reached in training.
        const auto number = static_cast<std::uint32_t>(leaf);
        return number < codes.width ? codes[tree][number] : unseen;
    }
};

// Gives each new leaf of each tree its code. leaves: (n_rows, n_trees), all within [0, width); counts: (n_trees,), the
// number of codes given so far.
inline void number_leaves(Matrix<const std::int32_t> leaves, Matrix<std::int32_t> codes,
                          std::span<std::int32_t> counts) {
    for (std::size_t r = 0; r < leaves.n_rows; ++r)
        for (std::size_t t = 0; t < leaves.width; ++t) {
            std::int32_t& code = codes[t][static_cast<std::size_t>(leaves[r][t])];
            if (code == unseen) code = counts[t]++;
        }
}

// Writes the codes of rows, the first of which is row `first_row` of the index, into the tiles.
template <class Code>
void pack_rows(Matrix<const std::int32_t> leaves, const Numbering& numbering, std::size_t first_row, Code* tiles) {
    const std::size_t n_rows = leaves.n_rows, n_trees = leaves.width, stride = padded_trees(n_trees) * tile_rows;
    constexpr std::size_t trees_at_a_time = 16;  // one cache line of leaf numbers per row
    for (std::size_t r0 = 0; r0 < n_rows;) {
        const std::size_t lane = (first_row + r0) % tile_rows;
        const std::size_t r1 = std::min(n_rows, r0 + tile_rows - lane);
        Code* tile = tiles + (first_row + r0) / tile_rows * stride;
        for (std::size_t t0 = 0; t0 < n_trees; t0 += trees_at_a_time) {
            const std::size_t t1 = std::min(n_trees, t0 + trees_at_a_time);
            for (std::size_t r = r0; r < r1; ++r)
                for (std::size_t t = t0; t < t1; ++t)
                    tile[t * tile_rows + lane + (r - r0)] = static_cast<Code>(numbering(t, leaves[r][t]));
        }
        r0 = r1;
    }
}

// Moves the codes of tiles so that place i has the row that was at order[i]: `trees_at_a_time` trees after each other,
// which is all that is held twice meanwhile.
template <class Code>
void permute_rows(Code* tiles, std::size_t n_trees, std::span<const std::uint32_t> order, std::size_t trees_at_a_time) {
    const std::size_t n_rows = order.size(), stride = padded_trees(n_trees) * tile_rows;
    std::vector<Code> rows(n_rows * std::min(trees_at_a_time, n_trees));
    for (std::size_t t0 = 0; t0 < n_trees; t0 += trees_at_a_time) {
        const std::size_t width = std::min(trees_at_a_time, n_trees - t0);
        for (std::size_t r = 0; r < n_rows; ++r) {
            const Code* from = tiles + r / tile_rows * stride + t0 * tile_rows + r % tile_rows;
            for (std::size_t t = 0; t < width; ++t) rows[r * width + t] = from[t * tile_rows];
        }
        for (std::size_t r = 0; r < n_rows; ++r) {
            Code* to = tiles + r / tile_rows * stride + t0 * tile_rows + r % tile_rows;
            const Code* from = rows.data() + order[r] * width;
            for (std::size_t t = 0; t < width; ++t) to[t * tile_rows] = from[t];
        }
    }
}

}  // namespace ibug
