"""Saving and loading of regressors, by the name of their class."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from sklearn.utils.validation import check_is_fitted

from ibug.exceptions import IBUGError, InvalidInputError, NotStorableError
from ibug.persistence._atomic import replacing
from ibug.persistence._format import CHECKSUM, FormatProblemError
from ibug.persistence._isolated import tried
from ibug.persistence._manifest import check_libraries, check_members, check_metadata, make_manifest, read_manifest
from ibug.persistence._reading import Container
from ibug.persistence._session import Loading, Saving
from ibug.persistence._writing import ContainerWriter

_STORES: dict[str, Store] = {}
# Where the estimators are that can be stored. They are above this package, which is used without them.
_HOMES = ("ibug.regressor", "ibug.ensemble", "ibug.online")


class Store(NamedTuple):
    """How the estimators of one class are written and read."""

    cls: type
    #: Returns parameters and, if fitted, learned values as JSON; arrays and models become members of the file.
    describe: Callable[[Any, Saving, bool], dict[str, Any]]
    #: Returns the estimator of a description; FormatProblemError, KeyError and so on tell that there can be none.
    restore: Callable[[type, dict[str, Any], Loading], Any]


def storable(
    cls: type,
    describe: Callable[[Any, Saving, bool], dict[str, Any]],
    restore: Callable[[type, dict[str, Any], Loading], Any],
) -> None:
    """Make a class known to `save` and `load`, by its name."""
    _STORES[cls.__name__] = Store(cls, describe, restore)


def save(
    regressor: Any,
    path: str | os.PathLike[str],
    *,
    compress: bool = True,
    metadata: Mapping[str, Any] | None = None,
    trusted: Iterable[str] = (),
) -> None:
    """Save a fitted regressor to one file, which `load` reads; see its method ``save``."""
    check_is_fitted(regressor)
    if not isinstance(compress, bool):
        raise InvalidInputError(f"compress must be True or False; got {compress!r}.")
    write_file(
        path,
        lambda saving: save_regressor(regressor, saving),
        compress=compress,
        metadata=metadata,
        trusted=check_trusted(trusted),
    )


def write_file(
    path: str | os.PathLike[str],
    describe: Callable[[Saving], dict[str, Any]],
    *,
    compress: bool,
    metadata: Mapping[str, Any] | None = None,
    trusted: tuple[str, ...] = (),
) -> None:
    """Write a file whose content `describe` returns as JSON; arrays and models become its members."""
    kept = check_metadata(metadata)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "The folder to save into does not exist, make it first", folder)
    with replacing(path) as file, ContainerWriter(file, compress=compress) as writer:
        saving = Saving(writer, trusted)
        description = describe(saving)
        writer.finish(make_manifest(saving.libraries, description, kept))


def checksum_of(path: str | os.PathLike[str]) -> str:
    """Return the checksum of a file's manifest, which has those of everything else."""
    with Container(path) as container:
        return _checksum(container)


def save_regressor(regressor: Any, saving: Saving, *, fitted: bool = True) -> dict[str, Any]:
    """Return the description of a regressor, as JSON; of its parameters alone if not `fitted`."""
    name = type(regressor).__name__
    store = _STORES.get(name)
    if store is None or store.cls is not type(regressor):
        raise NotStorableError(
            f"ibug saves {sorted(_STORES)}; this {type(regressor).__module__}.{name} is none of them. Pickle and "
            "joblib take it, for those who trust the file."
        )
    return {"class": name, **store.describe(regressor, saving, fitted)}


def load_regressor(spec: Any, loading: Loading) -> Any:
    """Return the regressor of a description."""
    if spec["class"] not in _STORES:
        _import_estimators()
    if spec["class"] not in _STORES:
        raise FormatProblemError(
            f"an estimator of the class {spec['class']!r:.100} is not known to this version of ibug"
        )
    store = _STORES[spec["class"]]
    return store.restore(store.cls, spec, loading)


def _import_estimators() -> None:
    """Import the estimators that have not been asked for yet: each makes itself known."""
    for home in _HOMES:
        import_module(home)


def inspect(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the manifest of a saved file: versions, members, parameters and learned values, as they are stored.

    No model is loaded, so that no library is needed. The manifest's own checksum and the members' sizes are checked.
    """
    with Container(path) as container:
        manifest = read_manifest(container)
        check_members(container, manifest, verify=False)
        return manifest


def load(
    path: str | os.PathLike[str],
    *,
    mmap: bool = True,
    verify: bool = True,
    trusted: Iterable[str] = (),
    isolate: bool = False,
) -> Any:
    """Load a regressor that ``save`` has written.

    No code in the file is run, whoever wrote it: the manifest is JSON, arrays hold numbers and text, and tree models
    are read by their own libraries. Everything is checked first, and an error says what is wrong.

    Parameters
    ----------
    path
        The file.
    mmap
        Map large arrays into memory instead of reading them, where the file was saved with ``compress=False``: it takes
        no time, and processes that load the same file share the memory. The file must stay as it is meanwhile; a new
        one may be saved in its place.
    verify
        Compare the checksums of all members, about a second per gigabyte and processor. Without it flipped bits may
        stay unnoticed; sizes, types, shapes and whether the parts belong together are always checked.
    trusted
        Names of types beyond those of scikit-learn, NumPy and SciPy that a scikit-learn model may hold: only for files
        of people you trust.
    isolate
        Load the file, and predict a few rows, in a child process with limits of time and memory first, and here only
        if that went well: the way to open a stranger's file. It takes the time to start Python. On systems other than
        Linux there is no limit of memory.

    Returns
    -------
    IBUGRegressor, CBURegressor or ProbabilisticEnsemble
        As it was saved: predictions are the same, bit for bit.

    Raises
    ------
    FileFormatError
        If the file is not one of ibug's, is damaged, or is of a newer format.
    MissingDependencyError
        If the model's library is not installed.
    """
    return load_with_manifest(path, mmap=mmap, verify=verify, trusted=trusted, isolate=isolate)[0]


def load_with_manifest(
    path: str | os.PathLike[str],
    *,
    mmap: bool = True,
    verify: bool = True,
    trusted: Iterable[str] = (),
    isolate: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Load a regressor and its manifest: what `load` and `inspect` return, with the file opened once."""
    trusted, checksum = check_trusted(trusted), None
    if isolate:
        if not verify:
            raise InvalidInputError("isolate=True needs verify=True: what is loaded must be what was tried.")
        declared = sum(facts["size"] for facts in inspect(path)["members"].values())
        checksum = tried(path, trusted, declared)

    def restore(spec: dict[str, Any], loading: Loading) -> tuple[Any, dict[str, Any]]:
        return load_regressor(spec, loading), loading.manifest

    loaded: tuple[Any, dict[str, Any]] = read_file(
        path, restore, mmap=mmap, verify=verify, trusted=trusted, checksum=checksum
    )
    return loaded


def read_file(
    path: str | os.PathLike[str],
    restore: Callable[[dict[str, Any], Loading], Any],
    *,
    mmap: bool = True,
    verify: bool = True,
    trusted: Iterable[str] = (),
    checksum: str | None = None,
) -> Any:
    """Return what `restore` makes of a file's description; what is wrong with it becomes a FileFormatError."""
    with Container(path) as container:
        manifest = read_manifest(container)
        if checksum is not None and _checksum(container) != checksum:
            raise container.error("it is not the file that was saved with the rest or tried first, but another one")
        members = check_members(container, manifest, verify=verify)
        check_libraries(container, manifest)
        loading = Loading(container, manifest, members, mapped=mmap, trusted=tuple(trusted))
        try:
            return restore(manifest["estimator"], loading)
        except FormatProblemError as problem:
            raise container.error(str(problem)) from problem
        except InvalidInputError as error:  # our own classes' word on values that nobody has saved
            raise container.error(str(error).rstrip(".")) from error
        except (IBUGError, MemoryError, Warning):  # a warning, where the user has made them errors
            raise
        except Exception as error:  # what a library says of them
            raise container.error(
                f"what it describes cannot be restored here ({type(error).__name__}: {error}). Either a library is too "
                f"old or too new (it was written with {manifest['written_by']}), or the file was changed"
            ) from error


def check_trusted(trusted: Iterable[str]) -> tuple[str, ...]:
    """Return names of types as a tuple; a text alone, whose letters would be taken for names, is refused."""
    if isinstance(trusted, str):
        raise InvalidInputError(f"trusted must be a list of names of types; got the text {trusted!r}.")
    return tuple(trusted)


def _checksum(container: Container) -> str:
    return container.read(CHECKSUM).split()[0].decode("ascii")
