// Which leaves occur in which tiles, to bound a tile's affinities without looking at its rows.
//
// Rows are in an order that keeps similar ones together, so that most leaves occur in few superblocks of 1,024 rows,
// and the words of those where they do not occur are not there.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "search/layout.hpp"

namespace ibug {

// Where each leaf occurs. A chunk is eight superblocks, a superblock 64 tiles. One bit tells whether the leaf occurs in
// a superblock, and where it does, one word tells in which tiles. The words of a leaf follow each other; `starts` has
// the first one of every eight chunks. Behind `masks` there are seven more bytes and behind `words` seven more words,
// so that eight can always be read at once.
struct Places {
    const std::uint8_t* masks;    // (n_leaves, n_chunks)
    const std::uint32_t* starts;  // (n_leaves, ceil(n_chunks / 8))
    const std::uint64_t* words;
    std::size_t n_chunks;

    std::size_t n_groups() const { return (n_chunks + 7) / 8; }
};

// Where the leaves of an index occur that had fewer rows: the first superblocks of one that has more.
struct Before {
    Places places;
    std::span<const std::int32_t> leaf_counts;  // (n_trees,), none above those of the index that has more rows
    std::size_t n_superblocks;                  // which have not changed

    // The bits of a chunk that still hold.
    std::uint8_t mask(std::size_t leaf, std::size_t chunk) const {
        const std::size_t first = chunk * chunk_superblocks;
        if (chunk >= places.n_chunks || first >= n_superblocks) return 0;
        const std::size_t n = std::min(chunk_superblocks, n_superblocks - first);
        return static_cast<std::uint8_t>(places.masks[leaf * places.n_chunks + chunk] & ((1u << n) - 1));
    }

    const std::uint64_t* words(std::size_t leaf) const {
        return places.words + places.starts[leaf * places.n_groups()];
    }
};

// Fills `masks`, (n_leaves, n_chunks), and `starts`, (n_leaves, n_groups), where leaf `code` of a tree comes after all
// leaves of earlier trees, and `words`. Stops and returns false when there are more than max_words, or where a code is
// not below the leaves of its tree. The masks must be zero before. With `before`, only the superblocks behind those
// that have not changed are looked at.
template <class Code>
bool find_places(const Code* tiles, std::size_t n_rows, std::span<const std::int32_t> leaf_counts,
                 std::size_t max_words, std::uint8_t* masks, std::uint32_t* starts, std::vector<std::uint64_t>& words,
                 const Before* before = nullptr) {
    struct Word {
        std::uint32_t code, superblock;
        std::uint64_t tiles;
    };
    const std::size_t n_trees = leaf_counts.size(), stride = padded_trees(n_trees) * tile_rows;
    const std::size_t n_chunks = n_chunks_of(n_rows), n_groups = (n_chunks + 7) / 8;
    std::vector<Word> found[tree_step];
    std::vector<std::uint64_t> table[tree_step];  // by code: the tiles of a superblock
    const std::size_t first_row = before == nullptr ? 0 : before->n_superblocks * superblock_rows;
    std::size_t leaf_before = 0;  // the first leaf of a tree in `before`
    words.clear();
    for (std::size_t t0 = 0; t0 < n_trees; t0 += tree_step) {  // trees that share cache lines
        const std::size_t width = std::min(tree_step, n_trees - t0);
        for (std::size_t t = 0; t < width; ++t) {
            found[t].clear();
            table[t].assign(static_cast<std::size_t>(leaf_counts[t0 + t]), 0);
        }
        for (std::size_t r0 = first_row; r0 < n_rows; r0 += superblock_rows) {
            const std::size_t r1 = std::min(n_rows, r0 + superblock_rows);
            for (std::size_t r = r0; r < r1; r += tile_rows) {
                const Code* tile = tiles + r / tile_rows * stride + t0 * tile_rows;
                const std::uint64_t bit = std::uint64_t{1} << (r - r0) / tile_rows;
                const std::size_t size = std::min(tile_rows, r1 - r);
                for (std::size_t t = 0; t < width; ++t)
                    for (std::size_t i = 0; i < size; ++i) {
                        const std::size_t code = tile[t * tile_rows + i];
                        if (code >= table[t].size()) return false;
                        table[t][code] |= bit;
                    }
            }
            const auto superblock = static_cast<std::uint32_t>(r0 / superblock_rows);
            for (std::size_t t = 0; t < width; ++t)
                for (std::size_t code = 0; code < table[t].size(); ++code)
                    if (table[t][code] != 0) {
                        found[t].push_back({static_cast<std::uint32_t>(code), superblock, table[t][code]});
                        table[t][code] = 0;
                    }
        }
        for (std::size_t t = 0; t < width; ++t) {
            const std::size_t n_codes = table[t].size();
            const std::size_t n_before = before == nullptr ? 0 : static_cast<std::size_t>(before->leaf_counts[t0 + t]);
            // Within a leaf the words are in the order of superblocks: those of before, then as they were found.
            std::vector<std::size_t> next(n_codes, 0);
            for (std::size_t code = 0; code < n_before; ++code)
                for (std::size_t c = 0; c < n_chunks; ++c) {
                    const std::uint8_t mask = before->mask(leaf_before + code, c);
                    masks[code * n_chunks + c] = mask;
                    next[code] += static_cast<std::size_t>(std::popcount(mask));
                }
            const std::vector<std::size_t> kept(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(n_before));
            for (const Word& w : found[t]) {
                masks[w.code * n_chunks + w.superblock / chunk_superblocks] |=
                    static_cast<std::uint8_t>(1u << w.superblock % chunk_superblocks);
                ++next[w.code];
            }
            std::size_t end = words.size();
            for (std::size_t& n : next) n = std::exchange(end, end + n);
            if (end > max_words) return false;
            words.resize(end);
            for (std::size_t code = 0; code < n_codes; ++code) {
                std::size_t at = next[code];
                for (std::size_t c = 0; c < n_chunks; ++c) {
                    if (c % 8 == 0) starts[code * n_groups + c / 8] = static_cast<std::uint32_t>(at);
                    at += static_cast<std::size_t>(std::popcount(masks[code * n_chunks + c]));
                }
            }
            for (std::size_t code = 0; code < n_before; ++code) {
                std::copy_n(before->words(leaf_before + code), kept[code], words.data() + next[code]);
                next[code] += kept[code];
            }
            for (const Word& w : found[t]) words[next[w.code]++] = w.tiles;
            leaf_before += n_before;
            masks += n_codes * n_chunks;
            starts += n_codes * n_groups;
        }
    }
    return true;
}

// Whether every leaf's words are among `n_words`, one after the other, and seven more behind them.
inline bool fit_together(const Places& places, std::size_t n_leaves, std::size_t n_words) {
    std::size_t next = 0;
    for (std::size_t leaf = 0; leaf < n_leaves; ++leaf)
        for (std::size_t chunk = 0; chunk < places.n_chunks; ++chunk) {
            if (chunk % 8 == 0 && places.starts[leaf * places.n_groups() + chunk / 8] != next) return false;
            next += static_cast<std::size_t>(std::popcount(places.masks[leaf * places.n_chunks + chunk]));
        }
    return next + 7 == n_words;
}

}  // namespace ibug
