// What trees must be like to be walked, whoever has written them: every number that is used as a position is in its
// range, and a tree is a tree.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "walk/forest.hpp"

namespace ibug {

inline void require_node(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

// The splits themselves: in an oblivious model each level of a tree is one.
inline void check_splits(const Nodes& nodes, const CategorySets& sets, std::size_t n_features) {
    for (std::int64_t i = nodes.first[0]; i < nodes.first[nodes.n_trees]; ++i) {
        if (nodes.is_leaf(i)) continue;
        const Node& split = nodes.node[i];
        require_node(split.feature >= 0 && static_cast<std::size_t>(split.feature) < n_features,
                     "a split is on a feature that is not there");
        require_node(split.missing <= 2, "unknown kind of missing value");
        require_node(!std::isnan(split.threshold), "a threshold is no number");
        require_node(split.categories < static_cast<std::int64_t>(sets.n_sets), "a set of categories is missing");
    }
}

// Also how they hang together: children come after their parent, so that there is no circle, and have no other parent,
// so that what is below a node is never more than the nodes that there are.
inline void check_trees(const Nodes& nodes, const CategorySets& sets, std::size_t n_features) {
    check_splits(nodes, sets, n_features);
    std::vector<std::uint8_t> has_parent;
    for (std::size_t t = 0; t < nodes.n_trees; ++t) {
        const std::int64_t n = nodes.first[t + 1] - nodes.first[t];
        require_node(n > 0 && n < (std::int64_t{1} << 30), "a tree has no nodes, or too many");
        has_parent.assign(static_cast<std::size_t>(n), 0);
        for (std::int64_t own = 0; own < n; ++own) {
            if (nodes.is_leaf(nodes.first[t] + own)) continue;
            for (const std::int64_t child :
                 {nodes.node[nodes.first[t] + own].left, nodes.node[nodes.first[t] + own].right}) {
                require_node(child > own && child < n, "a split's children do not come after it");
                require_node(has_parent[static_cast<std::size_t>(child)]++ == 0, "two splits have the same child");
            }
        }
    }
}

}  // namespace ibug
