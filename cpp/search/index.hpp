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
#include "search/codes.hpp"
#include "search/full_scan.hpp"
#include "search/layout.hpp"
#include "search/loops.hpp"
#include "search/places.hpp"
#include "search/pruned_search.hpp"
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
    // numbering and leaf_counts, (n_trees,), make codes of leaf numbers. Without bounds only scan() works.
    Index(const Tiles<Code>& tiles, const Numbering& numbering, std::span<const std::int32_t> leaf_counts,
          const std::optional<Bounds>& bounds)
        : tiles_(tiles), numbering_(numbering), leaf_counts_(leaf_counts), bounds_(bounds) {
        for (const std::int32_t count : leaf_counts)
            if (count < 1 || count > most_leaves)
                throw std::invalid_argument("leaf_counts must be from 1 to what the codes can tell apart");
    }

    std::size_t n_trees() const { return tiles_.n_trees; }
    std::size_t n_rows() const { return tiles_.n_rows; }
    bool has_bounds() const { return bounds_.has_value(); }

    // In all of these `leaves` are leaf numbers, (n_queries, n_trees), of which a range is searched for.

    // The k rows of highest affinity, best first, ties by row; -1 where there are fewer rows in the tiles.
    void scan(Matrix<const std::int32_t> leaves, const Range& range, const Results& out, const Loops& loops) const {
        const EncodedQueries<Code> queries = encode(leaves, range);
        std::vector<std::uint32_t> outputs(range.n_queries());
        std::iota(outputs.begin(), outputs.end(), 0u);
        ibug::scan(tiles_, queries.view(), outputs.data(), out.k(), range.tile_start, range.tile_stop,
                   out.affinities[range.query_start].data(), out.rows[range.query_start].data(), loops);
    }

    // The same, but tiles are skipped that cannot have a row among the best; see ibug::search.
    void search(Matrix<const std::int32_t> leaves, const Range& range, std::size_t most_visits, const Results& out,
                const Loops& loops) const {
        if (range.tile_start == range.tile_stop) return scan(leaves, range, out, loops);
        const EncodedQueries<Code> queries = encode(leaves, range);
        ibug::search(tiles_, *bounds_, queries.view(), out.k(), range.tile_start, range.tile_stop, most_visits,
                     out.affinities[range.query_start].data(), out.rows[range.query_start].data(), nullptr, loops);
    }

    // The number of tiles that search() visits for each query, if it never gives up.
    void count_visits(Matrix<const std::int32_t> leaves, std::size_t k, std::span<std::int64_t> visits,
                      const Loops& loops) const {
        const EncodedQueries<Code> queries{leaves, numbering_, leaf_counts_};
        count_visits(queries.view(), k, visits, loops);
    }

    // The same where rows of the index are the queries, by their places in the tiles.
    void count_visits_of_rows(std::span<const std::size_t> places, std::size_t k, std::span<std::int64_t> visits,
                              const Loops& loops) const {
        const std::size_t width = tiles_.width();
        std::vector<Code> codes(places.size() * width, Code{1});
        for (std::size_t i = 0; i < places.size(); ++i) {
            const Code* from = tiles_.tile(places[i] / tile_rows) + places[i] % tile_rows;
            for (std::size_t t = 0; t < tiles_.n_trees; ++t) codes[i * width + t] = from[t * tile_rows];
        }
        count_visits({codes.data(), places.size(), width, nullptr, nullptr}, k, visits, loops);
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

    void count_visits(const Queries<Code>& queries, std::size_t k, std::span<std::int64_t> visits,
                      const Loops& loops) const {
        const std::size_t n_tiles = n_tiles_of(tiles_.n_rows);
        std::vector<std::int32_t> affinities(queries.n * k);
        std::vector<std::int64_t> rows(queries.n * k);
        ibug::search(tiles_, *bounds_, queries, k, 0, n_tiles, n_tiles, affinities.data(), rows.data(), visits.data(),
                     loops);
    }

    Tiles<Code> tiles_;
    Numbering numbering_;
    std::span<const std::int32_t> leaf_counts_;
    std::optional<Bounds> bounds_;
};

}  // namespace ibug
