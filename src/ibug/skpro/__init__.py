"""The bridge to skpro: ibug as one of its probabilistic regressors, laws as its distributions (extra ``skpro``)."""

from ibug.exceptions import MissingDependencyError

try:
    import skpro  # noqa: F401 - to see that it is there
except ImportError as error:
    raise MissingDependencyError(
        f'ibug.skpro needs skpro, which cannot be imported ({error}). Install it: pip install "ibug[skpro]".'
    ) from error

from ibug.skpro._batched import BatchedLaw
from ibug.skpro._laws import to_skpro
from ibug.skpro._regressor import IBUGRegressor

__all__ = ["BatchedLaw", "IBUGRegressor", "to_skpro"]
