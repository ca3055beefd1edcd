// Rows down the trees: the leaf of each row in each tree, and the sum of the leaves' values, in one pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "forest.hpp"

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

// Writes for the rows from `start` to `stop` the leaf numbers to leaves (n_rows, n_chosen) and the sums of the leaf values
// to sums (n_rows,). Returns false, with both unfinished, where the library would not take a row.
using WalkFunction = bool (*)(const Forest& forest, const ChosenTrees& chosen, const RowsView& rows, std::size_t start,
                              std::size_t stop, std::int32_t* leaves, double* sums);

struct WalkSet {
    const char* name;
    WalkFunction walk8;   // ranks and leaves in bytes
    WalkFunction walk16;  // in 16 bits
};

extern const WalkSet walk_baseline;
#ifdef IBUG_X86
extern const WalkSet walk_avx2;
extern const WalkSet walk_avx512;
#endif

}  // namespace ibug
