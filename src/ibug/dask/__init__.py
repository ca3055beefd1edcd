"""IBUG on a Dask cluster: an index in shards, or a copy of it on each worker (extra ``dask``)."""

from importlib import import_module

from ibug._installed import how_to_install
from ibug.exceptions import MissingDependencyError

try:
    for _name in ("dask.array", "dask.dataframe", "distributed"):
        import_module(_name)
except ImportError as error:
    raise MissingDependencyError(
        f"ibug.dask needs dask and distributed ({error}). Install them, also on the workers: {how_to_install('dask')}."
    ) from error

from ibug.dask._distribution import LazyDistribution
from ibug.dask._regressor import IBUGRegressor
from ibug.dask._replicated import ReplicatedRegressor
from ibug.dask._saving import load

__all__ = ["IBUGRegressor", "LazyDistribution", "ReplicatedRegressor", "load"]
