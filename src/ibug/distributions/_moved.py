"""Densities of distributions whose normal scores are moved by a map, as conformal calibration does."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from ibug._typing import Floats

if TYPE_CHECKING:
    from ibug.distributions._stack import Stack

_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
_FARTHEST = 1e150  # its square is finite
_UNRESOLVED = 38.0  # a score whose probability is about the smallest number above zero; it stands for infinite ones


class Move(Protocol):
    """An increasing map of standard normal values: what had the score w has the score v afterwards."""

    def forward(self, v: Floats) -> Floats:
        """Return the scores w before the move."""

    def inverse(self, w: Floats) -> Floats:
        """Return the scores v after the move."""

    def slope_at(self, v: Floats) -> Floats:
        """Return dw/dv."""


def log_slope(move: Move, w: Floats) -> Floats:
    """Return log dΦ(v)/dΦ(w): by how much the move changes a density at scores w."""
    w = np.clip(np.where(np.isinf(w), np.copysign(_UNRESOLVED, w), w), -_FARTHEST, _FARTHEST)
    v = np.clip(move.inverse(w), -_FARTHEST, _FARTHEST)
    return np.asarray(0.5 * (w - v) * (w + v) - np.log(move.slope_at(v)))


def log_moved_density(move: Move, w: Floats) -> Floats:
    """Return log dΦ(v)/dw: the density of scores w after the move."""
    v = np.clip(move.inverse(w), -_FARTHEST, _FARTHEST)
    return np.asarray(-0.5 * np.square(v) - _HALF_LOG_2PI - np.log(move.slope_at(v)))


def moved_log_density(stack: Stack, x: Floats, move: Move) -> Floats:
    """Return the log density of stacks after a move, (n, m).

    F has jumps. Each of them gets the probability that it has after the move, and becomes a kernel as in ``Stack.pdf``;
    between them, the density of the normal part is changed by the move.

    Shapes: x (n, m).
    """
    blend, (low, high) = stack.blend, stack.blend.support
    loc, scale = stack.loc[:, None], stack.scale[:, None]
    impossible = (x < low) | (x > high) | np.isinf(x)
    x = np.where(impossible, np.clip(loc, low, high), x)
    jumps = _jumps_of(stack)
    z = (jumps.places - loc) / scale
    normal = blend.weights[0]
    masses = _moved_masses(jumps, normal * ndtr(z), normal * ndtr(-z), move, (low > -np.inf, high < np.inf))
    with np.errstate(divide="ignore"):
        log_normal = np.log(normal)
    z = np.clip((x - loc) / scale, -_FARTHEST, _FARTHEST)
    total = log_normal - 0.5 * np.square(z) - np.log(scale) - _HALF_LOG_2PI
    total = np.where(np.isneginf(total), total, total + log_slope(move, stack.middle_score(x)))
    for errors, bandwidth in ((True, blend.error_bandwidth), (False, blend.bandwidth)):
        part = np.where(jumps.is_error == errors, masses, 0.0)
        share = part.sum(axis=1, keepdims=True)
        if (share > 0).any():
            part[share[:, 0] == 0] = 1.0  # of a row without such jumps: any, as their share is none
            found = stack.kernel_logpdf(jumps.places, part, bandwidth, x, tailed=errors)
            with np.errstate(divide="ignore"):
                total = np.logaddexp(total, np.log(share) + found)
    return np.where(impossible, -np.inf, total)


class _Jumps(NamedTuple):
    """The jumps of distribution functions, (n, j) each, ascending in each row."""

    places: Floats
    masses: Floats  # probabilities, without those of the normal part beyond the ends of the support
    is_error: NDArray[np.bool_]  # from pooled errors; the others are atoms, or ends of the support


def _jumps_of(stack: Stack) -> _Jumps:
    blend, n = stack.blend, len(stack)
    ends = [end for end in blend.support if np.isfinite(end)]
    errors = stack.loc[:, None] + stack.scale[:, None] * blend.errors
    share = stack.masses.astype(np.float64)
    share *= blend.weights[2] / np.maximum(share.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    places = np.concatenate([np.tile(ends, (n, 1)), errors, stack.atoms], axis=1)
    each = blend.weights[1] / max(errors.shape[1], 1)
    masses = np.concatenate([np.zeros((n, len(ends))), np.full(errors.shape, each), share], axis=1)
    is_error = np.zeros(places.shape, np.bool_)
    is_error[:, len(ends) : len(ends) + errors.shape[1]] = True
    places = np.clip(places, *blend.support)
    order = np.argsort(places, axis=1, kind="stable")
    return _Jumps(*(np.take_along_axis(part, order, 1) for part in (places, masses, is_error)))


def _moved_masses(jumps: _Jumps, below: Floats, above: Floats, move: Move, bounded: tuple[bool, bool]) -> Floats:
    """Return the probabilities of the jumps after the move, (n, j). Shapes: below, above (n, j)."""
    up, down = np.cumsum(jumps.masses, axis=1), np.cumsum(jumps.masses[:, ::-1], axis=1)[:, ::-1]
    before = _scores(below + up - jumps.masses, above + down)
    after = _scores(below + up, above + down - jumps.masses)
    if bounded[0]:
        before[:, 0] = -np.inf
    if bounded[1]:
        after[:, -1] = np.inf
    first, last = move.inverse(before), move.inverse(after)
    moved = np.where(last < 0, ndtr(last) - ndtr(first), ndtr(-first) - ndtr(-last))
    return np.asarray(np.maximum(moved, 0.0))


def _scores(below: Floats, above: Floats) -> Floats:
    """Return the normal scores from the smaller one of both tails; rounding may have made it negative."""
    tail = ndtri(np.clip(np.minimum(below, above), 0.0, 0.5))
    return np.asarray(np.where(below < above, tail, -tail))
