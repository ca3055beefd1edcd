// From the nodes of a model file to a Forest: ranks of the thresholds, columns, and the order in which nodes are
// evaluated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "walk/forest.hpp"
#include "walk/node_checks.hpp"

namespace ibug {

// More leaves than this, and walking down costs less than evaluating all nodes.
inline constexpr std::int32_t most_evaluated_leaves = 512;
// And more slots for leaves' numbers than this would not stay in the cache.
inline constexpr std::int32_t most_evaluated_number = 4095;

class ForestBuilder {
   public:
    ForestBuilder(const Nodes& nodes, const CategorySets& sets, const Reading& reading) : nodes_(nodes), sets_(sets) {
        forest_.reading = reading;
    }

    Forest build() {
        check_trees(nodes_, sets_, forest_.reading.n_features);
        cut_features();
        for (std::size_t t = 0; t < nodes_.n_trees; ++t) add_tree(t);
        place_slots();
        return std::move(forest_);
    }

    // Oblivious trees: the nodes are levels, each one split for the whole tree; a row's leaf has bit l set where it
    // goes right at level l. `values` holds the 2^levels leaf values of one tree after the other.
    Forest build_oblivious(const double* values, std::size_t n_values) {
        std::size_t needed = 0;
        for (std::size_t t = 0; t < nodes_.n_trees; ++t) {
            const std::int64_t levels = nodes_.first[t + 1] - nodes_.first[t];
            require_node(levels >= 0 && levels <= 16, "an oblivious tree has more than 16 levels");
            needed += std::size_t{1} << levels;
        }
        require_node(needed == n_values, "the leaf values do not fit the trees");
        check_splits(nodes_, sets_, forest_.reading.n_features);
        cut_features();
        forest_.oblivious = true;
        forest_.values.assign(values, values + n_values);
        std::size_t first_value = 0;
        for (std::size_t t = 0; t < nodes_.n_trees; ++t) {
            Tree tree{};
            tree.first_step = forest_.steps.size();
            for (std::int64_t i = nodes_.first[t]; i < nodes_.first[t + 1]; ++i)
                forest_.steps.push_back({column_of(i), threshold_of(i), 0, 0, 0, 0, 0, false});
            tree.n_steps = forest_.steps.size() - tree.first_step;
            tree.first_value = first_value;
            const std::size_t n_leaves = std::size_t{1} << tree.n_steps;
            first_value += n_leaves;
            forest_.highest_number = std::max(forest_.highest_number, n_leaves - 1);
            forest_.trees.push_back(tree);
        }
        return std::move(forest_);
    }

   private:
    using FeatureKey = std::pair<std::int32_t, bool>;                // index, categorical
    using ColumnKey = std::tuple<std::int32_t, std::uint8_t, bool>;  // index, missing, default_left

    bool is_leaf(std::int64_t node) const { return nodes_.is_leaf(node); }
    bool is_categorical(std::int64_t node) const { return nodes_.node[node].categories >= 0; }

    // Sorts the thresholds of each feature, and makes its columns.
    void cut_features() {
        std::map<FeatureKey, std::vector<double>> cuts;
        std::map<FeatureKey, std::map<ColumnKey, std::size_t>> columns;
        for_splits([&](std::int64_t i) {
            const FeatureKey key{nodes_.node[i].feature, is_categorical(i)};
            if (key.second) {
                auto& count = cuts[key];
                if (count.empty()) count.push_back(sets_.n_categories[key.first]);
                const auto s = static_cast<std::size_t>(nodes_.node[i].categories);
                for (std::int64_t m = sets_.first[s]; m < sets_.first[s + 1]; ++m) {
                    require_node(sets_.members[m] >= 0 && sets_.members[m] < most_categories,
                                 "a category is too large");
                    count[0] = std::max(count[0], sets_.members[m] + 1.0);
                }
                columns[key][{key.first, 0, false}];
            } else {
                cuts[key].push_back(nodes_.node[i].threshold);
                columns[key][column_key(i)];
            }
        });
        for (auto& [key, values] : cuts) {
            Feature feature{};
            feature.index = static_cast<std::size_t>(key.first);
            feature.categorical = key.second;
            feature.first_threshold = forest_.thresholds.size();
            feature.first_column = forest_.columns.size();
            if (key.second) {
                feature.n_thresholds = static_cast<std::size_t>(values[0]);
            } else {
                std::sort(values.begin(), values.end());
                values.erase(std::unique(values.begin(), values.end()), values.end());
                feature.n_thresholds = values.size();
                forest_.thresholds.insert(forest_.thresholds.end(), values.begin(), values.end());
            }
            for (auto& [column, place] : columns[key]) {
                place = forest_.columns.size();
                forest_.columns.push_back(make_column(feature, column, values));
                if (key.second)
                    category_columns_[key.first] = place;
                else
                    columns_[column] = place;
            }
            feature.n_columns = forest_.columns.size() - feature.first_column;
            // Categories have two ranks more: for others, and for missing ones.
            forest_.highest_rank = std::max(forest_.highest_rank, feature.n_thresholds + (key.second ? 1 : 0));
            features_[key] = forest_.features.size();
            forest_.features.push_back(feature);
        }
        require_node(forest_.highest_rank <= 65535 && forest_.columns.size() <= 65535,
                     "more than 65535 thresholds of a feature, or columns");
        forest_.words_per_set = forest_.highest_rank / 64 + 1;
    }

    Column make_column(const Feature& feature, const ColumnKey& key, const std::vector<double>& values) const {
        Column column{};
        const auto highest = static_cast<std::uint16_t>(feature.n_thresholds);
        if (feature.categorical) {
            column.nan_rank = static_cast<std::uint16_t>(highest + 1);
            column.categorical = true;
            return column;
        }
        const auto kind = static_cast<Missing>(std::get<1>(key));
        const std::uint16_t side = std::get<2>(key) ? 0 : highest;
        const auto zero = std::lower_bound(values.begin(), values.end(), 0.0) - values.begin();
        column.nan_rank = kind == Missing::as_zero ? static_cast<std::uint16_t>(zero) : side;
        column.has_zero_rank = kind == Missing::zero;
        column.zero_rank = side;
        return column;
    }

    ColumnKey column_key(std::int64_t i) const {
        const bool undecided = static_cast<Missing>(nodes_.node[i].missing) == Missing::as_zero;
        return {nodes_.node[i].feature, nodes_.node[i].missing, !undecided && nodes_.node[i].default_left != 0};
    }

    template <class Visit>
    void for_splits(Visit visit) const {
        for (std::int64_t i = nodes_.first[0]; i < nodes_.first[nodes_.n_trees]; ++i)
            if (!is_leaf(i)) visit(i);
    }

    void add_tree(std::size_t t) {
        first_ = nodes_.first[t];
        const std::int64_t n = nodes_.first[t + 1] - first_;
        // Children come after their parent, so that one pass from the end sums up the leaves below each node.
        n_leaves_.assign(static_cast<std::size_t>(n), 1);
        depth_.assign(static_cast<std::size_t>(n), 0);
        for (std::int64_t i = n - 1; i >= 0; --i) {
            if (is_leaf(first_ + i)) continue;
            const auto [l, r] = children(i);
            n_leaves_[at(i)] = n_leaves_[at(l)] + n_leaves_[at(r)];
            depth_[at(i)] = depth_[at(l)] == depth_[at(r)] ? depth_[at(l)] + 1 : std::max(depth_[at(l)], depth_[at(r)]);
        }
        Tree tree{};
        tree.n_inner = n_leaves_[0] - 1;
        tree.first_step = forest_.steps.size();
        tree.first_down = forest_.down.size();
        tree.first_value = forest_.values.size();
        const std::int32_t highest = add_values(n);
        add_down(tree);
        tree.only_leaf = forest_.down[tree.first_down].threshold;
        tree.evaluated = n_leaves_[0] <= most_evaluated_leaves && highest <= most_evaluated_number;
        if (tree.evaluated) {
            evaluate(tree, 0, 0);
            forest_.n_numbers = std::max(forest_.n_numbers, static_cast<std::size_t>(highest) + 1);
        }
        tree.n_steps = forest_.steps.size() - tree.first_step;
        forest_.trees.push_back(tree);
    }

    // Puts the values of the leaves where their numbers say; returns the highest number.
    std::int32_t add_values(std::int64_t n) {
        const std::size_t begin = forest_.values.size();
        std::int32_t highest = 0;
        for (std::int64_t i = first_; i < first_ + n; ++i) {
            if (!is_leaf(i)) continue;
            require_node(nodes_.node[i].number >= 0 && nodes_.node[i].number <= 65535,
                         "a leaf's number is above 65535");
            highest = std::max(highest, nodes_.node[i].number);
        }
        forest_.values.resize(begin + static_cast<std::size_t>(highest) + 1);
        for (std::int64_t i = first_; i < first_ + n; ++i)
            if (is_leaf(i))
                forest_.values[begin + static_cast<std::size_t>(nodes_.node[i].number)] = nodes_.node[i].value;
        forest_.highest_number = std::max(forest_.highest_number, static_cast<std::size_t>(highest));
        return highest;
    }

    // Numbers inner nodes from the root on, a left subtree before the right one, and leaves behind them.
    void add_down(Tree& tree) {
        std::vector<std::int64_t> open = {0}, inner, leaves;
        place_.assign(n_leaves_.size(), 0);
        while (!open.empty()) {
            const std::int64_t i = open.back();
            open.pop_back();
            if (is_leaf(first_ + i)) {
                place_[at(i)] = tree.n_inner + static_cast<std::int32_t>(leaves.size());
                leaves.push_back(i);
                continue;
            }
            place_[at(i)] = static_cast<std::int32_t>(inner.size());
            inner.push_back(i);
            const auto [l, r] = children(i);
            open.push_back(r);
            open.push_back(l);
        }
        for (const std::int64_t i : inner) {
            const auto [l, r] = children(i);
            tree.categorical |= is_categorical(first_ + i);
            forest_.down.push_back({column_of(first_ + i), threshold_of(first_ + i), {place_[at(l)], place_[at(r)]}});
        }
        for (const std::int64_t i : leaves)
            forest_.down.push_back(
                {0, static_cast<std::uint16_t>(nodes_.node[first_ + i].number), {place_[at(i)], place_[at(i)]}});
    }

    // The child that needs more slots comes first, so that the slots never exceed the logarithm of the leaves.
    void evaluate(const Tree& tree, std::int64_t i, std::uint8_t slot) {
        if (is_leaf(first_ + i)) return;
        const auto [l, r] = children(i);
        const bool left_first = depth_[at(l)] >= depth_[at(r)];
        const std::int64_t first = left_first ? l : r, second = left_first ? r : l;
        evaluate(tree, first, slot);
        const auto next = static_cast<std::uint8_t>(is_leaf(first_ + first) ? slot : slot + 1);
        evaluate(tree, second, next);
        const DownNode& node = forest_.down[tree.first_down + static_cast<std::size_t>(place_[at(i)])];
        const auto operand = [&](std::int64_t child, std::uint8_t result) {
            return is_leaf(first_ + child) ? static_cast<std::uint16_t>(nodes_.node[first_ + child].number) : result;
        };
        Step step{};
        step.column = node.column;
        step.threshold = node.threshold;
        step.categorical = is_categorical(first_ + i);
        step.dst = slot;
        step.a = operand(l, left_first ? slot : next);
        step.b = operand(r, left_first ? next : slot);
        step.a_stride = !is_leaf(first_ + l);
        step.b_stride = !is_leaf(first_ + r);
        forest_.steps.push_back(step);
        require_node(slot < most_results, "a tree needs too many results at the same time");
    }

    // From numbers of results and of leaves to slots, once it is known how many slots a result takes.
    void place_slots() {
        const std::size_t per_result = forest_.slots_per_result();
        const auto place = [&](std::uint16_t at, std::uint8_t stride) {
            return static_cast<std::uint16_t>(stride ? at * per_result : most_results * per_result + at);
        };
        for (Step& step : forest_.steps) {
            step.a = place(step.a, step.a_stride);
            step.b = place(step.b, step.b_stride);
            step.dst = static_cast<std::uint8_t>(step.dst * per_result);
        }
    }

    std::uint16_t column_of(std::int64_t i) const {
        return static_cast<std::uint16_t>(is_categorical(i) ? category_columns_.at(nodes_.node[i].feature)
                                                            : columns_.at(column_key(i)));
    }

    std::uint16_t threshold_of(std::int64_t i) {
        const Feature& feature = forest_.features[features_.at({nodes_.node[i].feature, is_categorical(i)})];
        if (is_categorical(i)) return add_bits(i, feature);
        const auto begin = forest_.thresholds.begin() + static_cast<std::ptrdiff_t>(feature.first_threshold);
        const auto end = begin + static_cast<std::ptrdiff_t>(feature.n_thresholds);
        return static_cast<std::uint16_t>(std::lower_bound(begin, end, nodes_.node[i].threshold) - begin);
    }

    std::uint16_t add_bits(std::int64_t i, const Feature& feature) {
        const std::size_t set = forest_.bits.size() / forest_.words_per_set;
        require_node(set <= 65535, "more than 65536 categorical splits");
        forest_.bits.resize(forest_.bits.size() + forest_.words_per_set);
        std::uint64_t* words = forest_.bits.data() + set * forest_.words_per_set;
        const Reading& reading = forest_.reading;
        const auto put = [&](std::size_t rank, bool left) {
            const std::uint64_t bit = std::uint64_t{1} << (rank % 64);
            if (left)
                words[rank / 64] |= bit;
            else
                words[rank / 64] &= ~bit;
        };
        for (std::size_t rank = 0; rank < feature.n_thresholds; ++rank) put(rank, !reading.members_left);
        const auto s = static_cast<std::size_t>(nodes_.node[i].categories);
        for (std::int64_t m = sets_.first[s]; m < sets_.first[s + 1]; ++m)
            put(static_cast<std::size_t>(sets_.members[m]), reading.members_left);
        const bool missing_left = nodes_.node[i].default_left != 0;
        put(feature.n_thresholds, reading.others_as_missing ? missing_left : !reading.members_left);
        put(feature.n_thresholds + 1, missing_left);
        return static_cast<std::uint16_t>(set);
    }

    std::pair<std::int64_t, std::int64_t> children(std::int64_t i) const {
        return {nodes_.node[first_ + i].left, nodes_.node[first_ + i].right};
    }
    static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

    Nodes nodes_;
    CategorySets sets_;
    Forest forest_;
    std::map<ColumnKey, std::size_t> columns_;
    std::map<std::int32_t, std::size_t> category_columns_;
    std::map<FeatureKey, std::size_t> features_;
    // The tree that is being added.
    std::int64_t first_ = 0;
    std::vector<std::int32_t> n_leaves_, depth_, place_;
};

}  // namespace ibug
