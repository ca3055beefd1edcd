// Blocks of rows in vectors: one step of all rows at once, and the way of their leaves into the output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/target.hpp"
#include "walk/forest.hpp"

namespace ibug::IBUG_TARGET {
namespace {

// The reached leaves below a node: of a block of rows, or one leaf for all, of which there is one slot.
template <class Code>
struct Reached {
    const Code* codes;
    std::size_t stride;  // from one slot's worth of rows to the next
};

#ifdef IBUG_VECTOR_TYPES

template <class Code>
struct VectorOf {
    typedef Code type __attribute__((vector_size(IBUG_VECTOR_BYTES)));
};

template <class Code>
inline typename VectorOf<Code>::type select(typename VectorOf<Code>::type ranks, Code threshold,
                                            typename VectorOf<Code>::type left, typename VectorOf<Code>::type right) {
    return ranks <= threshold ? left : right;
}

#if IBUG_VECTOR_BYTES == 64
template <>
inline VectorOf<std::uint8_t>::type select<std::uint8_t>(VectorOf<std::uint8_t>::type ranks, std::uint8_t threshold,
                                                         VectorOf<std::uint8_t>::type left,
                                                         VectorOf<std::uint8_t>::type right) {
    const __mmask64 goes_right = _mm512_cmpgt_epu8_mask((__m512i)ranks, _mm512_set1_epi8(static_cast<char>(threshold)));
    return (VectorOf<std::uint8_t>::type)_mm512_mask_mov_epi8((__m512i)left, goes_right, (__m512i)right);
}
template <>
inline VectorOf<std::uint16_t>::type select<std::uint16_t>(VectorOf<std::uint16_t>::type ranks, std::uint16_t threshold,
                                                           VectorOf<std::uint16_t>::type left,
                                                           VectorOf<std::uint16_t>::type right) {
    const __mmask32 goes_right =
        _mm512_cmpgt_epu16_mask((__m512i)ranks, _mm512_set1_epi16(static_cast<short>(threshold)));
    return (VectorOf<std::uint16_t>::type)_mm512_mask_mov_epi16((__m512i)left, goes_right, (__m512i)right);
}
#endif

// out = ranks <= threshold ? left : right, for a block of rows; out may be left or right.
template <class Code>
inline void evaluate(const Code* ranks, Code threshold, Reached<Code> left, Reached<Code> right, Code* out) {
    using Vector = typename VectorOf<Code>::type;
    constexpr std::size_t lanes = sizeof(Vector) / sizeof(Code), slot = slot_bytes / sizeof(Code);
    for (std::size_t s = 0; s < block_rows / slot; ++s)
        for (std::size_t r = 0; r < slot; r += lanes) {
            Vector x, a, b;
            std::memcpy(&x, ranks + s * slot + r, sizeof(Vector));
            std::memcpy(&a, left.codes + s * left.stride + r, sizeof(Vector));
            std::memcpy(&b, right.codes + s * right.stride + r, sizeof(Vector));
            a = select<Code>(x, threshold, a, b);
            std::memcpy(out + s * slot + r, &a, sizeof(Vector));
        }
}

// leaf += bit where ranks > threshold, for a block of rows.
template <class Code>
inline void set_bit(const Code* ranks, Code threshold, Code bit, Code* leaf) {
    using Vector = typename VectorOf<Code>::type;
    constexpr std::size_t lanes = sizeof(Vector) / sizeof(Code);
    for (std::size_t r = 0; r < block_rows; r += lanes) {
        Vector x, a;
        std::memcpy(&x, ranks + r, sizeof(Vector));
        std::memcpy(&a, leaf + r, sizeof(Vector));
        a = select<Code>(x, threshold, a, a + bit);
        std::memcpy(leaf + r, &a, sizeof(Vector));
    }
}

#else  // a compiler without vector types: loops that it can vectorise by itself

template <class Code>
inline void evaluate(const Code* ranks, Code threshold, Reached<Code> left, Reached<Code> right, Code* out) {
    constexpr std::size_t slot = slot_bytes / sizeof(Code);
    for (std::size_t s = 0; s < block_rows / slot; ++s)
        for (std::size_t r = 0; r < slot; ++r)
            out[s * slot + r] =
                ranks[s * slot + r] <= threshold ? left.codes[s * left.stride + r] : right.codes[s * right.stride + r];
}

template <class Code>
inline void set_bit(const Code* ranks, Code threshold, Code bit, Code* leaf) {
    for (std::size_t r = 0; r < block_rows; ++r)
        leaf[r] = static_cast<Code>(leaf[r] + (ranks[r] > threshold ? bit : 0));
}

#endif

template <class Code>
inline void evaluate_categorical(const Forest& forest, const Code* ranks, std::size_t set, Reached<Code> left,
                                 Reached<Code> right, Code* out) {
    constexpr std::size_t slot = slot_bytes / sizeof(Code);
    for (std::size_t s = 0; s < block_rows / slot; ++s)
        for (std::size_t r = 0; r < slot; ++r)
            out[s * slot + r] = forest.goes_left(set, ranks[s * slot + r]) ? left.codes[s * left.stride + r]
                                                                           : right.codes[s * right.stride + r];
}

// Writes 16 trees' leaves of 16 rows, trees[i * stride + r], to out[r * out_stride + i].
template <class Code>
inline void transpose(const Code* trees, std::size_t stride, std::int32_t* out, std::size_t out_stride) {
    for (std::size_t r = 0; r < 16; ++r)
        for (std::size_t i = 0; i < 16; ++i) out[r * out_stride + i] = static_cast<std::int32_t>(trees[i * stride + r]);
}

#ifdef IBUG_X86
// Four rounds of interleaving the first half of the vectors with the second half transpose 16 x 16 bytes.
inline void interleave(const __m128i* in, __m128i* out) {
    for (std::size_t i = 0; i < 8; ++i) {
        out[2 * i] = _mm_unpacklo_epi8(in[i], in[i + 8]);
        out[2 * i + 1] = _mm_unpackhi_epi8(in[i], in[i + 8]);
    }
}

template <>
inline void transpose<std::uint8_t>(const std::uint8_t* trees, std::size_t stride, std::int32_t* out,
                                    std::size_t out_stride) {
    __m128i x[16], y[16];
    for (std::size_t i = 0; i < 16; ++i) x[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(trees + i * stride));
    interleave(x, y);
    interleave(y, x);
    interleave(x, y);
    interleave(y, x);
    const __m128i zero = _mm_setzero_si128();
    for (std::size_t r = 0; r < 16; ++r) {
        auto* row = reinterpret_cast<__m128i*>(out + r * out_stride);
        const __m128i low = _mm_unpacklo_epi8(x[r], zero), high = _mm_unpackhi_epi8(x[r], zero);
        _mm_storeu_si128(row, _mm_unpacklo_epi16(low, zero));
        _mm_storeu_si128(row + 1, _mm_unpackhi_epi16(low, zero));
        _mm_storeu_si128(row + 2, _mm_unpacklo_epi16(high, zero));
        _mm_storeu_si128(row + 3, _mm_unpackhi_epi16(high, zero));
    }
}
#endif

// Adds the values of the leaves that 8 rows reach in a group of trees, in the order of the trees. The sums stay in
// registers, and each leaf costs two loads.
template <class Sum, class Code>
inline void add_values(const double* const* values, const Code* reached, std::size_t n_trees, Sum* sums) {
    Sum s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3], s4 = sums[4], s5 = sums[5], s6 = sums[6], s7 = sums[7];
    for (std::size_t i = 0; i < n_trees; ++i, reached += block_rows) {
        const double* value = values[i];
        s0 += static_cast<Sum>(value[reached[0]]);
        s1 += static_cast<Sum>(value[reached[1]]);
        s2 += static_cast<Sum>(value[reached[2]]);
        s3 += static_cast<Sum>(value[reached[3]]);
        s4 += static_cast<Sum>(value[reached[4]]);
        s5 += static_cast<Sum>(value[reached[5]]);
        s6 += static_cast<Sum>(value[reached[6]]);
        s7 += static_cast<Sum>(value[reached[7]]);
    }
    sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3, sums[4] = s4, sums[5] = s5, sums[6] = s6, sums[7] = s7;
}

}  // namespace
}  // namespace ibug::IBUG_TARGET
