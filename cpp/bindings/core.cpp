// The extension module `ibug._core`. Its kernels take arrays, start, stop and out, check that these fit together,
// release the GIL and run in the caller's thread: threads, chunks and shards are made in Python.
#include <nanobind/nanobind.h>

#include "bindings/common.hpp"

namespace nb = nanobind;

NB_MODULE(_core, m) {
    m.doc() = "What is compiled of ibug; import it from ibug._compiled.";

    nb::module_ search = m.def_submodule("search", "Leaf codes and affinity search: ibug.LeafIndex.");
    ibug::register_search(search);

    nb::module_ walk = m.def_submodule("walk", "Trees of any library, walked by many rows at once: ibug.leaves.");
    ibug::register_walk(walk);

    nb::module_ likelihood = m.def_submodule("likelihood", "Families fitted to rows of values: ibug.distributions.");
    ibug::register_likelihood(likelihood);

    nb::module_ stack = m.def_submodule("stack", "Mixtures, and the experts they are made of: ibug.rule.");
    ibug::register_mixtures(stack);
    ibug::register_experts(stack);

    nb::module_ spread = m.def_submodule("spread", "Variances of neighbours' values: ibug.rule.");
    ibug::register_spread(spread);

    nb::module_ refit = m.def_submodule("refit", "Leaf values without the row itself: ibug.training.");
    ibug::register_refit(refit);
}
