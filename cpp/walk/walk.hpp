// Rows down the trees: the leaf of each row in each tree, and the sum of the leaves' values, in one pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/instruction_sets.hpp"
#include "walk/forest.hpp"

namespace ibug {

// Rows, (n_rows, n_features) in double or single precision: just one of the two is there.
struct RowsView {
    const double* doubles;
    const float* floats;
    std::size_t n_features;
};

// The trees to walk, by their numbers, in this order.
struct ChosenTrees {
    const std::int32_t* numbers;  // null for all trees
    std::size_t n;
};

// Trees whose leaves are written together, so that each row's part of the output is some cache lines.
inline constexpr std::size_t tree_group = 256;

// The memory of one walk in bytes: results, leaves' numbers, reached leaves and ranks, from a cache line on.
inline std::size_t walk_memory(const Forest& forest) {
    const std::size_t code_bytes = forest.fits_bytes() ? 1 : 2;
    const std::size_t n_columns = std::max<std::size_t>(forest.columns.size(), 1);
    return (n_columns + most_results + tree_group) * block_rows * code_bytes + (forest.n_numbers + 1) * slot_bytes;
}

// Writes for the rows from `start` to `stop` the leaf numbers to leaves (n_rows, n_chosen) and the sums of the leaf
// values to sums (n_rows,). `memory` are walk_memory() bytes of zeros. Returns false, with both unfinished, where the
// library would not take a row.
using WalkFunction = bool (*)(const Forest& forest, const ChosenTrees& chosen, const RowsView& rows, std::size_t start,
                              std::size_t stop, std::int32_t* leaves, double* sums, void* memory);

struct Walks {
    InstructionSet set;
    WalkFunction walk8;   // ranks and leaves in bytes
    WalkFunction walk16;  // in 16 bits
};

IBUG_DECLARE_TABLES(Walks, walks)

}  // namespace ibug
