"""The bridge to skpro: its probabilistic regressor, and its distributions, made of ibug's (extra ``skpro``)."""

from ibug._installed import how_to_install
from ibug.exceptions import MissingDependencyError

try:
    import skpro  # noqa: F401 - to see that it is there
except ImportError as error:
    raise MissingDependencyError(
        f"ibug.skpro needs skpro, which cannot be imported ({error}). Install it: {how_to_install('skpro')}."
    ) from error

from ibug.skpro._distributions import BatchedDistribution, JointDistribution, to_skpro
from ibug.skpro._regressor import IBUGRegressor

__all__ = ["BatchedDistribution", "IBUGRegressor", "JointDistribution", "to_skpro"]
