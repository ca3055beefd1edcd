// The walk, compiled once for each instruction set: see common/target.hpp.
#include "walk/walk.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/target.hpp"
#include "walk/walker.hpp"

namespace ibug::IBUG_TARGET {

namespace {

template <class Code>
bool walk(const Forest& forest, const ChosenTrees& chosen, const RowsView& rows, std::size_t start, std::size_t stop,
          std::int32_t* leaves, double* sums, void* memory) {
    Walker<Code> walker(forest, chosen, rows, leaves, sums, memory);
    for (std::size_t r = start; r < stop; r += block_rows)
        if (!walker.block(r, std::min(r + block_rows, stop))) return false;
    return true;
}

}  // namespace

const Walks walks = {InstructionSet::IBUG_TARGET, walk<std::uint8_t>, walk<std::uint16_t>};

}  // namespace ibug::IBUG_TARGET
