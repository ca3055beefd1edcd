// Queries: their leaves as codes, and what codes cannot tell.
//
// A leaf without training rows gets the first code that no training row of the tree has. Where all codes are taken, as
// when 256 leaves fill 8 bits, there is none: the tree is *uncoded* for this query, whose code there is that of another
// leaf. The loops compare it like any other, and what they count in such a tree is taken back. So an index answers
// every query as it is, in codes as narrow as its own leaves need.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "common/matrix.hpp"
#include "search/codes.hpp"
#include "search/layout.hpp"
#include "search/tiles.hpp"

namespace ibug {

template <class Code>
struct Query {
    const Code* codes;                       // (width,)
    std::span<const std::uint32_t> uncoded;  // trees, ascending
};

// A view of some queries.
template <class Code>
struct Queries {
    const Code* codes;  // (n, width)
    std::size_t n;
    std::size_t width;
    const std::uint32_t* first_uncoded;  // (n + 1,): where each query's uncoded trees start, or null where none has any
    const std::uint32_t* uncoded;

    Query<Code> operator[](std::size_t q) const {
        if (first_uncoded == nullptr) return {codes + q * width, {}};
        return {codes + q * width, {uncoded + first_uncoded[q], uncoded + first_uncoded[q + 1]}};
    }

    Queries part(std::size_t start, std::size_t stop) const {
        return {codes + start * width, stop - start, width, first_uncoded ? first_uncoded + start : nullptr, uncoded};
    }
};

// Takes back what the loops have counted in the query's uncoded trees. counts: the rows of `n_tiles` tiles, one after
// the other.
template <class Code>
void take_back(const Tiles<Code>& tiles, std::size_t first_tile, std::size_t n_tiles, const Query<Code>& query,
               std::uint16_t* counts) {
    for (const std::uint32_t tree : query.uncoded)
        for (std::size_t i = 0; i < n_tiles; ++i) {
            const Code* rows = tiles.tile(first_tile + i) + tree * tile_rows;
            std::uint16_t* own = counts + i * tile_rows;
            for (std::size_t r = 0; r < tile_rows; ++r)
                own[r] = static_cast<std::uint16_t>(own[r] - (rows[r] == query.codes[tree]));
        }
}

template <class Code>
class EncodedQueries {
   public:
    // leaves: (n, n_trees), leaf numbers; counts: (n_trees,), the number of codes of each tree.
    EncodedQueries(Matrix<const std::int32_t> leaves, const Numbering& numbering, std::span<const std::int32_t> counts)
        : n_(leaves.n_rows), width_(padded_trees(leaves.width)), codes_(new Code[n_ * width_]) {
        const std::size_t n_trees = leaves.width;
        std::size_t n_uncoded = 0;
        bool outside = false;
        for (std::size_t q = 0; q < n_; ++q) {
            Code* own = codes_.get() + q * width_;
            for (std::size_t t = 0; t < n_trees; ++t) {
                const std::int32_t leaf = leaves[q][t];
                std::int32_t code = numbering(t, leaf);
                outside |= static_cast<std::uint32_t>(leaf) >= 0x7fffffffu;
                if (code == unseen) {
                    code = counts[t];
                    n_uncoded += !has_code(code);
                }
                own[t] = static_cast<Code>(code);
            }
            std::fill(own + n_trees, own + width_, Code{1});  // rows have 0 in the trees that fill up
        }
        if (outside) throw std::invalid_argument("leaf numbers must be from 0 to 2**31 - 2");
        if (n_uncoded > 0) list_uncoded(leaves, numbering, counts, n_uncoded);
    }

    // Some of other queries.
    EncodedQueries(const Queries<Code>& from, const std::vector<std::uint32_t>& chosen)
        : n_(chosen.size()), width_(from.width), codes_(new Code[n_ * width_]) {
        for (std::size_t i = 0; i < n_; ++i) std::copy_n(from[chosen[i]].codes, width_, codes_.get() + i * width_);
        if (from.first_uncoded == nullptr) return;
        first_uncoded_.assign(1, 0);
        for (const std::uint32_t q : chosen) {
            const auto trees = from[q].uncoded;
            uncoded_.insert(uncoded_.end(), trees.begin(), trees.end());
            first_uncoded_.push_back(static_cast<std::uint32_t>(uncoded_.size()));
        }
    }

    Queries<Code> view() const {
        return {codes_.get(), n_, width_, first_uncoded_.empty() ? nullptr : first_uncoded_.data(), uncoded_.data()};
    }

   private:
    static bool has_code(std::int32_t code) {
        return static_cast<std::uint32_t>(code) <= std::numeric_limits<Code>::max();
    }

    void list_uncoded(Matrix<const std::int32_t> leaves, const Numbering& numbering,
                      std::span<const std::int32_t> counts, std::size_t n_uncoded) {
        if (n_uncoded > std::numeric_limits<std::uint32_t>::max())
            throw std::invalid_argument("too many queries in leaves without training rows at a time");
        uncoded_.reserve(n_uncoded);
        first_uncoded_.assign(1, 0);
        for (std::size_t q = 0; q < n_; ++q) {
            for (std::size_t t = 0; t < leaves.width; ++t)
                if (!has_code(counts[t]) && numbering(t, leaves[q][t]) == unseen)
                    uncoded_.push_back(static_cast<std::uint32_t>(t));
            first_uncoded_.push_back(static_cast<std::uint32_t>(uncoded_.size()));
        }
    }

    std::size_t n_, width_;
    std::unique_ptr<Code[]> codes_;
    std::vector<std::uint32_t> first_uncoded_, uncoded_;  // see Queries; both empty where no query has uncoded trees
};

}  // namespace ibug
