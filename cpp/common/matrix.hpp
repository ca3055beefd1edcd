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
    Matrix rows(std::size_t start, std::size_t stop) const { return {data + start * width, stop - start, width}; }
};

}  // namespace ibug
