// The loops of a search, compiled once for each instruction set: see common/target.hpp.
#include "search/loops.hpp"

#include <cstddef>
#include <cstdint>

#include "common/target.hpp"
#include "search/loops/bitmap_sums.hpp"
#include "search/loops/count.hpp"

namespace ibug::IBUG_TARGET {

namespace {

// Queries at a time, so that their counters stay in registers: 16 registers hold those of two, 32 those of four.
constexpr std::size_t group = IBUG_VECTOR_BYTES == 64 ? 4 : 2;

// From this number of queries on, bitmaps are faster than comparisons.
#if IBUG_VECTOR_BYTES == 64
constexpr std::size_t least_queries = 16;
#elif IBUG_VECTOR_BYTES == 32
constexpr std::size_t least_queries = 40;
#elif defined(IBUG_X86) || defined(IBUG_NEON)
constexpr std::size_t least_queries = 32;  // measured on x86, taken over for ARM
#else
constexpr std::size_t least_queries = 256;  // plain loops make them slowly
#endif

}  // namespace

const Loops loops = {
    InstructionSet::IBUG_TARGET,
    group,
    least_queries,
    {count<std::uint8_t, group>, count<std::uint8_t, 1>},
    {count<std::uint16_t, group>, count<std::uint16_t, 1>},
    {count<std::uint32_t, group>, count<std::uint32_t, 1>},
    at_least,
    make_bitmaps,
    add_bitmaps,
    read_rows,
};

}  // namespace ibug::IBUG_TARGET
