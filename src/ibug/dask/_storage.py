"""A sharded model on disk: a folder with one file per shard, written where the shard is, and one for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ibug._inputs import require
from ibug.dask._shard import Shard
from ibug.exceptions import FileFormatError
from ibug.leaves import reader_from_state
from ibug.neighbors import LeafIndex, LeafNumbers
from ibug.persistence import (
    checksum_of,
    describe_columns,
    describe_with_model,
    reading,
    restore_columns,
    restore_with_model,
    writing,
)
from ibug.rule import Rule, TargetRange

#: The file that tells what belongs together.
MAIN = "model.ibug"
_SHARD, _MODEL = "Shard", "ShardedIBUGRegressor"


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
    index = None if shard.index is None else shard.index.arrays()
    state = {"index": index, "values": shard.values[0], "rows": shard.rows}
    with writing(path, compress=compress) as saving:
        saving.description = {"class": _SHARD, "state": saving.encoder.encode(state, "shard")}
    return checksum_of(path)


def load_shard(path: str, checksum: str, length: int, mapped: bool, verify: bool) -> Shard:
    """Read a shard; it must be the one that was saved with the rest."""
    try:
        with reading(path, mmap=mapped, verify=verify, checksum=checksum) as loading:
            state = loading.decoder.decode(loading.description["state"])
            index = None if state["index"] is None else LeafIndex.from_arrays(state["index"])
            rows = None if state["rows"] is None else np.asarray(state["rows"]).astype(np.intp)
            values = np.asarray(state["values"], np.float64)
            require((0 if index is None else index.n_rows) == length, "its index has another number of rows")
            require(len(values if rows is None else rows) == length, "its targets do not match its index")
            return Shard(index, (values,), rows)
    except FileNotFoundError as error:
        raise FileFormatError(
            f"The shard {Path(path).name} is missing in {Path(path).parent}: a sharded model is a whole folder, and "
            "every worker must see it under this name. Copy the whole folder here and load it again, or fit again."
        ) from error


@dataclass(frozen=True, eq=False)
class Main:
    """What the main file tells: all but the shards."""

    regressor: Any  # with parameters and columns
    model: Any
    leaves: LeafNumbers
    leaf_state: dict[str, Any]  # what `leaves` was made of
    rule: Rule
    targets: TargetRange
    prediction_type: np.dtype[Any]
    shards: StoredShards
    residual_shards: StoredShards | None


def save_main(
    regressor: Any,
    leaves: tuple[Any, int, Any],
    shards: dict[str, StoredShards | None],
    folder: Path,
    compress: bool,
    metadata: Mapping[str, Any] | None,
) -> None:
    """Write model, parameters, source and rule of a fitted ``ibug.dask.IBUGRegressor``."""
    source, rule = regressor.source_, regressor.rule_.state()
    reader_state, n_model_trees, trees = leaves

    with writing(folder / MAIN, compress=compress, metadata=metadata) as saving:
        parameters = {**regressor.get_params(deep=False), "estimator": source.model, "prefit": True}
        description = describe_with_model(regressor, parameters, saving, fitted=True)
        learned = {
            **describe_columns(regressor),
            **rule,
            "n_model_trees": n_model_trees,
            "trees": trees,
            "reader": reader_state,
            "prediction_type": source.prediction_type.str,
            "facts": {"n": source.targets.n, "smallest": source.targets.smallest, "largest": source.targets.largest},
            "shards": {name: None if one is None else one.state() for name, one in shards.items()},
        }
        saving.description = {"class": _MODEL, **description, "learned": saving.encoder.encode(learned, "learned")}


def load_main(folder: Path, cls: type, *, verify: bool, trusted: tuple[str, ...]) -> Main:
    """Read the main file of a folder, for an estimator of a class."""
    with reading(folder / MAIN, mmap=False, verify=verify, trusted=trusted) as loading:
        spec = loading.description
        require(spec["class"] == _MODEL, f"it holds no sharded model, but a {spec['class']!r:.100}; use ibug.load")
        regressor, model = restore_with_model(cls, spec, loading)
        learned = loading.decoder.decode(spec["learned"])
        restore_columns(regressor, learned)
        reader, n_trees = reader_from_state(model, learned["reader"]), learned["n_model_trees"]
        require(reader.n_trees == n_trees, f"its model has {reader.n_trees} trees, and {n_trees!r:.50} were indexed")
        trees = None if learned["trees"] is None else np.asarray(learned["trees"]).astype(np.intp)
        targets = learned["facts"]
        residuals = learned["shards"]["residuals"]
        return Main(
            regressor,
            model,
            LeafNumbers(reader, n_trees, trees),
            {name: learned[name] for name in ("n_model_trees", "trees", "reader")},
            Rule.from_state(learned),
            TargetRange(int(targets["n"]), tuple(targets["smallest"]), tuple(targets["largest"])),
            np.dtype(learned["prediction_type"]),
            StoredShards.from_state(learned["shards"]["targets"]),
            None if residuals is None else StoredShards.from_state(residuals),
        )
