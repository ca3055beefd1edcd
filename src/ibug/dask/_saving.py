"""A sharded model in a folder: one file per shard, written where the shard is, and one for the rest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from dask import delayed
from distributed import Client

from ibug._validation import require
from ibug.dask._cluster import holders, keep_shards, on_cluster, on_shards, persisted, results, shard_tasks
from ibug.dask._index import Shard, ShardedIndex, ShardSet
from ibug.dask._regressor import IBUGRegressor
from ibug.exceptions import FileFormatError
from ibug.leaves import reader_from_state
from ibug.neighbors import JoinedIndex, LeafIndex, LeafNumbers, LocalSource
from ibug.persistence import (
    assemble,
    checksum_of,
    describe_columns,
    describe_with_model,
    reading,
    restore_columns,
    restore_with_model,
    writing,
)
from ibug.regressor import IBUGRegressor as LocalRegressor
from ibug.rule import Rule, TargetRange

# The file that says which shards belong together.
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
        """Return the shards that have this state, checked."""
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
    state = {"index": index, "values": shard.values, "rows": shard.rows}
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
            return Shard(index, values, rows)
    except FileNotFoundError as error:
        raise FileFormatError(
            f"The shard {Path(path).name} is missing in {Path(path).parent}: a sharded model is a whole folder, and "
            "every worker must see it under this name. Copy the whole folder here and load it again, or fit again."
        ) from error


@dataclass(frozen=True, eq=False)
class Main:
    """What the main file holds: all but the shards."""

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


def save(
    regressor: IBUGRegressor, path: str | os.PathLike[str], *, compress: bool, metadata: Mapping[str, Any] | None
) -> None:
    """Save a fitted ``ibug.dask.IBUGRegressor`` as a folder; see its `save`."""
    client, source, verbose = regressor.client, regressor.source_, bool(regressor.verbose)
    source.check_held()
    folder = Path(path).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    held = {"targets": source.shards, "residuals": source.residual_shards}
    shards = {
        name: None if one is None else _save_shards(client, one, folder, name, compress, verbose)
        for name, one in held.items()
    }
    leaves = client.compute(delayed(_leaf_state)(source.leaves)).result()
    save_main(regressor, leaves, shards, folder, compress, metadata)


def load(
    path: str | os.PathLike[str],
    *,
    client: Client | None = None,
    local: bool = False,
    mmap: bool = True,
    verify: bool = True,
    trusted: Iterable[str] = (),
) -> Any:
    """Load a folder that ``ibug.dask.IBUGRegressor.save`` has written.

    Parameters
    ----------
    path
        The folder. On a cluster all workers must see it under this name.
    client
        The Dask client; unless it is given, the one that is active.
    local
        Load into this process, without a cluster: an ``ibug.IBUGRegressor``.
    mmap, verify, trusted
        As in ``ibug.load``.

    Returns
    -------
    ibug.dask.IBUGRegressor or ibug.IBUGRegressor
        With the same predictions, bit for bit. A lost shard is read again from its file.
    """
    folder = Path(path).resolve()
    cls: type = LocalRegressor if local else IBUGRegressor
    main = load_main(folder, cls, verify=verify, trusted=tuple(trusted))
    if local:
        return _local(main, folder, mmap, verify)
    regressor: IBUGRegressor = main.regressor
    if client is not None:
        regressor.client = client
    client = regressor.client
    residual_shards = None
    if main.residual_shards is not None:
        residual_shards = _load_shards(client, main.residual_shards, folder, mmap, verify)
    regressor.source_ = ShardedIndex(
        main.model,
        on_cluster(client, delayed(_itself), main.leaves),
        _load_shards(client, main.shards, folder, mmap, verify),
        residual_shards,
        main.targets,
        main.leaves.n_trees,
        main.prediction_type,
        main.leaves.reader.how,
    )
    regressor.rule_ = main.rule
    return regressor


def _local(main: Main, folder: Path, mapped: bool, verify: bool) -> LocalRegressor:
    shards = _read_all(main.shards, folder, mapped, verify)
    rows = None
    if any(shard.rows is not None for shard in shards):
        starts = zip(shards, main.shards.starts, strict=True)
        rows = np.concatenate([start + shard.rows for shard, start in starts if shard.rows is not None])
    residuals, residual_index = None, None
    if main.residual_shards is not None:
        others = _read_all(main.residual_shards, folder, mapped, verify)
        residuals, residual_index = _values(others), _joined_index(others)
    regressor: LocalRegressor = main.regressor
    rest = {**main.leaf_state, "rows": rows, "targets": _values(shards), "residuals": residuals}
    source = LocalSource.assemble(main.model, _joined_index(shards), residual_index, rest)
    assemble(regressor, source, main.rule)
    return regressor


def _joined_index(shards: list[Shard]) -> JoinedIndex:
    return JoinedIndex([shard.index for shard in shards if shard.index is not None])


def _values(shards: list[Shard]) -> Any:
    return np.concatenate([shard.values for shard in shards])


def _save_shards(
    client: Client, shards: ShardSet, folder: Path, name: str, compress: bool, verbose: bool
) -> StoredShards:
    files = tuple(f"{name}-{i:05}.ibug" for i in range(len(shards.shards)))
    paths = [str(folder / file) for file in files]
    tasks = on_shards(save_shard, shards.shards, paths, [compress] * len(files))
    checksums = tuple(results(client, tasks, f"saving {name}", verbose))
    return StoredShards(files, checksums, shards.lengths, shards.starts)


def _load_shards(client: Client, stored: StoredShards, folder: Path, mapped: bool, verify: bool) -> ShardSet:
    keep_shards(client)
    tasks = shard_tasks(load_shard, _arguments(stored, folder, mapped, verify))
    shards = persisted(client, tasks, "loading shards", False)
    return ShardSet(shards, stored.lengths, stored.starts, holders(client, shards))


def _read_all(stored: StoredShards, folder: Path, mapped: bool, verify: bool) -> list[Shard]:
    return [load_shard(*arguments) for arguments in _arguments(stored, folder, mapped, verify)]


def _arguments(stored: StoredShards, folder: Path, mapped: bool, verify: bool) -> list[tuple[Any, ...]]:
    parts = zip(stored.files, stored.checksums, stored.lengths, strict=True)
    return [(str(folder / file), checksum, length, mapped, verify) for file, checksum, length in parts]


def _leaf_state(leaves: LeafNumbers) -> tuple[Any, int, Any]:
    return leaves.reader.state(), leaves.n_model_trees, leaves.trees


def _itself(leaves: LeafNumbers) -> LeafNumbers:
    return leaves
