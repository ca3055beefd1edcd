// Bounds by bit-slicing. Bit i of a leaf's words says whether the leaf occurs in block i; adding up the words of a
// query's leaves, bit by bit, gives for every block how many of them occur in it, and no row of the block can share
// more leaves with the query. The sums are kept in bit planes (plane p holds bit p of every sum), to which eight words
// at a time are added by carry-save adders (Harley and Seal).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/target.hpp"
#include "search/loops.hpp"
#include "search/loops/bits.hpp"

namespace ibug::IBUG_TARGET {
namespace {

constexpr std::size_t bound_planes = 8;  // sums up to 255

// planes: overwritten with the bit-wise sums of load(0), ..., load(n - 1), where n is at most 255.
template <class Words, class Load>
inline void add_up(std::size_t n, Load load, Words (&planes)[bound_planes]) {
    for (Words& plane : planes) plane = Words{};
    const auto add_eight = [&planes](auto next) {
        Words fours[2];
        for (Words& four : fours) {
            const Words two = carry_save(planes[0], next(), next());
            four = carry_save(planes[1], two, carry_save(planes[0], next(), next()));
        }
        Words carry = carry_save(planes[2], fours[0], fours[1]);
        for (std::size_t p = 3; p < bound_planes; ++p) {
            const Words both = planes[p] & carry;
            planes[p] = planes[p] ^ carry;
            carry = both;
        }
    };
    std::size_t i = 0;
    while (i + 8 <= n) add_eight([&] { return load(i++); });
    if (i < n) add_eight([&] { return i < n ? load(i++) : Words{}; });
}

#if IBUG_VECTOR_BYTES == 32
// For each set of four places the 32-bit halves of the words that go there, taken in order.
struct ExpandTable {
    alignas(32) std::uint32_t places[16][8];

    constexpr ExpandTable() : places() {
        for (std::uint32_t set = 0; set < 16; ++set)
            for (std::uint32_t i = 0, next = 0; i < 4; ++i) {
                const bool there = set >> i & 1;
                places[set][2 * i] = there ? 2 * next : 0x80000000u;
                places[set][2 * i + 1] = there ? 2 * next + 1 : 0x80000000u;
                next += there;
            }
    }
};
constexpr ExpandTable expand_table;
#endif

// The words of a leaf in eight superblocks; where it does not occur there is no word, and the result is zero.
inline Words8 words_of(const LeafWords& leaf, std::size_t shift) {
    const std::uint64_t bits = leaf.superblocks;
    const std::uint64_t* first = leaf.words + count_ones(bits & ((std::uint64_t{1} << shift) - 1));
    const auto here = static_cast<std::uint8_t>(bits >> shift);
#if IBUG_VECTOR_BYTES == 64
    const __m512i expanded = _mm512_maskz_expandloadu_epi64(here, first);  // reads no word beyond those of the leaf
    Words8 found;
    std::memcpy(&found, &expanded, sizeof found);
    return found;
#elif IBUG_VECTOR_BYTES == 32
    const unsigned low = here & 15u, high = here >> 4;
    const auto four = [](const std::uint64_t* from, unsigned which) {
        const __m256i loaded = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        const __m256i places = _mm256_load_si256(reinterpret_cast<const __m256i*>(expand_table.places[which]));
        // A place without a word has the highest bit set, which the comparison with zero spreads.
        const __m256i empty = _mm256_cmpgt_epi32(_mm256_setzero_si256(), places);
        return _mm256_andnot_si256(empty, _mm256_permutevar8x32_epi32(loaded, places));
    };
    const __m256i halves[2] = {four(first, low), four(first + count_ones(low), high)};
    Words8 found;
    std::memcpy(&found, halves, sizeof found);
    return found;
#else
    Words8 found = {};
    for (unsigned left = here; left != 0; left &= left - 1) found[lowest_one(left)] = *first++;
    return found;
#endif
}

// Bit i of the planes as the number out[i]: 64 sums.
inline void read_planes(const std::uint64_t (&planes)[bound_planes], std::uint8_t* out) {
#if IBUG_VECTOR_BYTES == 64
    __m512i sums = _mm512_setzero_si512();
    for (std::size_t p = 0; p < bound_planes; ++p)
        sums = _mm512_mask_add_epi8(sums, planes[p], sums, _mm512_set1_epi8(static_cast<char>(1u << p)));
    _mm512_storeu_si512(out, sums);
#else
    for (std::size_t i = 0; i < 64; i += 8) {
        std::uint64_t sums = 0;
        for (std::size_t p = 0; p < bound_planes; ++p) sums |= low_bits(planes[p] >> i) << p;
        std::memcpy(out + i, &sums, sizeof sums);
    }
#endif
}

void tile_bounds(const LeafWords* leaves, std::size_t n_leaves, std::size_t shift, std::uint8_t* out) {
    Words8 planes[bound_planes];
    add_up(n_leaves, [=](std::size_t i) { return words_of(leaves[i], shift); }, planes);
    for (std::size_t s = 0; s < 8; ++s) {
        std::uint64_t own[bound_planes];
        for (std::size_t p = 0; p < bound_planes; ++p) own[p] = planes[p][s];
        read_planes(own, out + s * 64);
    }
}

void superblock_bounds(const LeafWords* leaves, std::size_t n_leaves, std::uint16_t* out) {
    std::uint64_t planes[bound_planes];
    add_up(n_leaves, [=](std::size_t i) { return leaves[i].superblocks; }, planes);
    std::uint8_t sums[64];
    read_planes(planes, sums);
    for (std::size_t s = 0; s < 64; ++s) out[s] = static_cast<std::uint16_t>(out[s] + sums[s]);
}

}  // namespace
}  // namespace ibug::IBUG_TARGET
