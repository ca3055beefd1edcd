// Bits, counted and added. Functions that the standard library has as well are our own: what its functions are compiled
// to for one instruction set could be linked into code for another.
#pragma once

#include <cstddef>
#include <cstdint>
#if !defined(__GNUC__) && !defined(__clang__)
#include <bit>
#endif

#include "common/target.hpp"

namespace ibug::IBUG_TARGET {
namespace {

inline std::size_t count_ones(std::uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
    return static_cast<std::size_t>(__builtin_popcountll(word));
#else
    return static_cast<std::size_t>(std::popcount(word));
#endif
}

// The word must not be zero.
inline std::size_t lowest_one(std::uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
    return static_cast<std::size_t>(__builtin_ctzll(word));
#else
    return static_cast<std::size_t>(std::countr_zero(word));
#endif
}

// Asks for the memory at some distance, which may be behind the end of an array.
inline void fetch(const void* from, std::size_t distance) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(from) + distance));
#else
    (void)from, (void)distance;
#endif
}

// Eight words, side by side.
#ifdef IBUG_VECTOR_TYPES
typedef std::uint64_t Words8 __attribute__((vector_size(64)));
#else
struct Words8 {
    std::uint64_t lane[8];
    std::uint64_t& operator[](std::size_t i) { return lane[i]; }
    friend Words8 operator&(Words8 a, const Words8& b) {
        for (int i = 0; i < 8; ++i) a.lane[i] &= b.lane[i];
        return a;
    }
    friend Words8 operator|(Words8 a, const Words8& b) {
        for (int i = 0; i < 8; ++i) a.lane[i] |= b.lane[i];
        return a;
    }
    friend Words8 operator^(Words8 a, const Words8& b) {
        for (int i = 0; i < 8; ++i) a.lane[i] ^= b.lane[i];
        return a;
    }
};
#endif

// sum + a + b = sum + 2 * the returned carry, in every bit.
template <class Words>
inline Words carry_save(Words& sum, const Words& a, const Words& b) {
    const Words either = sum ^ a;
    const Words carry = (sum & a) | (either & b);
    sum = either ^ b;
    return carry;
}

#if IBUG_VECTOR_BYTES == 64 && defined(IBUG_VECTOR_TYPES)
// One instruction each for the majority and the parity of three bits.
inline Words8 carry_save(Words8& sum, const Words8& a, const Words8& b) {
    const __m512i x = (__m512i)sum, y = (__m512i)a, z = (__m512i)b;
    sum = (Words8)_mm512_ternarylogic_epi64(x, y, z, 0x96);
    return (Words8)_mm512_ternarylogic_epi64(x, y, z, 0xe8);
}
#endif

#ifdef IBUG_NEON
// One bit for each of 64 bytes that are all ones or all zeros: each keeps the bit of its place among eight, and sums of
// neighbours bring these together.
inline std::uint64_t bits_of(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {
    const uint8x16_t places = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    const uint8x16_t ab = vpaddq_u8(vandq_u8(a, places), vandq_u8(b, places));
    const uint8x16_t cd = vpaddq_u8(vandq_u8(c, places), vandq_u8(d, places));
    const uint8x16_t all = vpaddq_u8(ab, cd);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}
#endif

// The lowest eight bits as the lowest bits of eight bytes: each byte of the copies keeps its own bit, and moves it
// down.
inline std::uint64_t low_bits(std::uint64_t bits) {
    const std::uint64_t copies = (bits & 0xff) * 0x0101010101010101u & 0x8040201008040201u;
    return (copies + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
}

}  // namespace
}  // namespace ibug::IBUG_TARGET
