// Elementary functions without branches or tables, so that a compiler turns loops over them into vector instructions.
// Each is right to a few units in the last place.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/target.hpp"

namespace ibug::IBUG_TARGET {
namespace {

inline double bits_to_double(std::uint64_t bits) { return std::bit_cast<double>(bits); }
inline std::uint64_t double_to_bits(double x) { return std::bit_cast<std::uint64_t>(x); }

// Horner's rule by recursion, since a loop of more than 16 rounds is not unrolled.
template <std::size_t from = 0, std::size_t n>
inline double polynomial(const double (&coefficients)[n], double x) {
    if constexpr (from + 1 == n)
        return coefficients[from];
    else
        return polynomial<from + 1>(coefficients, x) * x + coefficients[from];
}

// exp x, for x between -708 and 709; beyond, its value there.
inline double vector_exp(double x) {
    x = x < -708.0 ? -708.0 : x;
    x = x > 709.0 ? 709.0 : x;
    // x = n log 2 + r with |r| <= log(2)/2. Adding 1.5 · 2^52 rounds, and leaves n in the lowest bits.
    constexpr double shift = 0x1.8p52;
    const double shifted = x * 0x1.71547652b82fep0 + shift;
    const double n = shifted - shift;
    const double r = (x - n * 0x1.62e42fefa3800p-1) - n * 0x1.ef35793c76730p-45;  // log 2 in two parts
    constexpr double series[] = {
        1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
        1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
    return polynomial(series, r) * bits_to_double((double_to_bits(shifted) + 1023) << 52);
}

// 2 artanh s = 2 (s + s³/3 + s⁵/5 + …), for |s| <= (√2 − 1)/(√2 + 1).
inline double twice_artanh(double s) {
    constexpr double series[] = {2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9, 2.0 / 11,
                                 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
    return s * polynomial(series, s * s);
}

// x = 2^e m with m between √½ and √2: the bits of x with the exponent field e + 1023.
constexpr std::uint64_t root_half_bits = 0x3fe6a09e667f3bcd, one_bits = 0x3ff0000000000000;

inline std::uint64_t biased_exponent(double x) { return (double_to_bits(x) + (one_bits - root_half_bits)) >> 52; }

// e log 2 + rest, from the biased exponent.
inline double scaled_log(std::uint64_t biased, double rest) {
    const double e = bits_to_double(biased | 0x4330000000000000) - (0x1p52 + 1023.0);
    return e * 0x1.62e42fefa3800p-1 + (rest + e * 0x1.ef35793c76730p-45);
}

// log x, for positive normal x.
inline double vector_log(double x) {
    const std::uint64_t biased = biased_exponent(x);
    const double m = bits_to_double(double_to_bits(x) - ((biased - 1023) << 52));
    return scaled_log(biased, twice_artanh((m - 1.0) / (m + 1.0)));
}

// log(x / unit), for positive normal numbers, exact to rounding also where both are nearly the same.
inline double vector_log_ratio(double x, double unit, double inverse_of_unit) {
    const std::uint64_t biased = biased_exponent(x * inverse_of_unit);
    const double m = bits_to_double(double_to_bits(x) - ((biased - 1023) << 52));
    return scaled_log(biased, twice_artanh((m - unit) / (m + unit)));
}

// exp(x²) erfc(x), for x >= 0. (1 + 2x) times it is smooth in q = (x − 4)/(x + 4); this is its Chebyshev interpolant
// of degree 24, computed with 60 digits (the form is that of Shepherd and Laframboise, 1981).
inline double vector_erfcx(double x) {
    constexpr double series[] = {
        1.2329951186255526,      -0.13962111684056228,    0.015379652102619974,   0.06809705425466839,
        -0.10103906603631811,    0.09373283499911264,     -0.06633036581186058,   0.037167515526338006,
        -0.01619773406293477,    0.005031970069102256,    -0.0007577732435942576, -0.00019925715247265182,
        0.00015062142608651943,  -2.4397731143023207e-05, -1.122113566596582e-05, 5.706578299240578e-06,
        2.917342557307324e-07,   -8.210647933295337e-07,  7.771943241107267e-08,  1.0631817593802735e-07,
        -2.0725802488338876e-08, -1.2338731403731052e-08, 3.2323973445768096e-09, 9.297625263582148e-10,
        -2.7641202338643884e-10};
    return polynomial(series, (x - 4.0) / (x + 4.0)) / (1.0 + 2.0 * x);
}

// log Φ(u) and φ(u)/Φ(u) of the standard normal distribution.
struct NormalTail {
    double log_cdf;
    double ratio;
};

inline NormalTail normal_tail(double u) {
    constexpr double root_half = 0.70710678118654752, root_two_over_pi = 0.79788456080286536;
    const double x = std::fabs(u) * root_half;
    const double scaled = vector_erfcx(x);  // Φ(−|u|) = scaled · exp(−u²/2) / 2
    const double half_square = 0.5 * u * u;
    const double gauss = vector_exp(-half_square);
    const double above = 1.0 - 0.5 * scaled * gauss;
    // Products with 0 and 1, since compilers turn three choices by one condition into a branch.
    const double positive = 0.5 + std::copysign(0.5, u), negative = 1.0 - positive;
    const double logarithm = vector_log(0.5 * negative * scaled + positive * above);
    return {logarithm - negative * half_square,
            root_two_over_pi * (negative + 0.5 * positive * gauss) / (negative * scaled + positive * above)};
}

}  // namespace
}  // namespace ibug::IBUG_TARGET
