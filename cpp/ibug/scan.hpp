// Counting shared leaves: the one loop that decides the speed of a prediction.
//
// The index stores leaf codes in tiles of 64 rows, `[tile][tree][row]`. For one tile and a group of queries the loop
// compares the 64 codes of a tree with each query's code of that tree and counts the matches: the affinity of
// 64 training rows to each query (paper, Eq. 1). It is compiled once per instruction set from `scan.inl`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ibug {

inline constexpr std::size_t tile_rows = 64;

// Byte counters hold 255 matches at most, so that many trees are counted before they spill to 16 bits. The codes of one
// tile and one tree block also fit the first-level cache (16 KiB), and stay there while all queries pass by.
inline constexpr std::size_t tree_block = 255;

// Affinities are counted in 16 bits, and one more than the largest is still a number: what a row needs to enter.
inline constexpr std::size_t max_trees = 65534;

// Adds to counts[q * tile_rows + r] the number of the `n_trees` trees (at most tree_block) in which row r of the tile
// and query q share a leaf. `queries` holds splat codes, `[tree][query of the group]`: see splat() in top_k.hpp.
template <class Code>
using CountFunction = void (*)(const Code* tile, std::size_t n_trees, const std::uint32_t* queries,
                               std::uint16_t* counts);

// The rows of a tile whose count is at least `needed`, one bit per row.
using AtLeastFunction = std::uint64_t (*)(const std::uint16_t* counts, std::uint16_t needed);

template <class Code>
struct Counters {
    CountFunction<Code> group;   // InstructionSet::group_size queries at a time
    CountFunction<Code> single;  // one query: what is left over, and online prediction
};

struct InstructionSet {
    const char* name;
    std::size_t group_size;
    Counters<std::uint8_t> codes8;
    Counters<std::uint16_t> codes16;
    Counters<std::uint32_t> codes32;
    AtLeastFunction at_least;
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
