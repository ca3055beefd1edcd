// NumPy arrays as the bindings take them, and the functions that register them in `ibug._core`.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "common/instruction_sets.hpp"
#include "common/matrix.hpp"

namespace ibug {

// Row by row, in the memory of the processor. `const` ones may be read-only, as memory maps are.
template <class T, std::size_t n_dim>
using Array = nanobind::ndarray<T, nanobind::ndim<n_dim>, nanobind::c_contig, nanobind::device::cpu>;

inline void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

inline void require_range(std::size_t start, std::size_t stop, std::size_t n) {
    require(start <= stop && stop <= n, "start and stop must be a range of the rows");
}

// What a kernel sees of an array.
template <class T>
std::span<T> view(const Array<T, 1>& array) {
    return {array.data(), array.size()};
}

template <class T>
Matrix<T> view(const Array<T, 2>& array) {
    return {array.data(), array.shape(0), array.shape(1)};
}

// Rows of an array of three dimensions, (n, a, b), as (n, a · b).
template <class T>
Matrix<T> view(const Array<T, 3>& array) {
    return {array.data(), array.shape(0), array.shape(1) * array.shape(2)};
}

template <class AnyArray>
bool is_aligned(const AnyArray& array) {
    return reinterpret_cast<std::uintptr_t>(array.data()) % alignof(typename AnyArray::Scalar) == 0;
}

template <class Functions>
void register_instruction_sets(nanobind::module_& m, const Tables<Functions>& tables) {
    m.def(
        "instruction_sets", [&tables] { return tables.names(); },
        "The instruction sets that this build and this machine share, best last.");
}

// Each in a source file of its own, see core.cpp.
void register_search(nanobind::module_& m);
void register_walk(nanobind::module_& m);
void register_likelihood(nanobind::module_& m);
void register_mixtures(nanobind::module_& m);
void register_experts(nanobind::module_& m);
void register_spread(nanobind::module_& m);
void register_refit(nanobind::module_& m);

}  // namespace ibug
