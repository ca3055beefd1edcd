// Arrays as the kernels see them: std::span for one dimension, Matrix for two.
#pragma once

#include <cstddef>
#include <span>

namespace ibug {

// Numbers of rows of the same width, row after row.
template <class T>
struct Matrix {
    T* data;
    std::size_t n_rows, width;

    std::span<T> operator[](std::size_t row) const { return {data + row * width, width}; }
};

}  // namespace ibug
