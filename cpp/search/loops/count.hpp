// The counting loops: which rows of a tile share a leaf with a query.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/target.hpp"
#include "search/layout.hpp"
#include "search/loops/bits.hpp"

namespace ibug::IBUG_TARGET {
namespace {

// A vector covers all 16 rows of one or more trees, or a part of the rows of one tree.
template <class Code>
struct Shape {
    static constexpr std::size_t lanes = IBUG_VECTOR_BYTES / sizeof(Code);
    static constexpr std::size_t row_parts = lanes < tile_rows ? tile_rows / lanes : 1;  // vectors for one tree's rows
    static constexpr std::size_t line_parts = 64 / IBUG_VECTOR_BYTES;                    // vectors in a line
    static constexpr std::size_t line_codes = 64 / sizeof(Code);
    static constexpr std::size_t tiles_at_a_time = quad_tiles / row_parts;
};

#ifdef IBUG_VECTOR_TYPES

template <class Code>
struct VectorOf {
    typedef Code type __attribute__((vector_size(IBUG_VECTOR_BYTES)));
};

// The 4 bytes of a query's codes that belong to a line, as a vector to compare part `part` of the line with: each code
// as often as a tree has rows.
#if IBUG_VECTOR_BYTES >= 32
// From which byte of the 4 each byte of a line comes.
template <class Code>
struct SpreadTable {
    alignas(64) std::uint8_t from[64];

    constexpr SpreadTable() : from() {
        for (std::size_t i = 0; i < 64; ++i)
            from[i] = static_cast<std::uint8_t>(i / (tile_rows * sizeof(Code)) * sizeof(Code) + i % sizeof(Code));
    }
};
template <class Code>
constexpr SpreadTable<Code> spread_table{};

template <class Code>
inline typename VectorOf<Code>::type spread(std::uint32_t word, std::size_t part) {
    using Vector = typename VectorOf<Code>::type;
    const std::uint8_t* from = spread_table<Code>.from + part * IBUG_VECTOR_BYTES;
#if IBUG_VECTOR_BYTES == 64
    const __m512i words = _mm512_set1_epi32(static_cast<int>(word));
    if constexpr (sizeof(Code) == 4) return (Vector)words;
    return (Vector)_mm512_shuffle_epi8(words, _mm512_load_si512(from));
#else
    const __m256i words = _mm256_set1_epi32(static_cast<int>(word));
    if constexpr (sizeof(Code) == 4) return (Vector)words;
    return (Vector)_mm256_shuffle_epi8(words, _mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
#endif
}
#else
template <class Code>
inline typename VectorOf<Code>::type spread(std::uint32_t word, std::size_t part) {
    // A vector of 16 bytes lies within one tree. Its code over 32 bits is one multiplication, and one broadcast spreads
    // it.
    static_assert(IBUG_VECTOR_BYTES == 16);
    using Words = typename VectorOf<std::uint32_t>::type;
    if constexpr (sizeof(Code) == 1) word = (word >> (8 * part) & 0xff) * 0x01010101u;
    if constexpr (sizeof(Code) == 2) word = (word >> (8 * (part & 2)) & 0xffff) * 0x00010001u;
    return reinterpret_cast<typename VectorOf<Code>::type>(Words{} + word);
}
#endif

template <class Code>
inline void count_equal(typename VectorOf<Code>::type& counter, typename VectorOf<Code>::type rows,
                        typename VectorOf<Code>::type query) {
    using Vector = typename VectorOf<Code>::type;
    counter -= reinterpret_cast<Vector>(rows == query);  // equal lanes compare to -1
}

#if IBUG_VECTOR_BYTES == 64
// With AVX-512 a comparison makes a mask, and a masked subtraction counts by it without spreading it into a vector.
#define IBUG_COUNT_EQUAL(code, bits)                                                                         \
    template <>                                                                                              \
    inline void count_equal<code>(VectorOf<code>::type & counter, VectorOf<code>::type rows,                 \
                                  VectorOf<code>::type query) {                                              \
        const auto equal = _mm512_cmpeq_epi##bits##_mask((__m512i)rows, (__m512i)query);                     \
        counter = (VectorOf<code>::type)_mm512_mask_sub_epi##bits((__m512i)counter, equal, (__m512i)counter, \
                                                                  _mm512_set1_epi##bits(-1));                \
    }
IBUG_COUNT_EQUAL(std::uint8_t, 8)
IBUG_COUNT_EQUAL(std::uint16_t, 16)
IBUG_COUNT_EQUAL(std::uint32_t, 32)
#undef IBUG_COUNT_EQUAL
#endif

#else  // a compiler without vector types: fixed-size loops that it can vectorise by itself

template <class Code>
struct VectorOf {
    struct type {
        Code lane[IBUG_VECTOR_BYTES / sizeof(Code)];
    };
};

template <class Code>
inline typename VectorOf<Code>::type spread(std::uint32_t word, std::size_t part) {
    typename VectorOf<Code>::type out;
    for (std::size_t i = 0; i < Shape<Code>::lanes; ++i) {
        const std::size_t tree = (part * Shape<Code>::lanes + i) / tile_rows;
        out.lane[i] = static_cast<Code>(word >> (8 * sizeof(Code) * tree));
    }
    return out;
}

template <class Code>
inline void count_equal(typename VectorOf<Code>::type& counter, const typename VectorOf<Code>::type& rows,
                        const typename VectorOf<Code>::type& query) {
    for (std::size_t i = 0; i < IBUG_VECTOR_BYTES / sizeof(Code); ++i)
        counter.lane[i] = static_cast<Code>(counter.lane[i] + (rows.lane[i] == query.lane[i]));
}

#endif

inline std::uint32_t word_of(const void* codes) {
    std::uint32_t word;
    std::memcpy(&word, codes, sizeof word);
    return word;
}

// Rows that a vector has a lane of: all 16 of a tile, or a part of them.
template <class Code>
constexpr std::size_t rows_per_vector = Shape<Code>::lanes < tile_rows ? Shape<Code>::lanes : tile_rows;

// Adds up a counter's trees, and adds them to its rows' counts: row r of a tile is in the lanes r, r + 16, ...
template <class Code>
inline void add_lanes(const typename VectorOf<Code>::type& counter, std::uint16_t* counts) {
    constexpr std::size_t rows = rows_per_vector<Code>;
#ifdef IBUG_VECTOR_TYPES
    // A block of trees is small enough for the sum of all its trees to fit the lanes.
    typedef Code Rows __attribute__((vector_size(rows * sizeof(Code))));
    typedef std::uint16_t Counts __attribute__((vector_size(rows * sizeof(std::uint16_t))));
    Rows sum[Shape<Code>::lanes / rows];
    std::memcpy(&sum, &counter, sizeof sum);
    IBUG_UNROLL
    for (std::size_t i = 1; i < Shape<Code>::lanes / rows; ++i) sum[0] += sum[i];
    Counts total;
    std::memcpy(&total, counts, sizeof total);
    total += __builtin_convertvector(sum[0], Counts);
    std::memcpy(counts, &total, sizeof total);
#else
    for (std::size_t lane = 0; lane < Shape<Code>::lanes; ++lane)
        counts[lane % rows] = static_cast<std::uint16_t>(counts[lane % rows] + counter.lane[lane]);
#endif
}

// One bit for each of 16 counts that is at least `needed`.
inline std::uint32_t reaches(const std::uint16_t* counts, std::uint16_t needed) {
#if defined(IBUG_X86)
    // needed - count, stopped at zero, is zero just where the count reaches it; two results make 16 bits of the mask.
    const __m128i least = _mm_set1_epi16(static_cast<short>(needed));
    const auto eight = [&](std::size_t r) {
        const __m128i own = _mm_loadu_si128(reinterpret_cast<const __m128i*>(counts + r));
        return _mm_cmpeq_epi16(_mm_subs_epu16(least, own), _mm_setzero_si128());
    };
    return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(eight(0), eight(8))));
#elif defined(IBUG_NEON)
    const uint16x8_t least = vdupq_n_u16(needed);
    const uint16x8_t low = vcgeq_u16(vld1q_u16(counts), least), high = vcgeq_u16(vld1q_u16(counts + 8), least);
    const uint8x16_t both = vcombine_u8(vmovn_u16(low), vmovn_u16(high));
    return static_cast<std::uint32_t>(bits_of(both, both, both, both) & 0xffff);
#else
    std::uint32_t mask = 0;
    for (std::size_t r = 0; r < tile_rows; ++r) mask |= std::uint32_t{counts[r] >= needed} << r;
    return mask;
#endif
}

template <class Code, std::size_t group, std::size_t n_tiles>
void count(const Code* tiles, std::size_t tile_stride, std::size_t n_lines, const Code* queries,
           std::size_t query_stride, std::uint16_t* counts) {
    using S = Shape<Code>;
    using Vector = typename VectorOf<Code>::type;
    // As many as registers allow, and such that no tiles are left over.
    constexpr std::size_t most = std::min(S::tiles_at_a_time, n_tiles), at_a_time = n_tiles % most == 0 ? most : 1;
    for (std::size_t first = 0; first < n_tiles; first += at_a_time, tiles += at_a_time * tile_stride) {
        Vector counter[group][at_a_time][S::row_parts] = {};
        const Code* line = tiles;
        const Code* query = queries;
        for (std::size_t i = 0; i < n_lines; ++i, line += S::line_codes, query += trees_per_line<Code>) {
            IBUG_UNROLL
            for (std::size_t p = 0; p < S::line_parts; ++p) {
                Vector rows[at_a_time];
                IBUG_UNROLL
                for (std::size_t j = 0; j < at_a_time; ++j)
                    std::memcpy(&rows[j], line + j * tile_stride + p * S::lanes, sizeof(Vector));
                IBUG_UNROLL
                for (std::size_t q = 0; q < group; ++q) {
                    const Vector own = spread<Code>(word_of(query + q * query_stride), p);
                    IBUG_UNROLL
                    for (std::size_t j = 0; j < at_a_time; ++j)
                        count_equal<Code>(counter[q][j][p % S::row_parts], rows[j], own);
                }
            }
        }
        for (std::size_t q = 0; q < group; ++q)
            for (std::size_t j = 0; j < at_a_time; ++j)
                for (std::size_t p = 0; p < S::row_parts; ++p)
                    add_lanes<Code>(counter[q][j][p],
                                    counts + q * quad_rows + (first + j) * tile_rows + p * rows_per_vector<Code>);
    }
}

std::uint64_t at_least(const std::uint16_t* counts, std::uint16_t needed) {
#if IBUG_VECTOR_BYTES == 64
    const __m512i least = _mm512_set1_epi16(static_cast<short>(needed));
    const std::uint64_t low = _mm512_cmpge_epu16_mask(_mm512_loadu_si512(counts), least);
    const std::uint64_t high = _mm512_cmpge_epu16_mask(_mm512_loadu_si512(counts + 32), least);
    return low | high << 32;
#else
    std::uint64_t mask = 0;
    for (std::size_t r = 0; r < quad_rows; r += tile_rows) mask |= std::uint64_t{reaches(counts + r, needed)} << r;
    return mask;
#endif
}

}  // namespace
}  // namespace ibug::IBUG_TARGET
