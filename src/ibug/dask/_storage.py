"""A sharded model on disk: a folder with one file per shard, written where the shard is, and one for the rest."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ibug.affinity import LeafSource
from ibug.calibration import calibrator_from_state, calibrator_state
from ibug.dask._shard import Shard
from ibug.exceptions import FileFormatError
from ibug.leaves import read_leaves_of
from ibug.neighbors import LeafIndex
from ibug.persistence import FormatProblemError, Loading, Saving
from ibug.persistence._atomic import replacing
from ibug.persistence._format import CHECKSUM
from ibug.persistence._manifest import check_libraries, check_members, make_manifest, read_manifest
from ibug.persistence._reading import Container
from ibug.persistence._writing import ContainerWriter
from ibug.posterior import Posterior
from ibug.spread import spread_from_state
from ibug.stored import describe_columns, describe_estimator, require, restore_columns, restore_estimator
from ibug.targets import TargetFacts

#: The file that tells what belongs together.
MAIN = "model.ibug"
_SHARD, _MODEL = "Shard", "ShardedIBUGRegressor"
_NUMBERS = ("k_", "min_variance_", "gamma_", "delta_", "affinity_threshold_")


@dataclass(frozen=True)
class StoredShards:
    """The shards of one index in a folder."""

    files: tuple[str, ...]
    checksums: tuple[str, ...]  # of their manifests
    lengths: tuple[int, ...]
    starts: tuple[int, ...]

    def state(self) -> dict[str, Any]:
        """Return plain values."""
        return {name: list(getattr(self, name)) for name in ("files", "checksums", "lengths", "starts")}

    @classmethod
    def from_state(cls, state: Any) -> StoredShards:
        """Check and return what `state` has told."""
        n = len(state["files"])
        require(
            n > 0 and all(len(state[name]) == n for name in ("checksums", "lengths", "starts")), "shards are missing"
        )
        plain = all(isinstance(name, str) and Path(name).name == name for name in state["files"])
        require(plain, "a shard is not in the folder")
        return cls(*(tuple(state[name]) for name in ("files", "checksums", "lengths", "starts")))


def save_shard(shard: Shard, path: str, compress: bool) -> str:
    """Write a shard, and return the checksum of its manifest. It runs where the shard is."""
    with replacing(path) as file, ContainerWriter(file, compress=compress) as writer:
        saving = Saving(writer)
        index = None if shard.index is None else shard.index.arrays()
        state = {"index": index, "values": shard.values[0], "rows": shard.rows}
        writer.finish(make_manifest(set(), {"class": _SHARD, "state": saving.encoder.encode(state, "shard")}, {}))
    with Container(path) as container:
        return checksum_of(container)


def load_shard(path: str, checksum: str, length: int, mapped: bool, verify: bool) -> Shard:
    """Read a shard; it must be the one that was saved with the rest."""
    with Container(path) as container:
        manifest = read_manifest(container)
        if checksum_of(container) != checksum:
            raise container.error(f"it is not the shard that was saved with {MAIN}, but another one")
        members = check_members(container, manifest, verify=verify)
        loading = Loading(container, members, mapped=mapped, trusted=())
        try:
            state = loading.decoder.decode(manifest["estimator"]["state"])
            index = None if state["index"] is None else LeafIndex.from_arrays(state["index"])
            rows = None if state["rows"] is None else np.asarray(state["rows"]).astype(np.intp)
            values = np.asarray(state["values"], np.float64)
            require((0 if index is None else index.n_rows) == length, "its index has another number of rows")
            require(len(values if rows is None else rows) == length, "its targets do not match its index")
        except (FormatProblemError, KeyError, TypeError, ValueError) as problem:
            raise container.error(str(problem).rstrip(".")) from problem
        return Shard(index, (values,), rows)


def checksum_of(container: Container) -> str:
    """Return the checksum of a file's manifest, which has those of everything else."""
    return container.read(CHECKSUM).split()[0].decode("ascii")


def save_main(
    regressor: Any,
    folder: Path,
    findings: Any,
    trees: Any,
    shards: dict[str, StoredShards | None],
    compress: bool,
    metadata: dict[str, Any],
) -> None:
    """Write model, parameters and what was learned."""
    rule = regressor._rule
    with replacing(folder / MAIN) as file, ContainerWriter(file, compress=compress) as writer:
        saving = Saving(writer)
        parameters = {**regressor.get_params(deep=False), "estimator": regressor.estimator_, "prefit": True}
        description = describe_estimator(regressor, parameters, saving, fitted=True)
        facts = rule._facts
        learned = {
            **{name: getattr(regressor, name) for name in _NUMBERS},
            **describe_columns(regressor),
            "n_model_trees": trees[0],
            "trees": trees[1],
            "reader": findings,
            "prediction_type": regressor._prediction_type.str,
            "spread": rule._spread.state(),
            "posterior": rule._posterior.state(),
            "conformal": calibrator_state(rule.conformal_),
            "tuning": regressor.tuning_,
            "facts": [facts.n, facts.lowest, facts.highest, facts.variance],
            "shards": {name: None if one is None else one.state() for name, one in shards.items()},
        }
        description["learned"] = saving.encoder.encode(learned, "learned")
        writer.finish(make_manifest(saving.libraries, {"class": _MODEL, **description}, metadata))


@dataclass(frozen=True)
class Main:
    """What the main file has told."""

    regressor: Any  # with parameters, model and columns
    source: LeafSource
    learned: dict[str, Any]
    targets: StoredShards
    residuals: StoredShards | None
    facts: TargetFacts


def load_main(folder: str | os.PathLike[str], cls: type, *, verify: bool, trusted: tuple[str, ...]) -> Main:
    """Read the main file of a folder, and make an estimator of the class."""
    path = Path(folder) / MAIN
    with Container(path) as container:
        manifest = read_manifest(container)
        members = check_members(container, manifest, verify=verify)
        check_libraries(container, manifest)
        loading = Loading(container, members, mapped=False, trusted=trusted)
        try:
            spec = manifest["estimator"]
            require(spec["class"] == _MODEL, f"it holds no sharded model, but a {spec['class']!r:.100}; use ibug.load")
            regressor = restore_estimator(cls, spec, loading)
            learned = loading.decoder.decode(spec["learned"])
            return _main(regressor, learned)
        except (FormatProblemError, KeyError, TypeError, ValueError) as problem:
            if isinstance(problem, FileFormatError):
                raise
            raise container.error(str(problem).rstrip(".")) from problem


def _main(regressor: Any, learned: dict[str, Any]) -> Main:
    restore_columns(regressor, learned)
    reader = read_leaves_of(regressor.estimator_)
    reader.recall(learned["reader"])
    trees = None if learned["trees"] is None else np.asarray(learned["trees"]).astype(np.intp)
    n, lowest, highest, variance = learned["facts"]
    residuals = learned["shards"]["residuals"]
    return Main(
        regressor,
        LeafSource(reader, int(learned["n_model_trees"]), trees),
        learned,
        StoredShards.from_state(learned["shards"]["targets"]),
        None if residuals is None else StoredShards.from_state(residuals),
        TargetFacts(int(n), float(lowest), float(highest), float(variance)),
    )


def set_rule(regressor: Any, learned: dict[str, Any]) -> None:
    """Give an estimator what was learned of validation rows."""
    for name in _NUMBERS:
        setattr(regressor, name, learned[name])
    regressor._spread = spread_from_state(learned["spread"])
    regressor.spread_ = regressor._spread.name
    regressor._posterior = Posterior.from_state(learned["posterior"])
    regressor.distribution_ = regressor._posterior.name
    regressor.conformal_ = calibrator_from_state(learned["conformal"])
    regressor.tuning_ = {str(name): np.asarray(column) for name, column in learned["tuning"].items()}
