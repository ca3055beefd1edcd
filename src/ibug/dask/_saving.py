"""Saving a sharded model from the cluster, and loading it on a cluster of any size, or here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from dask import delayed
from distributed import Client

from ibug.dask._placement import holders, keep_shards, on_cluster, on_shards, shard_tasks
from ibug.dask._regressor import IBUGRegressor
from ibug.dask._rows import persisted, results
from ibug.dask._shard import Shard, ShardSet
from ibug.dask._source import ClusterSource
from ibug.dask._storage import Main, StoredShards, load_main, load_shard, save_main, save_shard
from ibug.neighbors import JoinedIndex, LeafNumbers, LocalSource
from ibug.persistence import assemble
from ibug.regressor import IBUGRegressor as LocalRegressor


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
    regressor.source_ = ClusterSource(
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
    return np.concatenate([shard.values[0] for shard in shards])


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
