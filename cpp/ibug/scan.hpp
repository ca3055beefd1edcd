// Counting shared leaves: the loops that decide the speed of a prediction.
//
// The index stores leaf codes in tiles of 16 rows, `[tile][tree][row]`, so that a tile is contiguous and can be visited
// alone. One *line* of 64 bytes holds the codes of 16 rows in one or more trees (4 of 8 bits, 2 of 16, 1 of 32), and
// belongs to 4 bytes of a query's codes. The loops compare lines with the query's codes and count the matches: the
// affinity of training rows to the query (paper, Eq. 1). They are compiled once per instruction set from `scan.inl`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ibug {

inline constexpr std::size_t tile_rows = 16;

// A full scan counts so many tiles at a time, to share the query's codes among them: 64 rows.
inline constexpr std::size_t quad_tiles = 4;
inline constexpr std::size_t quad_rows = quad_tiles * tile_rows;

// Trees come in fours, so that every line is full whatever the width of the codes. Added trees match nothing: rows have
// the code 0 there, queries the code 1.
inline constexpr std::size_t tree_step = 4;
inline constexpr std::size_t padded_trees(std::size_t n_trees) { return (n_trees + tree_step - 1) / tree_step * tree_step; }

// Byte counters hold 255 matches at most, so that many trees (a multiple of tree_step) are counted before they spill to
// 16 bits. The codes of four tiles and one tree block also fit the first-level cache (16 KiB), and stay there while all
// queries pass by.
inline constexpr std::size_t tree_block = 252;

// Affinities are counted in 16 bits, and one more than the largest is still a number.
inline constexpr std::size_t max_trees = 65534;

template <class Code>
inline constexpr std::size_t trees_per_line = 4 / sizeof(Code);

// Adds to counts[q * quad_rows + r] the number of trees in `n_lines` lines in which row r of four tiles and query q share
// a leaf. Tiles are `tile_stride` codes apart, queries `query_stride`.
template <class Code>
using CountFunction = void (*)(const Code* tiles, std::size_t tile_stride, std::size_t n_lines, const Code* queries,
                               std::size_t query_stride, std::uint16_t* counts);

// The affinities of one tile to one query, tree block by tree block of `block_lines` lines. bounds[b * bounds_stride]
// says how many matches a row can have in block b at most, and `bound` is their sum. Returns the rows that reach `needed`,
// one bit per row; where none can, counting stops early and `counts` (tile_rows) are not complete.
template <class Code>
using VisitFunction = std::uint32_t (*)(const Code* tile, const Code* query, std::size_t n_lines, std::size_t block_lines,
                                        const std::uint8_t* bounds, std::size_t bounds_stride, std::uint32_t bound,
                                        std::uint32_t needed, std::uint16_t* counts);

// The rows of four tiles whose count is at least `needed`, one bit per row.
using AtLeastFunction = std::uint64_t (*)(const std::uint16_t* counts, std::uint16_t needed);

// Bitmaps, see bitmaps.hpp: one bit for each of 512 rows.
inline constexpr std::size_t bitmap_rows = 512;
struct alignas(64) Bitmap {
    std::uint64_t words[bitmap_rows / 64];
};

// Of so many trees, a block, bitmaps are there at a time; so many are added at a time; and the sums of a block have so many
// bits.
inline constexpr std::size_t bitmap_trees = 112, bitmaps_at_a_time = 16, block_planes = 7;
static_assert(bitmap_trees < std::size_t{1} << block_planes && bitmap_trees % bitmaps_at_a_time == 0 && bitmap_trees % tree_step == 0);

// For the four trees of a line and up to 512 rows, tiles that are tile_stride codes apart, the bitmaps of the leaves that
// `codes` names: codes[starts[t]], ..., codes[starts[t + 1] - 1] for tree t. They are written one after the other.
using MakeBitmapsFunction = void (*)(const std::uint8_t* tiles, std::size_t tile_stride, std::size_t n_tiles,
                                     const std::uint8_t* codes, const std::uint32_t* starts, Bitmap* bitmaps);

// Adds bitmaps[numbers[i]] for all i < n, a multiple of bitmaps_at_a_time and at most bitmap_trees, to the sums whose bit p is
// in planes[p]; there are block_planes of them at least.
using AddBitmapsFunction = void (*)(const Bitmap* bitmaps, const std::uint16_t* numbers, std::size_t n, Bitmap* planes,
                                    std::size_t n_planes);

// The rows, of the first n_rows, whose sum is at least `needed`, and of more than k the k best with all that are equal to
// the last of them: one bit for each, and their sums in `counts`. Returns whether there are any.
using ReadRowsFunction = bool (*)(const Bitmap* planes, std::size_t n_planes, std::size_t n_rows, std::uint32_t needed,
                                  std::size_t k, Bitmap& reaching, std::uint16_t* counts);

// Where each leaf occurs. A chunk is eight superblocks, a superblock 64 tiles. One bit tells whether the leaf occurs in a
// superblock, and where it does, one word tells in which tiles. The words of a leaf follow each other; `starts` has the
// first one of every eight chunks. Behind `masks` there are seven more bytes and behind `words` seven more words, so that
// eight can always be read at once.
struct Places {
    const std::uint8_t* masks;    // (n_leaves, n_chunks)
    const std::uint32_t* starts;  // (n_leaves, ceil(n_chunks / 8))
    const std::uint64_t* words;
    std::size_t n_chunks;

    std::size_t n_groups() const { return (n_chunks + 7) / 8; }
};

// Where a leaf occurs among 64 superblocks, and the first of its words there.
struct LeafWords {
    std::uint64_t superblocks;
    const std::uint64_t* words;
};

// For each tile of eight superblocks, bits `shift` to `shift + 7`, how many of `n_leaves` leaves, at most 255, occur in it.
using TileBoundsFunction = void (*)(const LeafWords* leaves, std::size_t n_leaves, std::size_t shift, std::uint8_t* out);

// For each of 64 superblocks how many of `n_leaves` leaves occur in it: added to out[superblock].
using SuperblockBoundsFunction = void (*)(const LeafWords* leaves, std::size_t n_leaves, std::uint16_t* out);

template <class Code>
struct Counters {
    CountFunction<Code> group;   // InstructionSet::group_size queries at a time
    CountFunction<Code> single;  // one query: what is left over, and online prediction
    VisitFunction<Code> visit;
};

struct InstructionSet {
    const char* name;
    std::size_t group_size;
    std::size_t least_queries;  // so many share bitmaps with profit
    Counters<std::uint8_t> codes8;
    Counters<std::uint16_t> codes16;
    Counters<std::uint32_t> codes32;
    AtLeastFunction at_least;
    TileBoundsFunction tile_bounds;
    SuperblockBoundsFunction superblock_bounds;
    MakeBitmapsFunction make_bitmaps;
    AddBitmapsFunction add_bitmaps;
    ReadRowsFunction read_rows;
};

template <class Code>
const Counters<Code>& counters(const InstructionSet& set);
template <>
inline const Counters<std::uint8_t>& counters(const InstructionSet& set) { return set.codes8; }
template <>
inline const Counters<std::uint16_t>& counters(const InstructionSet& set) { return set.codes16; }
template <>
inline const Counters<std::uint32_t>& counters(const InstructionSet& set) { return set.codes32; }

extern const InstructionSet scan_baseline;
#ifdef IBUG_X86
extern const InstructionSet scan_avx2;
extern const InstructionSet scan_avx512;
#endif

}  // namespace ibug
