// Affinities of many rows by sums of bitmaps. The sums are kept in bit planes (plane p holds bit p of every row's sum).
// Bitmaps are added sixteen at a time, where bounds are added eight at a time: there are more of them for each carry
// that ripples up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/target.hpp"
#include "search/layout.hpp"
#include "search/loops.hpp"
#include "search/loops/bits.hpp"

namespace ibug::IBUG_TARGET {
namespace {

// As many words of a bitmap as a vector register holds.
constexpr std::size_t part_words = IBUG_VECTOR_BYTES / 8, n_parts = sizeof(Bitmap) / IBUG_VECTOR_BYTES;

#ifdef IBUG_VECTOR_TYPES
typedef std::uint64_t Part __attribute__((vector_size(IBUG_VECTOR_BYTES)));

inline Part all_words(std::uint64_t word) { return Part{} + word; }
#else
struct Part {
    std::uint64_t word[part_words];
    friend Part operator&(Part a, const Part& b) {
        for (std::size_t i = 0; i < part_words; ++i) a.word[i] &= b.word[i];
        return a;
    }
    friend Part operator|(Part a, const Part& b) {
        for (std::size_t i = 0; i < part_words; ++i) a.word[i] |= b.word[i];
        return a;
    }
    friend Part operator^(Part a, const Part& b) {
        for (std::size_t i = 0; i < part_words; ++i) a.word[i] ^= b.word[i];
        return a;
    }
};

inline Part all_words(std::uint64_t word) {
    Part part;
    for (std::uint64_t& w : part.word) w = word;
    return part;
}
#endif

inline Part load(const std::uint64_t* from) {
    Part part;
    std::memcpy(&part, from, sizeof part);
    return part;
}

inline void store(const Part& part, std::uint64_t* to) { std::memcpy(to, &part, sizeof part); }

#if IBUG_VECTOR_BYTES == 64
// The bitmaps of codes, by comparing all rows with each of them: their codes stay in eight registers.
inline void make_bitmaps_of_tree(const std::uint8_t* rows, const std::uint8_t* codes, std::size_t n_codes,
                                 Bitmap* bitmaps) {
    __m512i own[bitmap_rows / 64];
    IBUG_UNROLL
    for (std::size_t w = 0; w < bitmap_rows / 64; ++w) own[w] = _mm512_load_si512(rows + w * 64);
    for (std::size_t i = 0; i < n_codes; ++i) {
        const __m512i code = _mm512_set1_epi8(static_cast<char>(codes[i]));
        IBUG_UNROLL
        for (std::size_t w = 0; w < bitmap_rows / 64; ++w) bitmaps[i].words[w] = _mm512_cmpeq_epi8_mask(own[w], code);
    }
}
#else
// Bits of the codes of 512 rows that lie one after the other: which codes are equal to `code`, and which have bit `p`.
#if IBUG_VECTOR_BYTES == 32
template <class Test>
inline void test_codes(const std::uint8_t* codes, Test test, Bitmap& out) {
    const auto half = [&](std::size_t first) {
        const __m256i found = test(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + first)));
        return std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(found))};
    };
    for (std::size_t w = 0; w < bitmap_rows / 64; ++w) out.words[w] = half(w * 64) | half(w * 64 + 32) << 32;
}
inline void equal_codes(const std::uint8_t* codes, std::uint8_t code, Bitmap& out) {
    const __m256i own = _mm256_set1_epi8(static_cast<char>(code));
    test_codes(codes, [=](__m256i rows) { return _mm256_cmpeq_epi8(rows, own); }, out);
}
#elif defined(IBUG_X86)
template <class Test>
inline void test_codes(const std::uint8_t* codes, Test test, Bitmap& out) {
    const auto quarter = [&](std::size_t first) {
        const __m128i found = test(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + first)));
        return std::uint64_t{static_cast<std::uint32_t>(_mm_movemask_epi8(found))};
    };
    for (std::size_t w = 0; w < bitmap_rows / 64; ++w, codes += 64)
        out.words[w] = quarter(0) | quarter(16) << 16 | quarter(32) << 32 | quarter(48) << 48;
}
inline void equal_codes(const std::uint8_t* codes, std::uint8_t code, Bitmap& out) {
    const __m128i own = _mm_set1_epi8(static_cast<char>(code));
    test_codes(codes, [=](__m128i rows) { return _mm_cmpeq_epi8(rows, own); }, out);
}
inline void codes_with_bit(const std::uint8_t* codes, std::size_t p, Bitmap& out) {
    // The bit becomes the highest of its byte; what comes from the byte below stays under it.
    const __m128i up = _mm_cvtsi32_si128(static_cast<int>(7 - p));
    test_codes(codes, [=](__m128i rows) { return _mm_sll_epi16(rows, up); }, out);
}
#elif defined(IBUG_NEON)
template <class Test>
inline void test_codes(const std::uint8_t* codes, Test test, Bitmap& out) {
    for (std::size_t w = 0; w < bitmap_rows / 64; ++w, codes += 64)
        out.words[w] = bits_of(test(vld1q_u8(codes)), test(vld1q_u8(codes + 16)), test(vld1q_u8(codes + 32)),
                               test(vld1q_u8(codes + 48)));
}
inline void equal_codes(const std::uint8_t* codes, std::uint8_t code, Bitmap& out) {
    const uint8x16_t own = vdupq_n_u8(code);
    test_codes(codes, [=](uint8x16_t rows) { return vceqq_u8(rows, own); }, out);
}
inline void codes_with_bit(const std::uint8_t* codes, std::size_t p, Bitmap& out) {
    const uint8x16_t bit = vdupq_n_u8(static_cast<std::uint8_t>(1u << p));
    test_codes(codes, [=](uint8x16_t rows) { return vtstq_u8(rows, bit); }, out);
}
#else
template <class Test>
inline void test_codes(const std::uint8_t* codes, Test test, Bitmap& out) {
    for (std::uint64_t& word : out.words) {
        word = 0;
        for (std::size_t i = 0; i < 64; ++i) word |= std::uint64_t{test(*codes++)} << i;
    }
}
inline void equal_codes(const std::uint8_t* codes, std::uint8_t code, Bitmap& out) {
    test_codes(codes, [=](std::uint8_t row) { return row == code; }, out);
}
inline void codes_with_bit(const std::uint8_t* codes, std::size_t p, Bitmap& out) {
    test_codes(codes, [=](std::uint8_t row) { return (row >> p & 1) != 0; }, out);
}
#endif

#if IBUG_VECTOR_BYTES == 16
// For all values of `n` bits, up to four, the rows whose codes have that value in the bits from `first` on. `planes`
// are the bits of the codes.
inline void rows_by_value(const Bitmap* planes, std::size_t first, std::size_t n, Bitmap* rows) {
    const Part ones = all_words(~std::uint64_t{0});
    for (std::size_t part = 0; part < n_parts; ++part) {
        const std::size_t at = part * part_words;
        store(ones, rows[0].words + at);
        for (std::size_t p = 0; p < n; ++p) {
            const std::size_t size = std::size_t{1} << p;
            const Part with = load(planes[first + p].words + at), without = with ^ ones;
            for (std::size_t value = 0; value < size; ++value) {
                const Part own = load(rows[value].words + at);
                store(own & with, rows[value + size].words + at);
                store(own & without, rows[value].words + at);
            }
        }
    }
}

// The bitmaps of many codes: the rows that have its lower four bits, and its upper ones.
inline void make_by_halves(const std::uint8_t* rows, const std::uint8_t* codes, std::size_t n_codes, Bitmap* bitmaps) {
    std::uint64_t any[8] = {};
    for (std::size_t i = 0; i < bitmap_rows; i += sizeof any) {
        std::uint64_t some[8];
        std::memcpy(some, rows + i, sizeof some);
        for (std::size_t j = 0; j < 8; ++j) any[j] |= some[j];
    }
    std::uint64_t all = 0;
    for (const std::uint64_t word : any) all |= word;
    for (std::size_t i = 0; i < n_codes; ++i) all |= codes[i];
    std::size_t n_bits = 0;
    for (std::size_t p = 0; p < 8; ++p)
        if (all >> p & 0x0101010101010101u) n_bits = p + 1;
    Bitmap planes[8], low[16], high[16];
    for (std::size_t p = 0; p < n_bits; ++p) codes_with_bit(rows, p, planes[p]);
    const std::size_t n_low = n_bits < 4 ? n_bits : 4;
    rows_by_value(planes, 0, n_low, low);
    rows_by_value(planes, n_low, n_bits - n_low, high);
    for (std::size_t i = 0; i < n_codes; ++i)
        for (std::size_t at = 0; at < bitmap_rows / 64; at += part_words)
            store(load(low[codes[i] & 15].words + at) & load(high[codes[i] >> 4].words + at), bitmaps[i].words + at);
}

// From this number of codes on, that is faster than to compare all rows with each code.
constexpr std::size_t least_by_halves = 12;
#endif

inline void make_bitmaps_of_tree(const std::uint8_t* rows, const std::uint8_t* codes, std::size_t n_codes,
                                 Bitmap* bitmaps) {
#if IBUG_VECTOR_BYTES == 16
    if (n_codes >= least_by_halves) return make_by_halves(rows, codes, n_codes, bitmaps);
#endif
    for (std::size_t i = 0; i < n_codes; ++i) equal_codes(rows, codes[i], bitmaps[i]);
}
#endif

// Lines of a tile that are fetched before they are needed.
constexpr std::size_t tile_lines_ahead = 4;

void make_bitmaps(const std::uint8_t* tiles, std::size_t tile_stride, std::size_t n_tiles, const std::uint8_t* codes,
                  const std::uint32_t* starts, Bitmap* bitmaps) {
    constexpr std::size_t n_trees = trees_per_line<std::uint8_t>;
    alignas(64) std::uint8_t rows[n_trees][bitmap_rows];
    for (std::size_t i = 0; i < n_tiles; ++i) {
        // Tiles are too many and too far apart for the processor to foresee which lines come next.
        const std::uint8_t* line = tiles + i * tile_stride;
        fetch(line, tile_lines_ahead * 64);
        for (std::size_t t = 0; t < n_trees; ++t) std::memcpy(rows[t] + i * tile_rows, line + t * tile_rows, tile_rows);
    }
    for (std::size_t t = 0; t < n_trees; ++t)
        std::memset(rows[t] + n_tiles * tile_rows, 0, bitmap_rows - n_tiles * tile_rows);
    for (std::size_t t = 0; t < n_trees; ++t) {
        const std::size_t n_codes = starts[t + 1] - starts[t];
        make_bitmaps_of_tree(rows[t], codes + starts[t], n_codes, bitmaps);
        bitmaps += n_codes;
    }
}

void add_bitmaps(const Bitmap* bitmaps, const std::uint16_t* places, std::size_t n, Bitmap* planes,
                 std::size_t n_planes) {
    for (std::size_t part = 0; part < n_parts; ++part) {
        const std::uint64_t* const words = bitmaps->words + part * part_words;
        Part own[block_planes] = {};
        for (const std::uint16_t* next = places; next < places + n;) {
            // Bitmaps are added to each other before they are added to the sums, which wait for one addition only.
            Part ones[6], twos[8], fours[4], eights[2];
            IBUG_UNROLL
            for (std::size_t i = 0; i < 5; ++i) {
                ones[i] = load(words + next[3 * i]);
                twos[i] = carry_save(ones[i], load(words + next[3 * i + 1]), load(words + next[3 * i + 2]));
            }
            ones[5] = load(words + next[15]);
            next += 16;
            twos[5] = carry_save(ones[0], ones[1], ones[2]);
            twos[6] = carry_save(ones[3], ones[4], ones[5]);
            twos[7] = carry_save(own[0], ones[0], ones[3]);
            fours[0] = carry_save(twos[0], twos[1], twos[2]);
            fours[1] = carry_save(twos[3], twos[4], twos[5]);
            fours[2] = carry_save(twos[0], twos[3], twos[6]);
            fours[3] = carry_save(own[1], twos[0], twos[7]);
            eights[0] = carry_save(fours[0], fours[1], fours[2]);
            eights[1] = carry_save(own[2], fours[0], fours[3]);
            Part carry = carry_save(own[3], eights[0], eights[1]);
            IBUG_UNROLL
            for (std::size_t p = 4; p < block_planes; ++p) {
                const Part both = own[p] & carry;
                own[p] = own[p] ^ carry;
                carry = both;
            }
        }
        Part carry = {};
        IBUG_UNROLL
        for (std::size_t p = 0; p < block_planes; ++p) {
            std::uint64_t* const words = planes[p].words + part * part_words;
            Part sum = load(words);
            carry = carry_save(sum, own[p], carry);
            store(sum, words);
        }
        for (std::size_t p = block_planes; p < n_planes; ++p) {
            std::uint64_t* const words = planes[p].words + part * part_words;
            const Part sum = load(words);
            store(sum ^ carry, words);
            carry = sum & carry;
        }
    }
}

// The 64 sums of a word of the planes.
inline void read_sums(const Bitmap* planes, std::size_t n_planes, std::size_t word, std::uint16_t* out) {
#if IBUG_VECTOR_BYTES == 64
    __m512i low = _mm512_setzero_si512(), high = low;
    for (std::size_t p = 0; p < n_planes; ++p) {
        const std::uint64_t bits = planes[p].words[word];
        const __m512i value = _mm512_set1_epi16(static_cast<short>(1u << p));
        low = _mm512_mask_add_epi16(low, static_cast<__mmask32>(bits), low, value);
        high = _mm512_mask_add_epi16(high, static_cast<__mmask32>(bits >> 32), high, value);
    }
    _mm512_storeu_si512(out, low);
    _mm512_storeu_si512(out + 32, high);
#else
    std::uint64_t bytes[2][8] = {};
    for (std::size_t p = 0; p < n_planes; ++p)
        for (std::size_t i = 0; i < 8; ++i) bytes[p / 8][i] |= low_bits(planes[p].words[word] >> 8 * i) << p % 8;
    for (std::size_t i = 0; i < 64; ++i)
        out[i] = static_cast<std::uint16_t>((bytes[0][i / 8] >> i % 8 * 8 & 0xff) |
                                            (bytes[1][i / 8] >> i % 8 * 8 & 0xff) << 8);
#endif
}

// The rows whose sum is at least `least`, a number of n_planes bits: from the lowest bit on, the majority of the sum's
// bit, of what the lower bits have decided, and of the opposite of the bit of `least`.
inline void rows_reaching(const Bitmap* planes, std::size_t n_planes, std::uint32_t least, Bitmap& rows) {
    for (std::size_t part = 0; part < n_parts; ++part) {
        Part reaching = all_words(~std::uint64_t{0});
        for (std::size_t p = 0; p < n_planes; ++p) {
            Part sum = load(planes[p].words + part * part_words);
            reaching = carry_save(sum, reaching, all_words((least >> p & 1) - std::uint64_t{1}));
        }
        store(reaching, rows.words + part * part_words);
    }
}

// The n-th largest sum of some rows, which are at least n.
inline std::uint32_t nth_largest(const Bitmap* planes, std::size_t n_planes, Bitmap rows, std::size_t n) {
    std::uint32_t found = 0;
    for (std::size_t p = n_planes; p-- > 0;) {
        std::size_t n_with = 0;
        for (std::size_t w = 0; w < bitmap_rows / 64; ++w) n_with += count_ones(rows.words[w] & planes[p].words[w]);
        const std::uint64_t without = n_with >= n ? 0 : ~std::uint64_t{0};
        for (std::size_t w = 0; w < bitmap_rows / 64; ++w) rows.words[w] &= planes[p].words[w] ^ without;
        if (without == 0)
            found |= std::uint32_t{1} << p;
        else
            n -= n_with;
    }
    return found;
}

bool read_rows(const Bitmap* planes, std::size_t n_planes, std::size_t n_rows, std::uint32_t needed, std::size_t k,
               Bitmap& reaching, std::uint16_t* counts) {
    const auto find = [&](std::uint32_t least) {
        rows_reaching(planes, n_planes, least, reaching);
        std::size_t n_found = 0;
        for (std::size_t w = 0; w < bitmap_rows / 64; ++w) {
            if (n_rows < 64 * (w + 1)) reaching.words[w] &= n_rows > 64 * w ? (std::uint64_t{1} << n_rows % 64) - 1 : 0;
            n_found += count_ones(reaching.words[w]);
        }
        return n_found;
    };
    const std::size_t n_found = find(needed);
    if (n_found == 0) return false;
    if (n_found > k) find(nth_largest(planes, n_planes, reaching, k));
    for (std::size_t w = 0; w < bitmap_rows / 64; ++w)
        if (reaching.words[w] != 0) read_sums(planes, n_planes, w, counts + w * 64);
    return true;
}

}  // namespace
}  // namespace ibug::IBUG_TARGET
