// Searches with the loops of the baseline (SSE2 on x86-64, NEON on 64-bit ARM), with plain ones, and by brute force:
// all must find the same neighbours. `test_loops.py` compiles and runs this program, also for ARM, by an emulator.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "search/cells.hpp"
#include "search/codes.hpp"
#include "search/index.hpp"
#include "search/layout.hpp"
#include "search/loops.hpp"

namespace {

using namespace ibug;

using Leaves = std::vector<std::int32_t>;  // (n, n_trees)

struct Neighbors {
    std::vector<std::int32_t> affinities;  // (n_queries, k)
    std::vector<std::int64_t> rows;

    Neighbors(std::size_t n_queries, std::size_t k) : affinities(n_queries * k, -7), rows(n_queries * k, -7) {}
    // The first k of all.
    Neighbors first(std::size_t n_queries, std::size_t n_rows, std::size_t k) const {
        Neighbors found(n_queries, k);
        for (std::size_t q = 0; q < n_queries; ++q) {
            std::copy_n(affinities.data() + q * n_rows, k, found.affinities.data() + q * k);
            std::copy_n(rows.data() + q * n_rows, k, found.rows.data() + q * k);
        }
        return found;
    }
    bool operator==(const Neighbors&) const = default;
};

// The definition of an affinity, and the total order of neighbours.
Neighbors by_brute_force(const Leaves& train, const Leaves& queries, std::size_t n_trees) {
    const std::size_t n_rows = train.size() / n_trees, n_queries = queries.size() / n_trees;
    Neighbors found(n_queries, n_rows);
    for (std::size_t q = 0; q < n_queries; ++q) {
        std::vector<std::pair<std::int32_t, std::int64_t>> all;  // minus the affinity, and the row
        for (std::size_t r = 0; r < n_rows; ++r) {
            std::int32_t shared = 0;
            for (std::size_t t = 0; t < n_trees; ++t) shared += train[r * n_trees + t] == queries[q * n_trees + t];
            all.emplace_back(-shared, static_cast<std::int64_t>(r));
        }
        std::sort(all.begin(), all.end());
        for (std::size_t i = 0; i < n_rows; ++i) {
            found.affinities[q * n_rows + i] = -all[i].first;
            found.rows[q * n_rows + i] = all[i].second;
        }
    }
    return found;
}

// An index with cells around every seventh row, and the arrays that it looks at.
template <class Code>
class MadeIndex {
   public:
    MadeIndex(const Leaves& train, std::size_t n_trees, std::size_t width)
        : n_rows_(train.size() / n_trees), numbering_(n_trees * width, unseen), counts_(n_trees, 0),
          tiles_(n_tiles_of(n_rows_) * padded_trees(n_trees) * tile_rows + 64, Code{0}), order_(n_rows_) {
        const Matrix<const std::int32_t> leaves{train.data(), n_rows_, n_trees};
        number_leaves(leaves, {numbering_.data(), n_trees, width}, counts_);
        const Numbering numbering{{numbering_.data(), n_trees, width}};
        pack_rows(leaves, numbering, 0, tiles_.data());
        std::iota(order_.begin(), order_.end(), 0u);
        const std::size_t n_cells = (n_rows_ + 6) / 7;
        prototypes_.assign(n_tiles_of(n_cells) * padded_trees(n_trees) * tile_rows + 64, Code{0});
        Leaves first;
        for (std::size_t c = 0; c < n_cells; ++c)
            first.insert(first.end(), train.begin() + static_cast<std::ptrdiff_t>(7 * c * n_trees),
                         train.begin() + static_cast<std::ptrdiff_t>((7 * c + 1) * n_trees));
        pack_rows({first.data(), n_cells, n_trees}, numbering, 0, prototypes_.data());
        cell_order_.resize(n_cells);
        std::iota(cell_order_.begin(), cell_order_.end(), 0u);
        const Tiles<Code> prototypes{prototypes_.data(), n_cells, n_trees, cell_order_.data()};
        std::vector<std::int64_t> cells(n_rows_);
        nearest_prototypes<Code>({tiles_.data(), n_rows_, n_trees, order_.data()}, prototypes, 0, n_rows_, cells,
                                 baseline::loops);
        std::stable_sort(order_.begin(), order_.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return cells[a] < cells[b]; });
        permute_rows<Code>(tiles_.data(), n_trees, order_, n_trees);
        starts_.assign(n_cells + 1, 0);
        for (const std::int64_t cell : cells) ++starts_[static_cast<std::size_t>(cell) + 1];
        std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
        index_.emplace(Tiles<Code>{tiles_.data(), n_rows_, n_trees, order_.data()}, numbering, counts_,
                       Cells<Code>{prototypes, starts_});
    }

    const Index<Code>& index() const { return *index_; }
    std::size_t n_tiles() const { return n_tiles_of(n_rows_); }

   private:
    std::size_t n_rows_;
    std::vector<std::int32_t> numbering_, counts_;
    std::vector<Code> tiles_, prototypes_;
    std::vector<std::uint32_t> order_, cell_order_, starts_;
    std::optional<Index<Code>> index_;
};

std::size_t n_failed = 0, n_compared = 0;

void compare(const Neighbors& found, const Neighbors& expected, const char* what, const char* name, const char* set) {
    ++n_compared;
    if (found == expected) return;
    ++n_failed;
    std::printf("FAILED: %s, %s, %s\n", name, what, set);
}

template <class Code>
void check(const char* name, const Leaves& train, const Leaves& queries, std::size_t n_trees, std::size_t width) {
    const std::size_t n_rows = train.size() / n_trees, n_queries = queries.size() / n_trees;
    const MadeIndex<Code> made(train, n_trees, width);
    const std::size_t n_tiles = made.n_tiles();
    const Neighbors all_rows = by_brute_force(train, queries, n_trees);
    const Matrix<const std::int32_t> leaves{queries.data(), n_queries, n_trees};
    const auto results = [](Neighbors& of, std::size_t n, std::size_t k) {
        return Results{{of.affinities.data(), n, k}, {of.rows.data(), n, k}};
    };
    for (const std::size_t k : {std::size_t{1}, std::min<std::size_t>(n_rows, 7), n_rows}) {
        for (const Loops* loops : {&baseline::loops, &scalar::loops}) {
            const char* set = name_of(loops->set);
            // Many queries, which share bitmaps; few; and each alone. The latter are asked about the first ones only.
            for (const std::size_t at_a_time : {n_queries, std::size_t{5}, std::size_t{1}}) {
                const std::size_t n_asked = std::min(n_queries, std::max<std::size_t>(at_a_time, 42));
                const Neighbors expected = all_rows.first(n_asked, n_rows, k);
                Neighbors scanned(n_asked, k), by_cells(n_asked, k);
                std::vector<std::int64_t> visited(n_queries);
                for (std::size_t q = 0; q < n_asked; q += at_a_time) {
                    const Range range{q, std::min(n_asked, q + at_a_time), 0, n_tiles};
                    made.index().scan(leaves, range, results(scanned, n_asked, k), *loops);
                    made.index().search(leaves, range, n_rows, results(by_cells, n_asked, k), visited, *loops);
                }
                compare(scanned, expected, "scan", name, set);
                compare(by_cells, expected, "all cells", name, set);
            }
        }
    }
}

Leaves drawn(std::mt19937& random, std::size_t n, std::size_t n_trees, std::int32_t n_leaves) {
    Leaves leaves(n * n_trees);
    for (std::int32_t& leaf : leaves) leaf = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(n_leaves));
    return leaves;
}

template <class Code>
void check_drawn(const char* name, std::size_t n_rows, std::size_t n_trees, std::int32_t n_leaves) {
    std::mt19937 random(static_cast<unsigned>(n_rows * 31 + n_trees));
    const Leaves train = drawn(random, n_rows, n_trees, n_leaves);
    Leaves queries = drawn(random, 270, n_trees, n_leaves + 2);       // some leaves have no training rows
    for (std::size_t i = 0; i < n_trees; ++i) queries[i] = train[i];  // the first query is the first row's twin
    check<Code>(name, train, queries, n_trees, static_cast<std::size_t>(n_leaves) + 2);
}

}  // namespace

int main() {
    check_drawn<std::uint8_t>("one row", 1, 9, 4);
    check_drawn<std::uint8_t>("one tree", 300, 1, 5);
    check_drawn<std::uint8_t>("one leaf", 70, 6, 1);
    check_drawn<std::uint8_t>("two leaves: ties", 700, 10, 2);
    check_drawn<std::uint8_t>("31 leaves", 530, 130, 31);
    check_drawn<std::uint8_t>("200 leaves", 513, 40, 200);
    check_drawn<std::uint16_t>("codes of two bytes", 300, 21, 257);
    check_drawn<std::uint32_t>("codes of four bytes", 150, 9, 300);
    check_drawn<std::uint8_t>("several superblocks", 2500, 34, 12);
    {  // All 256 codes are taken, so that leaves without training rows have none; and 257 leaves in wider codes.
        const std::size_t n_trees = 36;
        std::mt19937 random(5);
        for (const std::size_t n_leaves : {std::size_t{256}, std::size_t{257}}) {
            Leaves train(n_leaves * n_trees), queries(512 * n_trees);
            std::vector<std::int32_t> order(n_leaves);
            std::iota(order.begin(), order.end(), 0);
            for (std::size_t t = 0; t < n_trees; ++t) {
                std::shuffle(order.begin(), order.end(), random);
                for (std::size_t r = 0; r < n_leaves; ++r) train[r * n_trees + t] = order[r];
                for (std::size_t q = 0; q < 512; ++q)
                    queries[q * n_trees + t] = static_cast<std::int32_t>((q * 7 + t) % (n_leaves + 3));
            }
            if (n_leaves == 256)
                check<std::uint8_t>("256 leaves", train, queries, n_trees, n_leaves + 3);
            else
                check<std::uint16_t>("257 leaves", train, queries, n_trees, n_leaves + 3);
        }
    }
    {  // Rows that are all the same: the row number alone decides.
        const std::size_t n_trees = 113;
        const Leaves train(600 * n_trees, 3), queries(270 * n_trees, 3);
        check<std::uint8_t>("all rows the same", train, queries, n_trees, 4);
    }
    std::printf("%zu comparisons, %zu failed; %s\n", n_compared, n_failed,
#if defined(__aarch64__)
                "NEON"
#elif defined(__x86_64__)
                "SSE2"
#else
                "no vectors"
#endif
    );
    return n_failed == 0 ? 0 : 1;
}
