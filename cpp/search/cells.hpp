// A partition of the training rows into cells around prototypes, and a search that looks at the rows of the cells only
// whose prototypes are nearest to the query.
//
// Rows are stored cell by cell. A query is compared with all prototypes, then with the rows of the nearest cells. The
// queries of a cell are counted together, and what a query finds depends on itself alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "search/full_scan.hpp"
#include "search/layout.hpp"
#include "search/loops.hpp"
#include "search/queries.hpp"
#include "search/tiles.hpp"
#include "search/top_k.hpp"

namespace ibug {

template <class Code>
struct Cells {
    Tiles<Code> prototypes;                 // one row a cell
    std::span<const std::uint32_t> starts;  // (n_cells + 1,): the places of the rows of cell c are starts[c], …

    std::size_t n() const { return starts.size() - 1; }
};

// The codes of the rows at some places as queries, which have 1 in the trees that fill up.
template <class Code>
std::vector<Code> codes_of_places(const Tiles<Code>& tiles, std::size_t first, std::size_t last) {
    const std::size_t width = tiles.width();
    std::vector<Code> codes((last - first) * width, Code{1});
    for (std::size_t place = first; place < last; ++place) {
        const Code* from = tiles.tile(place / tile_rows) + place % tile_rows;
        Code* to = codes.data() + (place - first) * width;
        for (std::size_t t = 0; t < tiles.n_trees; ++t) to[t] = from[t * tile_rows];
    }
    return codes;
}

// The nearest prototype of the rows at places [first, last), ties by the lower number, into cells, (last - first,).
template <class Code>
void nearest_prototypes(const Tiles<Code>& tiles, const Tiles<Code>& prototypes, std::size_t first, std::size_t last,
                        std::span<std::int64_t> cells, const Loops& loops) {
    constexpr std::size_t at_a_time = 512;
    std::vector<std::uint32_t> outputs(at_a_time);
    std::iota(outputs.begin(), outputs.end(), 0u);
    std::vector<std::int32_t> affinities(at_a_time);
    for (std::size_t start = first; start < last; start += at_a_time) {
        const std::size_t stop = std::min(last, start + at_a_time);
        const std::vector<Code> codes = codes_of_places(tiles, start, stop);
        scan<Code>(prototypes, {codes.data(), stop - start, tiles.width(), nullptr, nullptr}, outputs.data(), 1, 0,
                   n_tiles_of(prototypes.n_rows), affinities.data(), cells.data() + (start - first), loops);
    }
}

template <class Code>
class CellSearch {
   public:
    // n_visited: how many cells a query visits, the nearest ones; at least so many that they should have twice k rows.
    CellSearch(const Tiles<Code>& tiles, const Cells<Code>& cells, std::size_t k, std::size_t n_visited,
               const Loops& loops)
        : tiles_(tiles), cells_(cells), k_(k), loops_(loops),
          n_visited_(std::min(std::max(n_visited, 2 * k * cells.n() / tiles.n_rows + 1), cells.n())) {}

    // affinities and rows: (queries.n, k); visited: the number of rows that each query was compared with.
    void find(const Queries<Code>& queries, std::int32_t* affinities, std::int64_t* rows, std::int64_t* visited) {
        // As many queries at a time as need 32 MB.
        const std::size_t bytes = TopK::bytes(k_, tiles_.n_trees) + n_visited_ * 12;
        const std::size_t most = std::clamp<std::size_t>((std::size_t{1} << 25) / bytes, 1, 4096);
        for (std::size_t first = 0; first < queries.n; first += most) {
            const std::size_t last = std::min(queries.n, first + most);
            find_block(queries.part(first, last), affinities + first * k_, rows + first * k_, visited + first);
        }
    }

   private:
    struct Visit {
        std::uint32_t cell, query;
    };

    void find_block(const Queries<Code>& queries, std::int32_t* affinities, std::int64_t* rows, std::int64_t* visited) {
        rank(queries);
        if (best_.size() < queries.n) best_.resize(queries.n);
        for (std::size_t q = 0; q < queries.n; ++q) {
            best_[q].reset(k_, tiles_.n_trees);
            visited[q] = 0;
        }
        visits_.clear();
        for (std::uint32_t q = 0; q < queries.n; ++q)
            for (std::size_t i = 0; i < n_visited_; ++i) {
                const auto cell = static_cast<std::uint32_t>(nearest_[q * n_visited_ + i]);
                visits_.push_back({cell, q});
                visited[q] += cells_.starts[cell + 1] - cells_.starts[cell];
            }
        visit(queries);
        // Where these cells have fewer than k rows, all rows are looked at.
        std::vector<std::uint32_t> few;
        for (std::uint32_t q = 0; q < queries.n; ++q) {
            if (best_[q].full())
                best_[q].write(affinities + q * k_, rows + q * k_);
            else
                few.push_back(q);
        }
        if (few.empty()) return;
        for (const std::uint32_t q : few) visited[q] = static_cast<std::int64_t>(tiles_.n_rows);
        const EncodedQueries<Code> rest(queries, few);
        scan(tiles_, rest.view(), few.data(), k_, 0, n_tiles_of(tiles_.n_rows), affinities, rows, loops_);
    }

    // The nearest cells of each query, best first.
    void rank(const Queries<Code>& queries) {
        similarity_.resize(queries.n * n_visited_);
        nearest_.resize(queries.n * n_visited_);
        std::vector<std::uint32_t> outputs(queries.n);
        std::iota(outputs.begin(), outputs.end(), 0u);
        scan(cells_.prototypes, queries, outputs.data(), n_visited_, 0, n_tiles_of(cells_.n()), similarity_.data(),
             nearest_.data(), loops_);
    }

    // Cell by cell, so that its rows are read once for all queries that visit it.
    void visit(const Queries<Code>& queries) {
        if (queries.n > 1)
            std::sort(visits_.begin(), visits_.end(), [](const Visit& a, const Visit& b) {
                return a.cell != b.cell ? a.cell < b.cell : a.query < b.query;
            });
        const std::size_t width = tiles_.width(), most = std::min<std::size_t>(64, queries.n);
        gathered_.resize(most * width);
        counts_.resize(most * quad_rows);
        for (std::size_t i = 0; i < visits_.size();) {
            std::size_t stop = i + 1;
            while (stop < visits_.size() && stop - i < most && visits_[stop].cell == visits_[i].cell) ++stop;
            const std::span<const Visit> together(visits_.data() + i, stop - i);
            const Code* codes = queries[together.front().query].codes;
            if (together.size() > 1) {
                for (std::size_t j = 0; j < together.size(); ++j)
                    std::copy_n(queries[together[j].query].codes, width, gathered_.data() + j * width);
                codes = gathered_.data();
            }
            compare(queries, together, codes);
            i = stop;
        }
    }

    // The rows of a cell with some queries, whose codes are one after the other.
    void compare(const Queries<Code>& queries, std::span<const Visit> together, const Code* codes) {
        const std::size_t start = cells_.starts[together.front().cell], stop = cells_.starts[together.front().cell + 1];
        for (std::size_t next = start; next < stop;) {
            // Rows before `next` have been counted already, or are another cell's; so are those from `stop` on.
            const std::size_t tile = next / tile_rows, place = tile * tile_rows;
            const std::size_t after = std::min(stop, place + quad_rows);
            const std::size_t n_tiles = (after - place + tile_rows - 1) / tile_rows;
            const std::uint64_t mask = bits(after - place) & ~bits(next - place);
            count_tiles(tiles_.tile(tile), n_tiles, tiles_.width(), codes, together.size(), counts_.data(), loops_);
            for (std::size_t j = 0; j < together.size(); ++j) {
                std::uint16_t* own = counts_.data() + j * quad_rows;
                const std::uint32_t q = together[j].query;
                if (queries.first_uncoded != nullptr) take_back(tiles_, tile, n_tiles, queries[q], own);
                TopK& best = best_[q];
                const std::uint64_t found = loops_.at_least(own, static_cast<std::uint16_t>(best.needed())) & mask;
                if (found != 0) best.offer(own, tiles_.order + place, found);
            }
            next = after;
        }
    }

    // The lowest n bits, n from 0 to 64.
    static std::uint64_t bits(std::size_t n) { return n == 0 ? 0 : ~std::uint64_t{0} >> (64 - n); }

    const Tiles<Code>& tiles_;
    const Cells<Code>& cells_;
    std::size_t k_;
    const Loops& loops_;
    std::size_t n_visited_;
    std::vector<std::int32_t> similarity_;  // (n_queries, n_visited): the affinity with the prototypes of
    std::vector<std::int64_t> nearest_;     // these cells
    std::vector<TopK> best_;
    std::vector<Visit> visits_;
    std::vector<Code> gathered_;
    std::vector<std::uint16_t> counts_;
};

}  // namespace ibug
