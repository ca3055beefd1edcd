// The body of the counting loop, included by one source file per instruction set, which defines before it:
//   IBUG_SET           the name of the InstructionSet object
//   IBUG_SET_NAME      its name for people
//   IBUG_VECTOR_BYTES  the width of a vector register
//   IBUG_GROUP         queries at a time, so that their counters stay in registers
// Everything here is in an unnamed namespace: code compiled for one instruction set must never be linked into another.
#include <cstring>

#include "scan.hpp"

#ifdef IBUG_X86
#include <immintrin.h>
#endif

// Counters stay in registers only where both loops over them are unrolled.
#if defined(__clang__)
#define IBUG_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define IBUG_UNROLL _Pragma("GCC unroll 16")
#else
#define IBUG_UNROLL
#endif

namespace ibug {
namespace {

#if defined(__GNUC__) || defined(__clang__)

template <class Code>
struct VectorOf {
    typedef Code type __attribute__((vector_size(IBUG_VECTOR_BYTES)));
};

template <class Code>
inline typename VectorOf<Code>::type broadcast(std::uint32_t splat) {
    // One 32-bit broadcast straight from memory costs no shuffle, whatever the width of the codes.
    using Words = typename VectorOf<std::uint32_t>::type;
    return reinterpret_cast<typename VectorOf<Code>::type>(Words{} + splat);
}

template <class Code>
inline void count_equal(typename VectorOf<Code>::type& counter, typename VectorOf<Code>::type rows,
                        typename VectorOf<Code>::type query) {
    using Vector = typename VectorOf<Code>::type;
    counter -= reinterpret_cast<Vector>(rows == query);  // equal lanes compare to -1
}

#ifdef __AVX512BW__
// With AVX-512 a comparison makes a mask, and a masked subtraction counts by it without spreading it into a vector.
#define IBUG_COUNT_EQUAL(code, bits)                                                                             \
    template <>                                                                                                  \
    inline void count_equal<code>(VectorOf<code>::type & counter, VectorOf<code>::type rows,                     \
                                  VectorOf<code>::type query) {                                                  \
        const auto equal = _mm512_cmpeq_epi##bits##_mask((__m512i)rows, (__m512i)query);                         \
        counter = (VectorOf<code>::type)_mm512_mask_sub_epi##bits((__m512i)counter, equal, (__m512i)counter,     \
                                                                  _mm512_set1_epi##bits(-1));                    \
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
inline typename VectorOf<Code>::type broadcast(std::uint32_t splat) {
    typename VectorOf<Code>::type out;
    for (auto& lane : out.lane) lane = static_cast<Code>(splat);
    return out;
}

template <class Code>
inline void count_equal(typename VectorOf<Code>::type& counter, const typename VectorOf<Code>::type& rows,
                        const typename VectorOf<Code>::type& query) {
    for (std::size_t i = 0; i < IBUG_VECTOR_BYTES / sizeof(Code); ++i)
        counter.lane[i] = static_cast<Code>(counter.lane[i] + (rows.lane[i] == query.lane[i]));
}

#endif

template <class Code, std::size_t group>
void count(const Code* tile, std::size_t n_trees, const std::uint32_t* queries, std::uint16_t* counts) {
    using Vector = typename VectorOf<Code>::type;
    constexpr std::size_t lanes = sizeof(Vector) / sizeof(Code);
    constexpr std::size_t parts = tile_rows / lanes;
    Vector counter[group][parts] = {};
    for (std::size_t tree = 0; tree < n_trees; ++tree, tile += tile_rows, queries += group) {
        Vector rows[parts];
        IBUG_UNROLL for (std::size_t p = 0; p < parts; ++p) std::memcpy(&rows[p], tile + p * lanes, sizeof(Vector));
        IBUG_UNROLL for (std::size_t q = 0; q < group; ++q) {
            const Vector query = broadcast<Code>(queries[q]);
            IBUG_UNROLL for (std::size_t p = 0; p < parts; ++p) count_equal<Code>(counter[q][p], rows[p], query);
        }
    }
    IBUG_UNROLL for (std::size_t q = 0; q < group; ++q) {
        Code spilled[tile_rows];
        IBUG_UNROLL for (std::size_t p = 0; p < parts; ++p)
            std::memcpy(spilled + p * lanes, &counter[q][p], sizeof(Vector));
        for (std::size_t r = 0; r < tile_rows; ++r)
            counts[q * tile_rows + r] = static_cast<std::uint16_t>(counts[q * tile_rows + r] + spilled[r]);
    }
}

std::uint64_t at_least(const std::uint16_t* counts, std::uint16_t needed) {
#if defined(__AVX512BW__)
    const __m512i least = _mm512_set1_epi16(static_cast<short>(needed));
    const std::uint64_t low = _mm512_cmpge_epu16_mask(_mm512_loadu_si512(counts), least);
    const std::uint64_t high = _mm512_cmpge_epu16_mask(_mm512_loadu_si512(counts + 32), least);
    return low | high << 32;
#elif defined(IBUG_X86)
    const __m128i least = _mm_set1_epi16(static_cast<short>(needed));
    // least - count, stopped at zero, is zero just where the count reaches it; two results make 16 bits of the mask.
    const auto reaches = [&](std::size_t r) {
        const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(counts + r));
        return _mm_cmpeq_epi16(_mm_subs_epu16(least, eight), _mm_setzero_si128());
    };
    std::uint64_t mask = 0;
    for (std::size_t r = 0; r < tile_rows; r += 16) {
        const int bits = _mm_movemask_epi8(_mm_packs_epi16(reaches(r), reaches(r + 8)));
        mask |= static_cast<std::uint64_t>(static_cast<unsigned>(bits)) << r;
    }
    return mask;
#else
    std::uint64_t mask = 0;
    for (std::size_t r = 0; r < tile_rows; ++r) mask |= std::uint64_t{counts[r] >= needed} << r;
    return mask;
#endif
}

}  // namespace

const InstructionSet IBUG_SET = {
    IBUG_SET_NAME,
    IBUG_GROUP,
    {count<std::uint8_t, IBUG_GROUP>, count<std::uint8_t, 1>},
    {count<std::uint16_t, IBUG_GROUP>, count<std::uint16_t, 1>},
    {count<std::uint32_t, IBUG_GROUP>, count<std::uint32_t, 1>},
    at_least,
};

}  // namespace ibug
