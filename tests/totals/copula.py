"""The slow truth: rows drawn from the Gaussian copula with a factor for each block, and added up by group."""

import numpy as np
from scipy.special import ndtr
from scipy.stats import t as student_t


def draw_totals(distribution, groups, weights, blocks, correlation, n_blocks, size, seed=0):
    """Return drawn totals, (size, n_groups). Blocks are codes of rows, by kind; the factors have a Student's t.

    What blocks have in common was learned from some number of blocks, which widens the factors.
    """
    rng = np.random.default_rng(seed)
    n_rows = len(groups)
    drawn = np.empty((size, int(groups.max()) + 1))
    for start in range(0, size, 1000):
        some = slice(start, min(start + 1000, size))
        m = some.stop - some.start
        score = np.sqrt(1 - np.sum(correlation)) * rng.standard_normal((m, n_rows))
        for rho, codes, n in zip(correlation, blocks, n_blocks, strict=True):
            factor = student_t(n - 1).rvs((m, int(codes.max()) + 1), random_state=rng) * np.sqrt(1 + 1 / n)
            score += np.sqrt(rho) * factor[:, codes]
        values = weights * np.asarray(distribution.ppf(np.clip(ndtr(score), 1e-12, 1 - 1e-12).T)).T
        drawn[some] = np.stack([values[:, groups == g].sum(axis=1) for g in range(drawn.shape[1])], axis=1)
    return drawn


def sample_crps(y, drawn):
    """Return E|T − y| − E|T − T′|/2 of a sample. Shapes: y scalar; drawn (size,)."""
    ordered, n = np.sort(drawn), len(drawn)
    apart = 2 * np.sum((2 * np.arange(1, n + 1) - n - 1) * ordered) / n**2
    return np.mean(np.abs(drawn - y)) - apart / 2
