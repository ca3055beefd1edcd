// The k best training rows of a query, best-first: a bound of every superblock's affinities, of the tiles' in the
// promising ones, and the tiles themselves in the order of falling bounds, until no bound reaches the k-th best. The
// result is that of the scan over all tiles; only the work is less.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "search/full_scan.hpp"
#include "search/layout.hpp"
#include "search/loops.hpp"
#include "search/places.hpp"
#include "search/queries.hpp"
#include "search/tiles.hpp"
#include "search/top_k.hpp"
#include "search/workspace.hpp"

namespace ibug {

struct Bounds {
    Places places;
    const std::uint32_t* first_leaf;  // (n_trees + 1,): where each tree's leaves start in places
    const std::uint32_t* least_row;   // (n_tiles,): the smallest row number in each tile
};

// The first of the largest numbers. Two passes without a branch for each number are faster than one with it.
template <class Number>
std::size_t position_of_largest(const Number* numbers, std::size_t n) {
    Number largest = 0;
    for (std::size_t i = 0; i < n; ++i) largest = numbers[i] > largest ? numbers[i] : largest;
    return static_cast<std::size_t>(std::find(numbers, numbers + n, largest) - numbers);
}

template <class Code>
class PrunedSearch {
   public:
    PrunedSearch(const Tiles<Code>& tiles, const Bounds& bounds, const Loops& loops, Workspace& workspace)
        : tiles_(tiles), bounds_(bounds), loops_(loops), leaves_(workspace.leaves), words_(workspace.words),
          collected_(workspace.collected), block_start_(workspace.block_start), superblock_(workspace.superblock),
          ranked_(workspace.ranked), first_(workspace.first), waiting_(workspace.waiting), next_(workspace.next),
          sums_(workspace.sums) {
        // Four blocks of trees, between which a visit may stop; more where a block's counts would not fit a byte.
        const std::size_t quarter = padded_trees((tiles.n_trees + 3) / 4);
        block_trees_ = std::min(std::max<std::size_t>(quarter, 32), tree_block);
        n_blocks_ = (tiles.width() + block_trees_ - 1) / block_trees_;
        const std::size_t n_chunks = bounds.places.n_chunks;
        Workspace::grow(leaves_, tiles.n_trees);
        Workspace::grow(words_, bounds.places.n_groups() * tiles.n_trees);
        collected_.resize(bounds.places.n_groups());
        Workspace::grow(block_start_, n_blocks_ + 1);
        superblock_.resize(bounds.places.n_groups() * group_superblocks);
        first_.resize(tiles.n_trees + 1);
        waiting_.resize(tiles.n_trees + 1);
        Workspace::grow(next_, n_chunks * chunk_tiles);
        Workspace::grow(sums_, n_chunks * chunk_tiles * n_blocks_);
    }

    // The best rows among tiles [tile_start, tile_stop), whole chunks. Gives up and returns false when more than
    // `most_visits` further tiles seem to be needed; what was visited already is no reason to give up. `visits` is the
    // number of tiles visited.
    bool find(const Query<Code>& query, std::size_t tile_start, std::size_t tile_stop, std::size_t most_visits,
              TopK& best, std::size_t& visits) {
        look_up(query.codes);
        std::fill(first_.begin(), first_.end(), none);
        std::fill(waiting_.begin(), waiting_.end(), 0u);
        rank_chunks(tile_start, tile_stop);
        visits_ = 0;
        std::size_t chunk = 0, check_at = 8 + most_visits / 16;
        for (std::uint32_t bound = ranked_.front().bound;;) {
            if (best.full() && bound < best.needed()) break;
            while (chunk < ranked_.size() && ranked_[chunk].bound >= bound) open(query, ranked_[chunk++].chunk, best);
            // The next bound that a tile has; at the next chunk's, other tiles may come in between.
            const std::uint32_t least = chunk < ranked_.size() ? ranked_[chunk].bound : 0;
            std::uint32_t next_bound = bound;
            while (next_bound > least && first_[--next_bound] == none) {
            }
            for (std::uint32_t tile = first_[bound]; tile != none; tile = next_[tile]) {
                --waiting_[bound];
                if (!best.can_enter(bound, bounds_.least_row[tile])) continue;
                prefetch(next_[tile] != none ? next_[tile] : first_[next_bound]);
                visit(query, tile, bound, best);
                if (visits_ >= check_at) {
                    visits = visits_;
                    if (waiting(best.needed(), bound) > most_visits) return false;
                    check_at *= 2;
                }
            }
            if (next_bound == bound) break;
            bound = next_bound;
        }
        visits = visits_;
        return true;
    }

    // A place near which the query's nearest rows may be: the tile that has most of its leaves in a few trees.
    std::uint32_t likely_place(const Code* query, std::size_t tile_start, std::size_t tile_stop) {
        constexpr std::size_t n_sampled = 32;
        const std::size_t step = std::max<std::size_t>(1, tiles_.n_trees / n_sampled);
        const std::size_t start = tile_start / chunk_tiles, stop = (tile_stop + chunk_tiles - 1) / chunk_tiles;
        n_leaves_ = 0;
        for (std::size_t t = 0; t < tiles_.n_trees && n_leaves_ < n_sampled; t += step) add_leaf(query, t);
        std::fill(collected_.begin(), collected_.end(), std::uint8_t{0});
        std::uint8_t sums[chunk_tiles];
        std::uint32_t best = 0, found = 0;
        for (std::size_t c = start; c < stop; ++c) {
            loops_.tile_bounds(words(c / chunks_per_group), n_leaves_, c % chunks_per_group * 8, sums);
            const std::size_t most = position_of_largest(sums, chunk_tiles);
            if (sums[most] > best) {
                best = sums[most];
                found = static_cast<std::uint32_t>(c * chunk_tiles + most);
            }
        }
        return found;
    }

   private:
    static constexpr std::uint32_t none = 0xffffffffu;
    static constexpr std::size_t chunks_per_group = 8;
    static constexpr std::size_t group_superblocks = chunks_per_group * chunk_superblocks;

    using Ranked = Workspace::Ranked;

    // The query's leaves that training rows have, block of trees by block.
    void look_up(const Code* query) {
        n_leaves_ = 0;
        for (std::size_t b = 0; b < n_blocks_; ++b) {
            block_start_[b] = n_leaves_;
            const std::size_t stop = std::min((b + 1) * block_trees_, tiles_.n_trees);
            for (std::size_t t = b * block_trees_; t < stop; ++t) add_leaf(query, t);
        }
        block_start_[n_blocks_] = n_leaves_;
        std::fill(collected_.begin(), collected_.end(), std::uint8_t{0});
    }

    void add_leaf(const Code* query, std::size_t tree) {
        const std::size_t leaf = bounds_.first_leaf[tree] + std::size_t{query[tree]};
        leaves_[n_leaves_] = static_cast<std::uint32_t>(leaf);
        n_leaves_ += leaf < bounds_.first_leaf[tree + 1];
    }

    // Their places among the superblocks of a group.
    const LeafWords* words(std::size_t group) {
        LeafWords* found = words_.data() + group * tiles_.n_trees;
        if (collected_[group]) return found;
        collected_[group] = 1;
        const bool fetches = bounds_.places.n_groups() == 1;  // of many groups most are never opened
        for (std::size_t i = 0; i < n_leaves_; ++i) {
            found[i] = place(leaves_[i], group);
            if (fetches) {
                fetch(found[i].words);
                fetch(found[i].words + 8);
            }
        }
        return found;
    }

    // The same for groups [first, last), leaf by leaf: what is kept of a leaf is together.
    void collect(std::size_t first, std::size_t last) {
        for (std::size_t i = 0; i < n_leaves_; ++i)
            for (std::size_t g = first; g < last; ++g) words_[g * tiles_.n_trees + i] = place(leaves_[i], g);
        std::fill(collected_.begin() + static_cast<std::ptrdiff_t>(first),
                  collected_.begin() + static_cast<std::ptrdiff_t>(last), std::uint8_t{1});
    }

    LeafWords place(std::size_t leaf, std::size_t group) const {
        const Places& places = bounds_.places;
        LeafWords found;
        std::memcpy(&found.superblocks, places.masks + leaf * places.n_chunks + chunks_per_group * group, 8);
        found.words = places.words + places.starts[leaf * places.n_groups() + group];
        return found;
    }

    // Chunks by falling bound. Where there are few, their bounds would cost more than they spare.
    void rank_chunks(std::size_t tile_start, std::size_t tile_stop) {
        const std::size_t start = tile_start / chunk_tiles, stop = (tile_stop + chunk_tiles - 1) / chunk_tiles;
        ranked_.clear();
        if (stop - start == 1) {
            ranked_.push_back({static_cast<std::uint32_t>(n_leaves_), static_cast<std::uint32_t>(start)});
            return;
        }
        std::fill(superblock_.begin(), superblock_.end(), std::uint16_t{0});
        const std::size_t first_group = start / chunks_per_group,
                          last_group = (stop + chunks_per_group - 1) / chunks_per_group;
        if (last_group - first_group > 1) collect(first_group, last_group);
        for (std::size_t g = first_group; g < last_group; ++g) {
            const LeafWords* leaves = words(g);
            for (std::size_t b = 0; b < n_blocks_; ++b)
                loops_.superblock_bounds(leaves + block_start_[b], block_start_[b + 1] - block_start_[b],
                                         superblock_.data() + g * group_superblocks);
        }
        for (std::size_t c = start; c < stop; ++c) {
            const std::uint16_t* own = superblock_.data() + c * chunk_superblocks;
            ranked_.push_back({*std::max_element(own, own + chunk_superblocks), static_cast<std::uint32_t>(c)});
        }
        std::sort(ranked_.begin(), ranked_.end(), [](const Ranked& a, const Ranked& b) {
            return a.bound != b.bound ? a.bound > b.bound : a.chunk < b.chunk;
        });
    }

    // Bounds the tiles of a chunk, and queues those that may have a row among the best.
    void open(const Query<Code>& query, std::size_t chunk, TopK& best) {
        std::uint8_t* sums = sums_.data() + chunk * chunk_tiles * n_blocks_;
        alignas(64) std::uint16_t total[chunk_tiles] = {};
        const LeafWords* leaves = words(chunk / chunks_per_group);
        for (std::size_t b = 0; b < n_blocks_; ++b, sums += chunk_tiles) {
            loops_.tile_bounds(leaves + block_start_[b], block_start_[b + 1] - block_start_[b],
                               chunk % chunks_per_group * 8, sums);
            for (std::size_t i = 0; i < chunk_tiles; ++i) total[i] = static_cast<std::uint16_t>(total[i] + sums[i]);
        }
        const std::size_t first = chunk * chunk_tiles;
        const std::size_t n = std::min(chunk_tiles, (tiles_.n_rows + tile_rows - 1) / tile_rows - first);
        const auto [start, stop] = visit_likely(query, first, total, n, best);
        for (std::size_t i0 = n / 64 * 64 + 64; i0 > 0;) {
            i0 -= 64;
            if (i0 >= n) continue;
            std::uint64_t mask = loops_.at_least(total + i0, static_cast<std::uint16_t>(best.needed()));
            if (n - i0 < 64) mask &= (std::uint64_t{1} << (n - i0)) - 1;
            for (; mask != 0; mask &= mask - 1) {
                const std::size_t i = i0 + static_cast<std::size_t>(std::countr_zero(mask));
                if (i >= start && i < stop) continue;
                next_[first + i] = first_[total[i]];
                first_[total[i]] = static_cast<std::uint32_t>(first + i);
                ++waiting_[total[i]];
            }
        }
    }

    // While there are fewer than k rows every tile would be queued. So the tiles around the most promising one come
    // first, [start, stop) of the chunk: what they have is a good start, and most others need not be queued any more.
    std::pair<std::size_t, std::size_t> visit_likely(const Query<Code>& query, std::size_t first,
                                                     const std::uint16_t* total, std::size_t n, TopK& best) {
        if (best.full()) return {0, 0};
        const std::size_t top = position_of_largest(total, n);
        std::size_t start = top, stop = top;
        while (!best.full() && stop - start < n) {
            const bool up = stop < n && (start == 0 || total[stop] >= total[start - 1]);
            const std::size_t i = up ? stop++ : --start;
            visit(query, first + i, total[i], best);
        }
        return {start, stop};
    }

    void visit(const Query<Code>& query, std::size_t tile, std::uint32_t bound, TopK& best) {
        ++visits_;
        std::uint16_t counts[tile_rows];
        const std::uint8_t* sums = sums_.data() + tile / chunk_tiles * chunk_tiles * n_blocks_ + tile % chunk_tiles;
        const std::uint32_t reaching = counters<Code>(loops_).visit(tiles_.tile(tile), query.codes, tiles_.n_lines(),
                                                                    block_trees_ / trees_per_line<Code>, sums,
                                                                    chunk_tiles, bound, best.needed(), counts);
        if (reaching == 0) return;
        // Counts of uncoded trees are taken back at the end: until then they are too high, as any bound may be.
        if (!query.uncoded.empty()) take_back(tiles_, tile, 1, query, counts);
        const std::size_t place = tile * tile_rows;
        best.offer(counts, tiles_.order + place, reaching & tiles_.valid(place, tile_rows));
    }

    // Tiles still queued with a bound from `least` to `most`.
    std::size_t waiting(std::uint32_t least, std::uint32_t most) const {
        std::size_t sum = 0;
        for (std::uint32_t bound = least; bound <= most; ++bound) sum += waiting_[bound];
        return sum;
    }

    void prefetch(std::uint32_t tile) const {
        if (tile == none) return;
        const auto* line = reinterpret_cast<const char*>(tiles_.tile(tile));
        for (std::size_t i = 0; i < block_trees_ * tile_rows * sizeof(Code); i += 64) fetch(line + i);
    }

    static void fetch(const void* line) {
#if defined(__GNUC__) || defined(__clang__)
        __builtin_prefetch(line);
#else
        (void)line;
#endif
    }

    const Tiles<Code>& tiles_;
    const Bounds& bounds_;
    const Loops& loops_;
    std::size_t block_trees_, n_blocks_;
    std::size_t n_leaves_ = 0, visits_ = 0;
    // In the workspace.
    std::vector<std::uint32_t>& leaves_;
    std::vector<LeafWords>& words_;
    std::vector<std::uint8_t>& collected_;
    std::vector<std::size_t>& block_start_;
    std::vector<std::uint16_t>& superblock_;
    std::vector<Ranked>& ranked_;
    std::vector<std::uint32_t>&first_, &waiting_, &next_;
    std::vector<std::uint8_t>& sums_;
};

// The k nearest rows among tiles [tile_start, tile_stop), whole chunks, for all queries: `affinities` and `rows`, both
// (n_queries, k), and `visits`, (n_queries,), the number of tiles visited, unless it is null. A query that needs more
// than `most_visits` further tiles is left to the scan over all of them, together with others of its kind.
template <class Code>
void search(const Tiles<Code>& tiles, const Bounds& bounds, const Queries<Code>& queries, std::size_t k,
            std::size_t tile_start, std::size_t tile_stop, std::size_t most_visits, std::int32_t* affinities,
            std::int64_t* rows, std::int64_t* visits, const Loops& loops) {
    Workspace& workspace = Workspace::of_this_thread();
    PrunedSearch<Code> pruned(tiles, bounds, loops, workspace);
    TopK& best = workspace.best;
    // Queries that are alike come after each other: they look at the same places, which are still in the cache. In a
    // large index, of several groups of chunks, to find that out costs more than it spares.
    const bool sorts = queries.n >= 8 && bounds.places.n_groups() == 1;
    auto& queue = workspace.queue;
    queue.resize(queries.n);
    for (std::size_t q = 0; q < queries.n; ++q)
        queue[q] = {sorts ? pruned.likely_place(queries[q].codes, tile_start, tile_stop) : 0, q};
    if (sorts) std::sort(queue.begin(), queue.end());
    auto& left = workspace.left;
    left.clear();
    std::size_t tried = 0, failed = 0;
    for (const auto& [tile, q] : queue) {
        best.reset(k, tiles.n_trees);
        std::size_t visited = 0;
        // Where most queries so far had to give up, only some of the rest are tried.
        const bool hopeless = failed >= 8 && 4 * failed > 3 * tried && q % 16 != 0;
        tried += !hopeless;
        if (!hopeless && pruned.find(queries[q], tile_start, tile_stop, most_visits, best, visited)) {
            best.write(affinities + q * k, rows + q * k);
        } else {
            failed += !hopeless;
            left.push_back(static_cast<std::uint32_t>(q));
            visited += tile_stop - tile_start;
        }
        if (visits != nullptr) visits[q] = static_cast<std::int64_t>(visited);
    }
    if (left.empty()) return;
    std::sort(left.begin(), left.end());
    const EncodedQueries<Code> rest(queries, left);
    scan(tiles, rest.view(), left.data(), k, tile_start, tile_stop, affinities, rows, loops);
}

}  // namespace ibug
