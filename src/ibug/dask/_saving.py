"""A sharded model in a folder: one file per shard, written where the shard is, and one for the rest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from dask import delayed
from distributed import Client

from ibug._validation import require
from ibug.dask._cluster import SEARCH, SHARD, keep_shards, on_cluster, results, tasks_of
from ibug.dask._index import Shard, ShardedIndex, ShardSet
from ibug.dask._regressor import IBUGRegressor
from ibug.exceptions import FileFormatError
from ibug.leaves import reader_from_state
from ibug.neighbors import JoinedIndex, LeafIndex, LeafNumbers, LocalSource, SearchPlan
from ibug.persistence import (
    assemble,
    checksum_of,
    describe_blocks,
    describe_columns,
    describe_with_model,
    reading,
    restore_blocks,
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
        return {name: list(values) for name, values in vars(self).items()}

    @classmethod
    def from_state(cls, state: Any) -> StoredShards:
        """Return the shards that have this state, checked."""
        values = [tuple(state[field.name]) for field in fields(cls)]
        require(all(len(one) == len(values[0]) > 0 for one in values), "shards are missing")
        plain = all(isinstance(name, str) and Path(name).name == name for name in state["files"])
        require(plain, "a shard is not in the folder")
        return cls(*values)

    def load_arguments(self, folder: Path, *options: bool) -> list[tuple[Any, ...]]:
        """Return the arguments of `load_shard` for each shard."""
        parts = zip(self.files, self.checksums, self.lengths, strict=True)
        return [(str(folder / file), checksum, length, *options) for file, checksum, length in parts]


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
    learned: Mapping[str, Any]  # everything that the file has, for what is restored last


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
        targets, residuals = learned["targets"], learned["shards"]["residuals"]
        return Main(
            regressor,
            model,
            LeafNumbers(reader, n_trees, trees),
            {name: learned[name] for name in ("n_model_trees", "trees", "reader", "search")},
            Rule.from_state(learned),
            TargetRange(int(targets["n"]), tuple(targets["smallest"]), tuple(targets["largest"])),
            np.dtype(learned["prediction_type"]),
            StoredShards.from_state(learned["shards"]["targets"]),
            None if residuals is None else StoredShards.from_state(residuals),
            learned,
        )


def save(
    regressor: IBUGRegressor, path: str | os.PathLike[str], *, compress: bool, metadata: Mapping[str, Any] | None
) -> None:
    """Save a fitted ``ibug.dask.IBUGRegressor`` as a folder; see its `save`."""
    client, source, rule = regressor.client, regressor.source_, regressor.rule_.state()
    source.check_held()
    folder = Path(path).resolve()
    folder.mkdir(parents=True, exist_ok=True)

    def save_shards(shards: ShardSet | None, name: str) -> dict[str, Any] | None:
        if shards is None:
            return None
        files = tuple(f"{name}-{i:05}.ibug" for i in range(len(shards.shards)))
        each = [(shard, str(folder / file), compress) for shard, file in zip(shards.shards, files, strict=True)]
        tasks = tasks_of(SEARCH, save_shard, each)
        checksums = tuple(results(client, tasks, f"saving {name}", bool(regressor.verbose)))
        return StoredShards(files, checksums, shards.lengths, shards.starts).state()

    shards = {
        "targets": save_shards(source.shards, "targets"),
        "residuals": save_shards(source.residual_shards, "residuals"),
    }
    leaves = client.compute(delayed(_leaf_state)(source.leaves)).result()
    with writing(folder / MAIN, compress=compress, metadata=metadata) as saving:
        parameters = {**regressor.get_params(deep=False), "estimator": source.model, "prefit": True}
        description = describe_with_model(regressor, parameters, saving, fitted=True)
        learned = {
            **describe_columns(regressor),
            **describe_blocks(regressor),
            **rule,
            **leaves,
            "prediction_type": source.prediction_type.str,
            "targets": asdict(source.targets),
            "search": asdict(source.search_plan),
            "shards": shards,
        }
        saving.description = {"class": _MODEL, **description, "learned": saving.encoder.encode(learned, "learned")}


def _leaf_state(leaves: LeafNumbers) -> dict[str, Any]:
    return {"reader": leaves.reader.state(), "n_model_trees": leaves.n_model_trees, "trees": leaves.trees}


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
    keep_shards(client)

    def load_shards(stored: StoredShards) -> ShardSet:
        tasks = tasks_of(SHARD, load_shard, stored.load_arguments(folder, mmap, verify))
        return ShardSet.make(client, tasks, stored.lengths, stored.starts, title="loading shards", verbose=False)

    read = main.leaves.reader, main.leaf_state["n_model_trees"], main.leaves.trees
    regressor.source_ = ShardedIndex(
        main.model,
        on_cluster(client, delayed(LeafNumbers), *read),
        load_shards(main.shards),
        None if main.residual_shards is None else load_shards(main.residual_shards),
        main.targets,
        main.leaves.n_trees,
        main.prediction_type,
        main.leaves.reader.how,
        SearchPlan.from_state(main.leaf_state["search"]),
    )
    regressor.rule_ = main.rule
    restore_blocks(regressor, main.learned)
    return regressor


def _local(main: Main, folder: Path, mapped: bool, verify: bool) -> LocalRegressor:
    shards = [load_shard(*one) for one in main.shards.load_arguments(folder, mapped, verify)]
    rows = None
    if any(shard.rows is not None for shard in shards):
        starts = zip(shards, main.shards.starts, strict=True)
        rows = np.concatenate([start + shard.rows for shard, start in starts if shard.rows is not None])
    residuals, residual_index = None, None
    if main.residual_shards is not None:
        others = [load_shard(*one) for one in main.residual_shards.load_arguments(folder, mapped, verify)]
        residuals, residual_index = _values(others), _joined_index(others)
    regressor: LocalRegressor = main.regressor
    rest = {**main.leaf_state, "rows": rows, "targets": _values(shards), "residuals": residuals}
    source = LocalSource.assemble(main.model, _joined_index(shards), residual_index, rest)
    assemble(regressor, source, main.rule)
    restore_blocks(regressor, main.learned)
    return regressor


def _joined_index(shards: list[Shard]) -> JoinedIndex:
    return JoinedIndex([shard.index for shard in shards if shard.index is not None])


def _values(shards: list[Shard]) -> Any:
    return np.concatenate([shard.values for shard in shards])
