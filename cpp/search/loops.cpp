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

template <class Code>
constexpr Counters<Code> counters_of() {
    return {{count<Code, group, 1>, count<Code, group, 2>, count<Code, group, 3>, count<Code, group, 4>},
            {count<Code, 1, 1>, count<Code, 1, 2>, count<Code, 1, 3>, count<Code, 1, 4>}};
}

}  // namespace

const Loops loops = {
    InstructionSet::IBUG_TARGET,
    group,
    least_queries,
    counters_of<std::uint8_t>(),
    counters_of<std::uint16_t>(),
    counters_of<std::uint32_t>(),
    at_least,
    make_bitmaps,
    add_bitmaps,
    read_rows,
};

}  // namespace ibug::IBUG_TARGET
