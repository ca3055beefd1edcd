// The scan over all tiles for many queries: by bitmaps instead of comparisons. A bitmap tells which rows are in a leaf,
// and a query's affinities are the sums of the bitmaps of its own leaves, bit by bit. They are made for 512 rows and
// some trees at a time, of the leaves that the queries have, and each serves all queries that share the leaf: so codes
// are compared once for each leaf rather than for each query, and one addition is for 512 rows.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "search/layout.hpp"
#include "search/loops.hpp"
#include "search/queries.hpp"
#include "search/tiles.hpp"
#include "search/top_k.hpp"

namespace ibug {

class BitmapScan {
   public:
    // Queries at a time: more share more, until what is kept of them needs 32 MB.
    static std::size_t most_queries(std::size_t k, std::size_t n_trees) {
        const std::size_t numbers = (n_trees + bitmap_trees) * sizeof(std::uint16_t), planes = 16 * sizeof(Bitmap);
        return std::min<std::size_t>(512, (std::size_t{1} << 25) / (TopK::bytes(k, n_trees) + numbers + planes));
    }

    // Arguments here and below are those of scan().
    BitmapScan(const Tiles<std::uint8_t>& tiles, std::size_t k, const Loops& loops)
        : tiles_(tiles), n_trees_(tiles.n_trees), k_(k), loops_(loops),
          n_planes_(std::max(block_planes, static_cast<std::size_t>(std::bit_width(n_trees_)))) {}

    void find(const Queries<std::uint8_t>& queries, const std::uint32_t* outputs, std::size_t tile_start,
              std::size_t tile_stop, std::int32_t* affinities, std::int64_t* rows) {
        const std::size_t n_queries = queries.n;
        if (best_.size() < n_queries) best_.resize(n_queries);
        for (std::size_t q = 0; q < n_queries; ++q) best_[q].reset(k_, n_trees_);
        number_leaves(queries);
        planes_.resize(n_queries * n_planes_);
        constexpr std::size_t step_tiles = bitmap_rows / tile_rows;
        const std::size_t n_steps = (tile_stop - tile_start + step_tiles - 1) / step_tiles,
                          stride = long_stride(n_steps);
        for (std::size_t i = 0, step = 0; i < n_steps; ++i, step = (step + stride) % n_steps) {
            const std::size_t tile = tile_start + step * step_tiles, n_tiles = std::min(step_tiles, tile_stop - tile);
            const std::size_t place = tile * tile_rows;
            if (place >= tiles_.n_rows) continue;
            add_up(n_queries, tile, n_tiles);
            offer(n_queries, place, std::min(tiles_.n_rows - place, n_tiles * tile_rows));
        }
        for (std::size_t q = 0; q < n_queries; ++q)
            best_[q].write(affinities + outputs[q] * k_, rows + outputs[q] * k_);
    }

   private:
    struct Block {
        std::size_t first_tree;
        std::size_t first_code;             // in codes_
        std::vector<std::uint32_t> starts;  // where each tree's codes start, from first_code on; padded to whole lines

        std::size_t n_trees() const { return starts.size() - 1; }  // some of them may fill up a line
    };

    static constexpr std::size_t most_in_block = 0x10000 / place_step;

    // Similar rows are neighbours, and row by row affinities may rise for long, each row better than those before. By
    // leaps that soon come near to every place, the k-th best is high early, and few further rows reach it.
    static std::size_t long_stride(std::size_t n) {
        std::size_t stride = std::max<std::size_t>(1, n * 618 / 1000);
        while (std::gcd(stride, n) != 1) ++stride;
        return stride;
    }

    // For each block of trees the codes that the queries have, and for each query where its bitmaps are among those of
    // the block. The first one is empty, for the trees that fill up the last block, and for uncoded ones. A block ends
    // early where its bitmaps would become too many.
    void number_leaves(const Queries<std::uint8_t>& queries) {
        const std::size_t n_queries = queries.n;
        width_ = (n_trees_ + bitmaps_at_a_time - 1) / bitmaps_at_a_time * bitmaps_at_a_time;
        codes_.clear();
        blocks_.clear();
        places_.assign(n_queries * width_, 0);
        std::size_t most_bitmaps = 0;
        for (std::size_t first = 0; first < n_trees_; first += bitmaps_at_a_time) {
            // Some trees at a time, whose codes lie side by side: which there are, then where their bitmaps are.
            const std::size_t n = std::min(bitmaps_at_a_time, n_trees_ - first);
            if (blocks_.empty() || blocks_.back().n_trees() == bitmap_trees ||
                blocks_.back().starts.back() + 256 * bitmaps_at_a_time >= most_in_block)
                blocks_.push_back({first, codes_.size(), {0}});
            Block& block = blocks_.back();
            std::uint64_t seen[bitmaps_at_a_time][4] = {};  // one bit for each code
            for (std::size_t q = 0; q < n_queries; ++q) {
                const std::uint8_t* own = queries.codes + q * queries.width + first;
                for (std::size_t t = 0; t < n; ++t) seen[t][own[t] / 64] |= std::uint64_t{1} << own[t] % 64;
            }
            std::uint16_t place[bitmaps_at_a_time][256];
            for (std::size_t t = 0; t < n; ++t) {
                std::uint32_t next = block.starts.back() + 1;
                for (std::size_t word = 0; word < 4; ++word)
                    for (std::uint64_t left = seen[t][word]; left != 0; left &= left - 1) {
                        const std::size_t code = 64 * word + static_cast<std::size_t>(std::countr_zero(left));
                        place[t][code] = static_cast<std::uint16_t>(next++ * place_step);
                        codes_.push_back(static_cast<std::uint8_t>(code));
                    }
                block.starts.push_back(next - 1);
            }
            most_bitmaps = std::max<std::size_t>(most_bitmaps, block.starts.back() + 1);
            for (std::size_t q = 0; q < n_queries; ++q) {
                const std::uint8_t* own = queries.codes + q * queries.width + first;
                std::uint16_t* places = places_.data() + q * width_ + first;
                for (std::size_t t = 0; t < n; ++t) places[t] = place[t][own[t]];
            }
        }
        for (Block& block : blocks_) {  // padded to whole lines
            const std::size_t last = block.starts.back();
            block.starts.resize(padded_trees(block.n_trees()) + 1, static_cast<std::uint32_t>(last));
        }
        bitmaps_.assign(most_bitmaps, Bitmap{});
        if (queries.first_uncoded == nullptr) return;
        for (std::size_t q = 0; q < n_queries; ++q)
            for (const std::uint32_t tree : queries[q].uncoded) places_[q * width_ + tree] = 0;
    }

    // The affinities of the rows of some tiles to all queries.
    void add_up(std::size_t n_queries, std::size_t tile, std::size_t n_tiles) {
        const std::size_t stride = tiles_.width() * tile_rows;
        std::fill(planes_.begin(), planes_.end(), Bitmap{});
        for (const Block& block : blocks_) {
            for (std::size_t t = 0; t < block.n_trees(); t += tree_step)
                loops_.make_bitmaps(tiles_.tile(tile) + (block.first_tree + t) * tile_rows, stride, n_tiles,
                                    codes_.data() + block.first_code, block.starts.data() + t,
                                    bitmaps_.data() + 1 + block.starts[t]);
            const std::size_t n = (block.n_trees() + bitmaps_at_a_time - 1) / bitmaps_at_a_time * bitmaps_at_a_time;
            for (std::size_t q = 0; q < n_queries; ++q)
                loops_.add_bitmaps(bitmaps_.data(), places_.data() + q * width_ + block.first_tree, n,
                                   planes_.data() + q * n_planes_, n_planes_);
        }
    }

    void offer(std::size_t n_queries, std::size_t place, std::size_t n_rows) {
        Bitmap reaching;
        alignas(64) std::uint16_t counts[bitmap_rows];
        for (std::size_t q = 0; q < n_queries; ++q) {
            TopK& best = best_[q];
            if (!loops_.read_rows(planes_.data() + q * n_planes_, n_planes_, n_rows, best.needed(), k_, reaching,
                                  counts))
                continue;
            for (std::size_t w = 0; w < bitmap_rows / 64; ++w)
                if (reaching.words[w] != 0)
                    best.offer(counts + w * 64, tiles_.order + place + w * 64, reaching.words[w]);
        }
    }

    const Tiles<std::uint8_t>& tiles_;
    std::size_t n_trees_, k_;
    const Loops& loops_;
    std::size_t n_planes_;
    std::vector<TopK> best_;
    std::vector<Block> blocks_;
    std::vector<std::uint8_t> codes_;    // of the leaves that queries have, by tree
    std::size_t width_ = 0;              // the trees, filled up
    std::vector<std::uint16_t> places_;  // (n_queries, width)
    std::vector<Bitmap> bitmaps_;        // of a block
    std::vector<Bitmap> planes_;         // (n_queries, n_planes)
};

}  // namespace ibug
