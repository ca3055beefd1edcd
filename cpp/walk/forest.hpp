// A model's trees, made ready to be walked by many rows at once.
//
// A split compares one feature with a threshold. All thresholds of a feature, sorted, cut its values into ranks, and
// x <= threshold[i] holds just where rank(x) <= i. So a row is turned into ranks once, of 8 bits where no feature has
// more than 255 thresholds, and all trees then compare small integers: 64 rows in one instruction with AVX-512.
//
// Where a missing value goes is the node's own choice. A feature therefore has one *column* of ranks for each such
// choice that occurs: in one the missing value has the rank 0, which goes left everywhere, in another the highest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ibug {

// What a split does with a missing value, and what counts as one.
enum class Missing : std::uint8_t {
    as_zero = 0,  // NaN is read as 0
    zero = 1,     // 0 and NaN go to the default side
    nan = 2,      // NaN goes to the default side
};

// A node as the libraries' model files have it. Python makes these records with NumPy: see ibug/leaves/_walk.py.
struct Node {
    double threshold;  // of a split: rows with feature <= threshold go left
    double value;      // of a leaf
    std::int32_t feature;
    std::int32_t left, right;  // numbers within the tree; left is -1 for a leaf
    std::int32_t categories;   // number of the split's set of categories, -1 for a threshold
    std::int32_t number;       // of a leaf, as the library numbers it
    std::uint8_t missing;      // see Missing
    std::uint8_t default_left;
};
static_assert(sizeof(Node) == 40);

// The nodes of all trees. Tree t has those from first[t] to first[t + 1]; its root is the first.
struct Nodes {
    std::size_t n_trees;
    const std::int64_t* first;
    const Node* node;

    bool is_leaf(std::int64_t i) const { return node[i].left < 0; }
};

// Sets of categories: set s is members[first[s]] to members[first[s + 1]].
// A feature has at least n_categories[feature] categories, whether or not they are members of a set.
struct CategorySets {
    std::size_t n_sets;
    const std::int64_t* first;
    const std::int32_t* members;
    const std::int32_t* n_categories;
};

// How a library reads a row.
struct Reading {
    std::size_t n_features = 0;
    bool single = false;             // values are rounded to single precision
    bool tiny_is_zero = false;       // values up to 1e-35 are read as 0
    bool refuse_infinite = false;    // rows with infinite values are not walked
    bool single_sums = false;        // leaf values are added in single precision
    bool members_left = true;        // a split's categories go left, others right; or the other way round
    bool others_as_missing = false;  // categories unknown to the model go where a missing value goes
    bool truncated = false;          // -0.5 is the category 0; else no category is below 0
    double missing = std::numeric_limits<double>::quiet_NaN();  // a value that stands for a missing one, beside NaN
    double start = 0.0;                                         // what the leaf values are added to
};

inline constexpr std::int32_t most_categories = 1 << 16;
inline constexpr double zero_threshold = static_cast<double>(1e-35f);

// One feature's cuts, and the columns made from its ranks.
struct Feature {
    std::size_t index;
    bool categorical;
    std::size_t first_threshold, n_thresholds;  // categorical: n_thresholds is the number of categories
    std::size_t first_column, n_columns;
};

struct Column {
    std::uint16_t nan_rank;
    std::uint16_t zero_rank;
    bool has_zero_rank;
    bool categorical;
};

// Rows that pass the trees together.
inline constexpr std::size_t block_rows = 128;
// The bytes of a slot. A block's results take 2 of them where ranks have 8 bits, 4 where they have 16.
inline constexpr std::size_t slot_bytes = 64;
// A tree of 512 leaves needs no more results at the same time: each one more takes twice the leaves.
inline constexpr std::size_t most_results = 10;

// An inner node in the order of evaluation, children first: dst = rank <= threshold ? a : b, where a and b are the
// numbers of the leaves reached below the left and the right child. They begin at a slot; a result goes on in the next
// slot for the next rows (stride 1), while a leaf's number is the same for all rows (stride 0).
struct Step {
    std::uint16_t column;
    std::uint16_t threshold;  // categorical: the number of the bit set within the forest
    std::uint16_t a, b;       // slots
    std::uint8_t a_stride, b_stride;
    std::uint8_t dst;  // slot
    bool categorical;
};

// A node for walking down one by one: child[rank > threshold]. Leaves lead to themselves; their threshold is their
// number.
struct DownNode {
    std::uint16_t column;
    std::uint16_t threshold;
    std::int32_t child[2];
};

struct Tree {
    std::size_t first_step, n_steps;  // empty for a tree that is only walked down
    std::size_t first_down;           // into Forest::down
    std::size_t first_value;          // into Forest::values, which a leaf's number then indexes
    std::int32_t n_inner;
    std::uint16_t only_leaf;  // the number of the leaf where there is no split
    bool categorical;         // has a categorical split
    bool evaluated;           // all nodes for all rows, rather than down
};

struct Forest {
    Reading reading;
    std::vector<double> thresholds;
    std::vector<Feature> features;
    std::vector<Column> columns;
    std::vector<Tree> trees;
    std::vector<Step> steps;
    std::vector<DownNode> down;
    std::vector<double> values;
    std::vector<std::uint64_t>
        bits;  // words_per_set words for each categorical split: bit c is set where rank c goes left
    std::size_t words_per_set = 0;
    std::size_t n_numbers = 1;  // slots for leaves' numbers, which come after those for results
    std::size_t highest_rank = 0;
    std::size_t highest_number = 0;
    bool oblivious = false;

    bool fits_bytes() const { return highest_rank <= 255 && highest_number <= 255; }
    std::size_t slots_per_result() const { return block_rows * (fits_bytes() ? 1 : 2) / slot_bytes; }
    bool goes_left(std::size_t set, std::size_t rank) const {
        return bits[set * words_per_set + rank / 64] >> (rank % 64) & 1;
    }
};

}  // namespace ibug
