"""Saving a sharded model from the cluster, and loading it on a cluster of any size, or here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from dask import delayed
from distributed import Client

from ibug.affinity import AffinitySearch, LeafSource
from ibug.dask._joined import JoinedIndex
from ibug.dask._placement import holders, keep_shards, on_cluster, on_shards, shard_tasks
from ibug.dask._regressor import IBUGRegressor
from ibug.dask._rows import persisted, results
from ibug.dask._rule import IndexSize, Rule
from ibug.dask._shard import Shard, ShardSet
from ibug.dask._storage import Main, StoredShards, load_main, load_shard, save_main, save_shard, set_rule
from ibug.persistence._manifest import check_metadata
from ibug.regressor import IBUGRegressor as LocalRegressor


def save(
    regressor: IBUGRegressor, path: str | os.PathLike[str], *, compress: bool, metadata: Mapping[str, Any] | None
) -> None:
    """Save a fitted ``ibug.dask.IBUGRegressor`` as a folder; see its `save`."""
    kept = check_metadata(metadata)
    folder = Path(path).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    client = regressor.client
    shards = {
        "targets": _save_shards(client, regressor._shards, folder, "targets", compress, bool(regressor.verbose)),
        "residuals": None,
    }
    if regressor._residual_shards is not None:
        shards["residuals"] = _save_shards(
            client, regressor._residual_shards, folder, "residuals", compress, bool(regressor.verbose)
        )
    findings, *trees = client.compute(delayed(_findings)(regressor._source)).result()
    save_main(regressor, folder, findings, trees, shards, compress, kept)


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
    regressor._source = on_cluster(client, delayed(_itself), main.source)
    regressor._shards = _load_shards(client, main.targets, folder, mmap, verify)
    regressor._residual_shards = None
    if main.residuals is not None:
        regressor._residual_shards = _load_shards(client, main.residuals, folder, mmap, verify)
    size: Any = IndexSize(regressor._shards.n_rows, main.source.n_trees)
    rule = Rule.of(regressor.get_params(deep=False), size, main.facts)
    set_rule(rule, main.learned)
    regressor.index_, regressor.residuals_ = size, None
    regressor.walk_ = main.source.reader.how
    regressor._prediction_type = np.dtype(main.learned["prediction_type"])
    regressor._take(rule)
    return regressor


def _local(main: Main, folder: Path, mapped: bool, verify: bool) -> LocalRegressor:
    regressor: LocalRegressor = main.regressor
    shards = _read_all(main.targets, folder, mapped, verify)
    index: Any = JoinedIndex([shard.index for shard in shards if shard.index is not None])
    rows = None
    if any(shard.rows is not None for shard in shards):
        starts = zip(shards, main.targets.starts, strict=True)
        rows = np.concatenate([start + shard.rows for shard, start in starts if shard.rows is not None])
    source = main.source
    regressor._search = AffinitySearch(source.reader, index, source.n_model_trees, source.trees, rows)
    regressor._know(np.concatenate([shard.values[0] for shard in shards]), None)
    if main.residuals is not None:
        others = _read_all(main.residuals, folder, mapped, verify)
        joined: Any = JoinedIndex([shard.index for shard in others if shard.index is not None])
        regressor._residual_index = joined
        regressor.residuals_ = np.concatenate([shard.values[0] for shard in others])
    regressor.index_, regressor.walk_ = index, source.reader.how
    set_rule(regressor, main.learned)
    return regressor


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


def _findings(source: LeafSource) -> tuple[Any, int, Any]:
    return source.reader.findings(), source.n_model_trees, source.trees


def _itself(source: LeafSource) -> LeafSource:
    return source
