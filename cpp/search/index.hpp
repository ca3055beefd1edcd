// An index as the searches see it: views of arrays that belong to somebody else, checked once. It never changes, so
// that any number of threads may ask it at the same time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "common/matrix.hpp"
#include "search/cells.hpp"
#include "search/codes.hpp"
#include "search/full_scan.hpp"
#include "search/layout.hpp"
#include "search/loops.hpp"
#include "search/queries.hpp"
#include "search/tiles.hpp"

namespace ibug {

// Ranges of queries and of tiles, stops exclusive.
struct Range {
    std::size_t query_start, query_stop, tile_start, tile_stop;

    std::size_t n_queries() const { return query_stop - query_start; }
};

// Where results go: both (n_queries, k). A range of queries is written to its own rows.
struct Results {
    Matrix<std::int32_t> affinities;
    Matrix<std::int64_t> rows;

    std::size_t k() const { return rows.width; }
};

template <class Code>
class Index {
   public:
    // numbering and leaf_counts, (n_trees,), make codes of leaf numbers. Without cells only scan() works.
    Index(const Tiles<Code>& tiles, const Numbering& numbering, std::span<const std::int32_t> leaf_counts,
          const std::optional<Cells<Code>>& cells)
        : tiles_(tiles), numbering_(numbering), leaf_counts_(leaf_counts), cells_(cells) {
        for (const std::int32_t count : leaf_counts)
            if (count < 1 || count > most_leaves)
                throw std::invalid_argument("leaf_counts must be from 1 to what the codes can tell apart");
    }

    std::size_t n_trees() const { return tiles_.n_trees; }
    std::size_t n_rows() const { return tiles_.n_rows; }
    bool has_cells() const { return cells_.has_value(); }

    // In all of these `leaves` are leaf numbers, (n_queries, n_trees), of which a range is searched for.

    // The k rows of highest affinity, best first, ties by row; -1 where there are fewer rows in the tiles.
    void scan(Matrix<const std::int32_t> leaves, const Range& range, const Results& out, const Loops& loops) const {
        const EncodedQueries<Code> queries = encode(leaves, range);
        std::vector<std::uint32_t> outputs(range.n_queries());
        std::iota(outputs.begin(), outputs.end(), 0u);
        ibug::scan(tiles_, queries.view(), outputs.data(), out.k(), range.tile_start, range.tile_stop,
                   out.affinities[range.query_start].data(), out.rows[range.query_start].data(), loops);
    }

    // The same among the rows of the nearest cells only, for a range of queries; `visited` has the number of rows that
    // each was compared with, (n_queries,).
    void search(Matrix<const std::int32_t> leaves, const Range& range, std::size_t n_visited, const Results& out,
                std::span<std::int64_t> visited, const Loops& loops) const {
        const EncodedQueries<Code> queries = encode(leaves, range);
        CellSearch<Code>(tiles_, *cells_, out.k(), n_visited, loops)
            .find(queries.view(), out.affinities[range.query_start].data(), out.rows[range.query_start].data(),
                  visited.data() + range.query_start);
    }

    // The code of each leaf, (n_queries, n_trees); `unseen` where no training row has been.
    void number(Matrix<const std::int32_t> leaves, Matrix<std::int32_t> codes) const {
        for (std::size_t q = 0; q < leaves.n_rows; ++q)
            for (std::size_t t = 0; t < leaves.width; ++t) codes[q][t] = numbering_(t, leaves[q][t]);
    }

    // The number of rows in each leaf, those of all trees one after the other: sizes, (n_leaves,).
    void count_rows(std::span<std::int64_t> sizes) const {
        std::fill(sizes.begin(), sizes.end(), std::int64_t{0});
        std::vector<std::span<std::int64_t>> own;
        for (const std::int32_t count : leaf_counts_) {
            own.push_back(sizes.first(static_cast<std::size_t>(count)));
            sizes = sizes.subspan(own.back().size());
        }
        for (std::size_t place = 0; place < n_rows(); place += tile_rows) {
            const Code* tile = tiles_.tile(place / tile_rows);
            const std::size_t size = std::min(tile_rows, n_rows() - place);
            for (std::size_t t = 0; t < n_trees(); ++t)
                for (std::size_t r = 0; r < size; ++r)
                    if (const Code code = tile[t * tile_rows + r]; code < own[t].size()) ++own[t][code];
        }
    }

   private:
    static constexpr std::int64_t most_leaves = std::int64_t{std::numeric_limits<Code>::max()} + 1;

    EncodedQueries<Code> encode(Matrix<const std::int32_t> leaves, const Range& range) const {
        return {leaves.rows(range.query_start, range.query_stop), numbering_, leaf_counts_};
    }

    Tiles<Code> tiles_;
    Numbering numbering_;
    std::span<const std::int32_t> leaf_counts_;
    std::optional<Cells<Code>> cells_;
};

}  // namespace ibug
