"""What must hold of every regressor, whatever its options: `check` raises BrokenError where something does not."""

import pickle
import tempfile
import warnings
from copy import copy
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr
from scipy.stats import betabinom

import ibug
from benchmarks.fuzz.options import SMOOTH
from ibug.distributions import JointStack
from ibug.exceptions import NarrowWarning, TooFewRowsWarning

#: The number of rows for what takes long: moments, which some distributions integrate over.
N_FEW = 8
LEVELS = np.array([0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999])
COVERAGES = (0.5, 0.9)
#: The probability with which coverage by chance is outside the limits, in a case where it is guaranteed.
RARE = 1e-8
_NODES, _WEIGHTS = leggauss(3)
_MANY_NODES, _MANY_WEIGHTS = leggauss(20)


class BrokenError(Exception):
    """Something that must hold does not."""


def require(holds, what, *values):
    """Raise BrokenError unless it holds, for every row, with the values of the first row where it does not."""
    bad = ~np.atleast_1d(np.asarray(holds, bool))
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        arrays = [np.atleast_1d(np.asarray(value)) for value in values]
        shown = [array[at] if array.shape == bad.shape else array.ravel()[:9] for array in arrays]
        raise BrokenError(f"{what}: {bad.sum()} of {bad.size}, first at {tuple(map(int, at))}; {shown}")


def same(one, other, what):
    """Require that arrays are equal bit for bit."""
    require(np.shape(one) == np.shape(other), f"{what}: shapes {np.shape(one)} and {np.shape(other)}")
    require((np.asarray(one) == other) | (np.isnan(one) & np.isnan(other)), what, one, other)


def check(case, u):
    """Check a fitted regressor; return the number of new rows inside 90 % intervals, None where it says nothing."""
    (X, _), _, (X_new, y_new) = case.rows
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ends = u.predict_interval(X_new)
    too_few = any(issubclass(one.category, TooFewRowsWarning | NarrowWarning) for one in told)
    require(np.isfinite(ends) | too_few, "an interval is infinite, and no warning says why", ends)
    same(u.predict(X_new), u.estimator_.predict(X_new).reshape(y_new.shape), "predict is not the model's own")
    d = u.predict_dist(X_new)
    check_answers(u, X_new, d, ends)
    check_copies(case, u, X_new)
    if isinstance(d, JointStack):
        check_joint(u, X_new, d, y_new)
        return None
    heavy = u.conformal_ is not None or u.distribution_ == "student_t"
    check_distribution(d, y_new, u.support_, heavy=heavy)
    check_parts(u, X_new, d)
    require(len(u.training_targets_) >= len(X) * 0.5, "training rows are missing", len(u.training_targets_))
    if not case.guarantees:
        return None
    inside = int(np.sum((ends[:, 0] <= y_new) & (y_new <= ends[:, 1])))
    check_coverage(case, u, inside, len(y_new))
    return inside


def check_answers(u, X, d, ends):
    """Require that the methods of the regressor answer what its distributions say."""
    p = np.array([0.05, 0.5, 0.95])
    few = X[:N_FEW]
    quantiles = u.predict_quantiles(few, p)
    if isinstance(d, JointStack):
        if u.conformal_ is None:
            same(ends, np.stack(d.interval(0.9), axis=-1), "predict_interval is not d.interval")
        return
    same(ends, np.stack(d.interval(0.9), axis=-1), "predict_interval is not d.interval")
    same(quantiles, d[:N_FEW].ppf(p[None]), "predict_quantiles is not d.ppf")
    known, found = d[:N_FEW].var(), u.predict_var(few)
    least = np.square(1e3 * np.spacing(np.abs(d[:N_FEW].median())))  # where all values are the same
    infinite = np.isinf(known) & (known == found)
    require(infinite | ~(np.abs(found - known) > 1e-6 * known + least), "predict_var is not d.var", found, known)
    several = u.predict_interval(few, coverage=[0.5, 0.9])
    same(several[:, :, 1], ends[:N_FEW], "of several coverages")
    if u.conformal_ is None:
        same(d.interval(0.9)[0], d.ppf((1 - 0.9) / 2), "the lower end is not the quantile")
        same(d.interval(0.9)[1], d.ppf((1 + 0.9) / 2), "the upper end is not the quantile")
    wide = np.nan_to_num(several[:, 1, :] - several[:, 0, :], posinf=np.inf)
    require(several[:, 0, 0] >= several[:, 0, 1], "intervals are not nested below", *several[:, 0].T)
    require(several[:, 1, 0] <= several[:, 1, 1], "intervals are not nested above", *several[:, 1].T)
    require(wide >= 0, "an upper end is below its lower end", wide)


def check_copies(case, u, X):
    """Require that a file, a pickle and other numbers of threads have the same answers."""
    others = {"a pickle": pickle.loads(pickle.dumps(u)), "n_jobs=2": copy(u).set_params(n_jobs=2)}
    if case.seed % 3 == 0:  # what takes longest
        with tempfile.TemporaryDirectory() as folder:
            u.save(Path(folder) / "model.ibug")
            others["a file"] = ibug.load(Path(folder) / "model.ibug")
    expected = _answers(u, X[:N_FEW])
    for way, other in others.items():
        for name, found in _answers(other, X[:N_FEW]).items():
            same(found, expected[name], f"{name} of {way}")


def _answers(u, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "ends": u.predict_interval(X),
            "quantiles": u.predict_quantiles(X, [0.1, 0.5, 0.9]),
            "variances": u.predict_var(X),
        }


def check_parts(u, X, d):
    """Require that single rows, slices and joined slices are the rows of the batch."""
    p = LEVELS[None]
    whole = d.ppf(p)
    same(d[3].ppf(LEVELS), whole[3], "the quantiles of d[3]")
    same(d[3:9].ppf(p), whole[3:9], "the quantiles of d[3:9]")
    same(type(d).concatenate([d[:5], d[5:]]).ppf(p), whole, "the quantiles of joined parts")
    unit = np.ptp(whole[:12, 1:-1], axis=1) + 1e-9 * np.abs(whole[:12, 4])
    one_by_one = np.concatenate([u.predict_dist(X[i : i + 1]).ppf(p) for i in range(12)])
    require(np.abs(one_by_one - whole[:12]) <= 1e-7 * unit[:, None], "rows asked one by one", one_by_one, whole[:12])
    order = np.arange(len(X))[::-1]
    turned = u.predict_dist(X[order]).ppf(p)[order]
    require(np.abs(turned - whole)[:12] <= 1e-7 * unit[:, None], "rows in another order", turned[:12], whole[:12])


def check_coverage(case, u, inside, n):
    """Compare the coverage of intervals that have a guarantee with limits that chance exceeds in RARE cases."""
    n_maps = u.conformal_.maps_
    own = min(len(one.scores) for one in n_maps)
    if len(n_maps) > 2:  # groups, each of which has rows of its own
        own = min(len(one.scores) for one in n_maps[:-1])
    rank = np.ceil((own + 1) * 0.9 - 1e-9)
    if rank > own:
        return
    least = betabinom.ppf(RARE, n, rank, own + 1 - rank)
    require(inside >= least, f"{inside} of {n} inside 90 % intervals by {own} rows; at least {least:.0f} expected")
    if case.kind in SMOOTH and len(n_maps) <= 2:
        low, high = np.floor((own + 1) * 0.05 + 1e-9), np.ceil((own + 1) * 0.95 - 1e-9)
        rank = rank if n_maps[-1].symmetric else high - low
        most = betabinom.ppf(1 - RARE, n, rank, own + 1 - rank)
        require(inside <= most, f"{inside} of {n} inside 90 % intervals by {own} rows; at most {most:.0f} expected")


def check_distribution(d, y, bounds, *, heavy=False):
    """Require finite, monotone answers inside the bounds, and functions that agree; heavy tails may have no moments."""
    lower, upper = bounds
    p = LEVELS[None]
    quantiles, middle = d.ppf(p), d.median()
    numbers = {"ppf": quantiles, "cdf": d.cdf(y), "sf": d.sf(y), "rvs": d.rvs(7, 0)}
    numbers["crps"] = d[:N_FEW].crps(y[:N_FEW])
    for name, found in numbers.items():
        require(np.isfinite(found), f"{name} is not finite", found)
    for name in ("ppf", "rvs"):
        require((numbers[name] >= lower) & (numbers[name] <= upper), f"{name} is outside {bounds}", numbers[name])
    require(np.diff(quantiles, axis=1) >= 0, "quantiles fall", quantiles[:, 1:])
    require((numbers["cdf"] >= 0) & (numbers["cdf"] <= 1), "cdf is impossible", numbers["cdf"])
    require(numbers["crps"] >= 0, "crps is negative", numbers["crps"])
    require(np.abs(d.cdf(y) + d.sf(y) - 1) < 1e-9, "cdf and sf are not complements", d.cdf(y), d.sf(y))
    same(d.rvs(7, 0), d.rvs(7, np.random.RandomState(0)), "samples of a seed")
    unit = quantiles[:, 7] - quantiles[:, 1]  # from the 1 % to the 99 % quantile
    density = d.logpdf(y)
    require(~np.isnan(density) & (density < 1e4), "logpdf is NaN or infinite", density)
    share = np.mean(d.rvs(400, 1) <= middle[:, None], axis=1)
    require(share > 0.5 - 6 * 0.025, "fewer than half of the samples are at most the median", share)
    moments = np.stack([d[:N_FEW].mean(), d[:N_FEW].var()])
    heavy = heavy and not (np.isfinite(lower) and np.isfinite(upper))
    require(np.isfinite(moments) | heavy, "mean or variance is not finite", moments)
    require(~(moments[1] < 0), "a variance is negative", moments[1])
    require(~(moments[0] < lower) & ~(moments[0] > upper), f"a mean is outside {bounds}", moments[0])
    # F(Q(p)) ≥ p, and F is at most p just below.
    step = 1e-7 * unit[:, None] + 8 * np.spacing(np.abs(quantiles))
    most = np.abs(quantiles) > 1e140  # as far as values go: those of t distributions with few degrees of freedom
    require((d.cdf(quantiles + step) >= p - 1e-6) | most, "cdf(ppf(p)) < p", d.cdf(quantiles + step), quantiles)
    require((d.cdf(quantiles - step) <= p + 1e-6) | most, "cdf before ppf(p) > p", d.cdf(quantiles - step), quantiles)
    before = d.cdf(-np.inf if lower == -np.inf else np.nextafter(lower, -np.inf))
    require(before < 1e-30, "cdf below the support", before)  # heavy tails end where squares would overflow
    require(d.cdf(upper) == 1, "cdf at the upper bound", d.cdf(upper))
    check_integrals(d[:2], y[:2], bounds)
    repr(d), repr(d[0])


def check_integrals(d, y, bounds):
    """Compare the mass of the density, moments and CRPS with integrals over the distribution function."""
    edges = _edges(d, y, bounds)
    half, middle = np.diff(edges, axis=1) / 2, (edges[:, 1:] + edges[:, :-1]) / 2
    x = (middle[:, :, None] + half[:, :, None] * _NODES).reshape(len(edges), -1)
    weights = (half[:, :, None] * _WEIGHTS).reshape(x.shape)
    with np.errstate(all="ignore"):
        mass = _mass(d, edges, x, weights)
        below = d.cdf(x)
        steps = np.where(np.diff(x, axis=1) > 0, np.diff(below, axis=1), 0.0)  # panels of no width may turn round
        require(steps >= -1e-9, "cdf falls", steps)
        above = d.sf(x)
        start = d.median()[:, None]
        mean = start[:, 0] + np.sum(np.where(x < start, -below, above) * weights, axis=1)
        expected = d.mean(), d.var()
        center = expected[0][:, None]
        variance = np.sum(2 * np.abs(x - center) * np.where(x < center, below, above) * weights, axis=1)
        crps = np.sum(np.where(x < y[:, None], below, above) ** 2 * weights, axis=1)
    unit = np.diff(d.ppf(np.array([[0.01, 0.99]])), axis=1)[:, 0] + 1e3 * np.spacing(np.abs(d.median()))
    wide = unit > 1e-7 * np.abs(d.median())  # elsewhere values between have too few digits to be integrated over
    wide &= unit < 1e140  # moments of distributions that go as far as values do are infinite
    wide &= getattr(_innermost(d), "scale", unit) > 1e3 * np.spacing(np.abs(d.median()))
    light = np.diff(d.ppf(np.array([[1e-9, 1 - 1e-9]])), axis=1)[:, 0] < 1e3 * unit
    if not (
        light & wide
    ).all():  # a map that stretches the scores makes heavy tails heavier: see Recalibrated's moments
        return
    require((np.abs(mass - 1) < 0.03) | ~wide, "the density does not integrate to 1", mass)
    error = np.abs(d.crps(y) - crps)
    require(error <= 0.01 * crps + 1e-3 * unit, "crps is not the integral", d.crps(y), crps)
    right = (np.abs(expected[0] - mean) <= 0.01 * unit) | ~np.isfinite(expected[0])
    require(right, "mean is not that of cdf", expected[0], mean)
    std = np.sqrt(expected[1])
    right = (std >= 0.97 * np.sqrt(variance) - 1e-3 * unit) | ~np.isfinite(std)
    require(right, "std is less than that of cdf", std, np.sqrt(variance))


def _mass(d, edges, x, weights):
    """Return the integral of the density; by the distribution function beside a shift, if that says more.

    Calibration may put a large share of the probability between a shift and the floating point numbers next to it.
    A density that is infinite at the shift is integrated over the logarithm of the distance to it.
    """
    shift = getattr(_innermost(d), "shift", np.full(len(edges), np.nan))[:, None]
    in_panels = np.sum((d.pdf(x) * weights).reshape(len(edges), edges.shape[1] - 1, -1), axis=2)
    start, stop = edges[:, :-1] - shift, edges[:, 1:] - shift
    steep = (start > 0) & (stop > 3 * start)
    if steep.any():
        start, stop = np.log(np.where(steep, start, 1.0)), np.log(np.where(steep, stop, 1.0))
        half, middle = (stop - start) / 2, (stop + start) / 2
        distances = np.exp(middle[:, :, None] + half[:, :, None] * _MANY_NODES)
        heights = d.pdf((shift[:, :, None] + distances).reshape(len(edges), -1)).reshape(distances.shape)
        in_panels = np.where(steep, np.sum(heights * distances * _MANY_WEIGHTS, axis=2) * half, in_panels)
    beside = np.diff(d.cdf(edges), axis=1)
    return np.sum(np.where(edges[:, :-1] == shift, np.maximum(in_panels, beside), in_panels), axis=1)


def _innermost(d):
    """Return the distributions before calibration, and without bounds."""
    while hasattr(d, "base"):
        d = d.base
    return d


def _edges(d, y, bounds):
    """Return the ends of panels between which distribution function and density are smooth, (n, m), ascending."""
    inner = _innermost(d)
    scores = np.linspace(-8, 8, 161)
    quantiles = d.ppf(ndtr(scores)[None])
    quantiles = np.concatenate([quantiles, d.from_normal_score(scores[None])], axis=1)
    quantiles = quantiles[:, np.isfinite(quantiles).all(axis=0)]
    unit = np.ptp(d.ppf(np.array([[0.01, 0.99]])), axis=1)[:, None] + 1e3 * np.spacing(np.abs(y))[:, None]
    knots = [d.base.from_normal_score(one.w[None]) for one in getattr(d, "maps", ())]  # where densities jump
    kinks = [getattr(inner, name)[:, None] for name in ("loc", "shift") if hasattr(inner, name)]
    jumps = [y[:, None], *knots, *kinks, d.jumps(), inner.jumps(), getattr(inner, "values", np.empty((len(d), 0)))]
    jumps += [np.full((len(d), 1), bound) for bound in bounds if np.isfinite(bound)]
    places = np.concatenate([np.reshape(part, (len(d), -1)) for part in jumps], axis=1)
    fine = np.geomspace(1e-6, 0.3, 12)
    around = places[:, :, None] + unit[:, :, None] * np.concatenate([-fine[::-1], fine])
    far = np.geomspace(0.1, 1e4, 40)
    ends = [quantiles.min(axis=1, keepdims=True) - unit * far, quantiles.max(axis=1, keepdims=True) + unit * far]
    edges = np.concatenate([quantiles, places, around.reshape(len(d), -1), *ends], axis=1)
    return np.sort(np.clip(edges, *bounds), axis=1)


def check_joint(u, X, d, y):
    """Check each of several targets by itself, and their samples, scores and boxes."""
    for target in range(d.n_targets):
        marginal = d.marginal(target)
        check_distribution(marginal, y[:, target], u.support_[target])
        same(d.ppf(0.9)[:, target], marginal.ppf(0.9), "quantiles of a target by itself")
        same(d.crps(y)[:, target], marginal.crps(y[:, target]), "crps of a target by itself")
    for name, found in (("mean", d.mean()), ("cov", d.cov()), ("rvs", d.rvs(5, 0)), ("energy", d.energy_score(y))):
        require(np.isfinite(found), f"{name} is not finite", found)
    own = np.diagonal(d.cov(), axis1=1, axis2=2)
    least = np.square(1e3 * np.spacing(np.abs(d.median())))  # where all values are the same
    require(np.abs(own - d.var()) <= 1e-6 * d.var() + least, "the diagonal of cov is not var", own, d.var())
    eigenvalues = np.linalg.eigvalsh(d.correlation())
    require(eigenvalues >= -1e-6, "a correlation matrix is not positive", eigenvalues)
    samples = d.rvs(300, 0)
    for target in range(d.n_targets):
        lower, upper = u.support_[target]
        require((samples[..., target] >= lower) & (samples[..., target] <= upper), "a sample is outside the support")
    if u.rule_.boxes is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        boxes = [u.predict_interval(X[:12], coverage=coverage, joint=True) for coverage in COVERAGES]
    for inner, outer in pairwise(boxes):
        require(outer[..., 0] <= inner[..., 0], "boxes are not nested below", outer[..., 0], inner[..., 0])
        require(outer[..., 1] >= inner[..., 1], "boxes are not nested above", outer[..., 1], inner[..., 1])
