// The memory of a search by bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "search/loops.hpp"
#include "search/top_k.hpp"

namespace ibug {

// What a search writes on its way. A thread keeps it from one call to the next, so that a row alone allocates nothing.
struct Workspace {
    struct Ranked {
        std::uint32_t bound, chunk;
    };

    std::vector<std::uint32_t> leaves;      // positions in places, by tree
    std::vector<LeafWords> words;           // (n_groups, n_trees): the same leaves in the superblocks of each group
    std::vector<std::uint8_t> collected;    // (n_groups,): whether its words are there
    std::vector<std::size_t> block_start;   // where each block's leaves start
    std::vector<std::uint16_t> superblock;  // bounds
    std::vector<Ranked> ranked;             // chunks
    // Queues of tiles, one for each bound: the first tile, and the next of each tile; and how many are waiting.
    std::vector<std::uint32_t> first, waiting, next;
    std::vector<std::uint8_t> sums;  // [chunk][block of trees][tile]: the bounds' parts
    TopK best;
    std::vector<std::pair<std::uint32_t, std::size_t>> queue;  // where each query's nearest rows may be, and the query
    std::vector<std::uint32_t> left;                           // queries that are left to the scan

    static Workspace& of_this_thread() {
        static thread_local Workspace workspace;
        return workspace;
    }

    template <class T>
    static void grow(std::vector<T>& numbers, std::size_t n) {
        if (numbers.size() < n) numbers.resize(n);
    }
};

}  // namespace ibug
