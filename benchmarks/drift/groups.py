"""Coverage in groups of rows, and where covariates have moved, over many samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from lightgbm import LGBMRegressor

from benchmarks.common.bars import Bar
from ibug import IBUGRegressor
from ibug.calibration import LikelihoodRatio, ScaleConformal

LEVEL, N_CALIBRATION, N_TEST = 0.9, 1000, 1000


def measured(n_splits: int) -> str:
    """Return the coverage in each group, over random splits of the same rows, with bars."""
    rng = np.random.default_rng(0)
    n = 2000 + 6000
    X = rng.uniform(size=(n, 3))
    region = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    y = 4 * X[:, 0] + rng.normal(size=n) * np.array([0.3, 0.6, 1.2, 2.5])[region]
    model = LGBMRegressor(n_estimators=50, verbose=-1, n_jobs=1, random_state=0).fit(X[:1000], y[:1000])
    u = IBUGRegressor(model, prefit=True).fit(X[:1000], y[:1000], X_val=X[1000:2000], y_val=y[1000:2000])
    found, y, region, X = u.predict_dist(X[2000:]), y[2000:], region[2000:], X[2000:]
    overlapping = np.column_stack([region >= 2, X[:, 1] > 0.7, region <= 1])
    ways: dict[str, tuple[Any, Any]] = {
        "no groups": (None, np.eye(4, dtype=bool)[region]),
        "four regions": (region, np.eye(4, dtype=bool)[region]),
        "overlapping": (overlapping, overlapping),
    }
    lines, bars = [f"{'groups':14}{'mean coverage in each, over ' + str(n_splits) + ' splits':>44}"], []
    for name, (given, members) in ways.items():
        shares = np.array([_split(found, y, given, members, seed) for seed in range(n_splits)])
        means, errors = shares.mean(axis=0), shares.std(axis=0) / np.sqrt(n_splits)
        lines.append(
            f"{name:14}" + "".join(f"{mean:9.1%} ±{2 * error:4.1%}" for mean, error in zip(means, errors, strict=True))
        )
        if name == "no groups":
            bars.append(Bar("without groups, the lowest is below 80 %", f"{means.min():.1%}", means.min() < 0.8))
            continue
        # Exact conformal coverage is 90 % or up to 1/(n + 1) more; the mean of splits has a binomial error on top.
        low = (means + 3 * errors >= LEVEL).all()
        bars.append(Bar(f"{name}: no mean is below 90 % by more than three standard errors", f"{means.min():.1%}", low))
        if name == "four regions":
            sizes = N_CALIBRATION * members.mean(axis=0)
            high = (means - 3 * errors <= LEVEL + 1 / (sizes + 1)).all()
            bars.append(Bar("nor above 90 % + 1/(n + 1) by more", f"{means.max():.1%}", bool(high)))
    return "\n".join([*lines, "", *(bar.line() for bar in bars)])


def _split(found: Any, y: Any, given: Any, members: Any, seed: int) -> list[float]:
    rows = np.random.default_rng(seed).permutation(len(y))
    held, test = rows[:N_CALIBRATION], rows[N_CALIBRATION : N_CALIBRATION + N_TEST]
    labels = [None, None] if given is None else [given[held], given[test]]
    calibrator = ScaleConformal().fit(found[held], y[held], labels[0])
    lower, upper = calibrator.transform(found[test], labels[1]).interval(LEVEL)
    inside = (lower <= y[test]) & (y[test] <= upper)
    return [inside[group[test]].mean() for group in members.T]


def shifted(n_samples: int) -> str:
    """Return the coverage where covariates have moved: validation rows are uniform, new rows have the density 4x³.

    The likelihood ratio is known, 4x³, or estimated: from the leaves of the validation rows and of as many new rows
    without a target, other ones than those that are covered or not.
    """
    inside: dict[str, list[float]] = {"without": [], "known": [], "estimated": []}
    errors = []
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1000, 1))
    y = rng.normal(size=1000) * (0.2 + 2 * X[:, 0])
    model = LGBMRegressor(n_estimators=20, num_leaves=4, verbose=-1, n_jobs=1, random_state=0).fit(X, y)
    u = IBUGRegressor(model, prefit=True, k=1000, calibrate=False, distribution="normal", spread="targets").fit(X, y)
    for seed in range(n_samples):
        rng = np.random.default_rng(seed)
        held, new = rng.uniform(size=(500, 1)), rng.beta(4, 1, size=(500, 1))
        y_held, y_new = (rng.normal(size=500) * (0.2 + 2 * at[:, 0]) for at in (held, new))
        found = LikelihoodRatio.estimate(u, held, rng.beta(4, 1, size=(500, 1)))
        estimated = [found.of_chunks(u.source_.leaves_of(rows)) for rows in (held, new)]
        known = [4 * rows[:, 0] ** 3 for rows in (held, new)]
        errors.append(np.mean(np.abs(estimated[0] / estimated[0].mean() - known[0] / known[0].mean())) / 2)
        before, after = u.predict_dist(held), u.predict_dist(new)
        for name, (ratio, own) in {"without": [None, None], "known": known, "estimated": estimated}.items():
            calibrator = ScaleConformal().fit(before, y_held, sample_weight=ratio)
            lower, upper = calibrator.transform(after, sample_weight=own).interval(LEVEL)
            inside[name].append(float(np.mean((lower <= y_new) & (y_new <= upper))))
    means = {name: float(np.mean(shares)) for name, shares in inside.items()}
    noise = {name: float(np.std(shares) / np.sqrt(n_samples)) for name, shares in inside.items()}
    lines = [f"covariates moved, {n_samples} samples: share inside 90 % intervals"]
    lines += [
        f"  {title:28}{means[name]:8.1%} ±{2 * noise[name]:.1%}"
        for name, title in (
            ("without", "no likelihood ratio"),
            ("known", "the true ratio"),
            ("estimated", "estimated from the leaves"),
        )
    ]
    lines += [
        f"  half the mean error of the estimated ratio, by which its guarantee is smaller: {np.mean(errors):.1%}",
        "",
    ]
    low, high = LEVEL - 3 * noise["known"], LEVEL + 3 * noise["known"] + 0.01
    bars = [
        Bar("without a ratio, coverage is below 85 %", f"{means['without']:.1%}", means["without"] < 0.85),
        Bar(
            "with the true one, within three standard errors of 90 to 91 %",
            f"{means['known']:.1%}",
            low <= means["known"] <= high,
        ),
        Bar(
            "with the estimated one, within two points of 90 %",
            f"{means['estimated']:.1%}",
            abs(means["estimated"] - LEVEL) <= 0.02,
        ),
    ]
    return "\n".join([*lines, *(bar.line() for bar in bars)])
