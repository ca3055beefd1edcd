// Visits that many queries have yet to make, tile by tile. A visit costs about as much for reading a tile from the outer
// caches as for counting; where all queries that need a tile come together, it is read once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scan.hpp"
#include "top_k.hpp"

namespace ibug {

// The trees are counted in up to four stages, after each of which a visit may end.
inline constexpr std::size_t max_stages = 4;

struct Stages {
    std::size_t n = 0;
    std::size_t stop[max_stages];  // the blocks of trees before the end of each stage
};

struct Waiting {
    std::uint32_t tile, query;
    std::uint16_t bound;                 // matches that a row of the tile can have at most
    std::uint16_t rest[max_stages - 1];  // the same after each stage but the last, in the trees that follow
};

template <class Code>
class Sweep {
   public:
    Sweep(const Tiles<Code>& tiles, const std::uint32_t* least_row, std::size_t block_trees, const Stages& stages,
          const InstructionSet& set)
        : tiles_(tiles), least_row_(least_row), block_trees_(block_trees), stages_(stages), set_(set) {}

    // Makes the visits, in any order, for queries whose codes are (n_queries, width) and whose best rows are best[query].
    // made[query]: how many it took.
    void run(const std::vector<Waiting>& visits, std::size_t tile_start, std::size_t tile_stop, const Code* queries,
             std::vector<TopK>& best, std::vector<std::uint32_t>& made) {
        by_tile(visits, tile_start, tile_stop);
        for (std::size_t tile = tile_start; tile < tile_stop; ++tile) {
            const std::uint32_t first = starts_[tile - tile_start], last = starts_[tile - tile_start + 1];
            left_.clear();
            for (std::uint32_t i = first; i < last; ++i) {
                const Waiting& visit = visits[sorted_[i]];
                if (!best[visit.query].can_enter(visit.bound, least_row_[tile])) continue;
                left_.push_back(&visit);
                ++made[visit.query];
            }
            if (!left_.empty()) visit_all(tile, queries, best);
        }
    }

   private:
    void by_tile(const std::vector<Waiting>& visits, std::size_t tile_start, std::size_t tile_stop) {
        starts_.assign(tile_stop - tile_start + 2, 0);
        for (const Waiting& visit : visits) ++starts_[visit.tile - tile_start + 2];
        for (std::size_t i = 2; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
        sorted_.resize(visits.size());
        for (std::size_t i = 0; i < visits.size(); ++i)
            sorted_[starts_[visits[i].tile - tile_start + 1]++] = static_cast<std::uint32_t>(i);
    }

    void visit_all(std::size_t tile, const Code* queries, std::vector<TopK>& best) {
        const std::size_t width = tiles_.width(), place = tile * tile_rows;
        counts_.assign(left_.size() * tile_rows, 0);
        for (std::size_t stage = 0; stage < stages_.n && !left_.empty(); ++stage) {
            const std::size_t first = stage == 0 ? 0 : stages_.stop[stage - 1];
            for (std::size_t block = first; block < stages_.stop[stage]; ++block) {
                const std::size_t tree = block * block_trees_, n_trees = std::min(block_trees_, width - tree);
                count(tiles_.tile(tile) + tree * tile_rows, n_trees, queries + tree);
            }
            const bool last = stage + 1 == stages_.n;
            std::size_t kept = 0;
            for (std::size_t i = 0; i < left_.size(); ++i) {
                const std::uint16_t* own = counts_.data() + i * tile_rows;
                TopK& found = best[left_[i]->query];
                const std::uint32_t rest = last ? 0 : left_[i]->rest[stage], needed = found.needed();
                const std::uint32_t reaching = set_.reaches(own, static_cast<std::uint16_t>(needed > rest ? needed - rest : 0));
                if (reaching == 0) continue;
                if (last) {
                    found.offer(own, tiles_.order + place, reaching & tiles_.valid(place, tile_rows));
                } else {
                    left_[kept] = left_[i];
                    std::copy_n(own, tile_rows, counts_.data() + kept++ * tile_rows);
                }
            }
            left_.resize(kept);
        }
    }

    // Adds the matches of all that are left in some trees.
    void count(const Code* lines, std::size_t n_trees, const Code* queries) {
        const std::size_t n_lines = n_trees / trees_per_line<Code>, width = tiles_.width();
        const Code* group[sweep_group];
        for (std::size_t i = 0; i < left_.size(); i += sweep_group) {
            const std::size_t size = std::min(sweep_group, left_.size() - i);
            for (std::size_t j = 0; j < sweep_group; ++j)
                group[j] = queries + left_[i + std::min(j, size - 1)]->query * width;
            counters<Code>(set_).sweep(lines, n_lines, group, size, counts_.data() + i * tile_rows);
        }
    }

    const Tiles<Code>& tiles_;
    const std::uint32_t* least_row_;
    std::size_t block_trees_;
    const Stages& stages_;
    const InstructionSet& set_;
    std::vector<std::uint32_t> starts_, sorted_;  // the visits of each tile
    std::vector<const Waiting*> left_;            // those of the present tile that can still matter
    std::vector<std::uint16_t> counts_;           // (left_.size(), tile_rows)
};

}  // namespace ibug
