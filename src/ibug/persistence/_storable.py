"""Saving and loading of regressors: the mixin, and the classes that have it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ibug.exceptions import IBUGError, InvalidInputError, NotStorableError
from ibug.persistence._atomic import replacing
from ibug.persistence._format import FormatProblemError
from ibug.persistence._manifest import check_libraries, check_members, check_metadata, make_manifest, read_manifest
from ibug.persistence._reading import Container
from ibug.persistence._session import Loading, Saving
from ibug.persistence._writing import ContainerWriter

_CLASSES: dict[str, type[Storable]] = {}


class Storable:
    """A regressor that can be saved to a file without pickle."""

    def save(
        self, path: str | os.PathLike[str], *, compress: bool = True, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Save the fitted regressor to one file, which ``ibug.load`` reads.

        The file is a zip container: the tree model in its library's own format, arrays as ``.npy``, and a manifest with
        parameters, learned values, versions and checksums. It holds no pickle, so that loading it runs no code. It is
        written beside `path` first and then put in its place, so that an old file stays whole if anything fails.

        Parameters
        ----------
        path
            The file, ``"model.ibug"`` say. One that is there is replaced.
        compress
            ``True``: a small file. ``False``: arrays lie in the file as they do in memory, so that `load` can map them
            instead of reading them, and processes share them.
        metadata
            Whatever is to be kept along with it, as JSON knows it: where the data came from, say. It is in the
            manifest (``ibug.persistence.inspect``), and changes nothing.

        Raises
        ------
        NotStorableError
            If a part that predictions need cannot be saved without pickle: a law or a model of one's own, say.
        """
        check_is_fitted(self)
        if not isinstance(compress, bool):
            raise InvalidInputError(f"compress must be True or False; got {compress!r}.")
        kept = check_metadata(metadata)
        with replacing(path) as file, ContainerWriter(file, compress=compress) as writer:
            saving = Saving(writer)
            estimator = save_regressor(self, saving)
            writer.finish(make_manifest(saving.libraries, estimator, kept))

    def _describe(self, saving: Saving, *, fitted: bool) -> dict[str, Any]:
        """Return parameters and, if `fitted`, learned values as JSON; arrays and models become members of the file."""
        raise NotImplementedError(f"{type(self).__name__} has to say what it consists of.")

    @classmethod
    def _restore(cls, spec: dict[str, Any], loading: Loading) -> Storable:
        """Return the regressor of a description; FormatProblemError, KeyError and so on tell that there can be none."""
        raise NotImplementedError(f"{cls.__name__} has to say what it consists of.")


def storable(cls: type[Storable]) -> None:
    """Make a class known to `load`, by its name.

    Parameters
    ----------
    cls : subclass of Storable
        The class.
    """
    _CLASSES[cls.__name__] = cls


def save_regressor(regressor: Any, saving: Saving, *, fitted: bool = True) -> dict[str, Any]:
    """Return the description of a regressor, as JSON; of its parameters alone if not `fitted`.

    Parameters
    ----------
    regressor : IBUGRegressor, CBURegressor or ProbabilisticEnsemble
        The regressor.
    saving : Saving
        The file that is being written.
    fitted : bool
        Whether what it has learned is stored, too.
    """
    name = type(regressor).__name__
    if _CLASSES.get(name) is not type(regressor):
        raise NotStorableError(
            f"ibug saves {sorted(_CLASSES)}; this {type(regressor).__module__}.{name} is none of them. Pickle and "
            "joblib take it, for those who trust the file."
        )
    return {"class": name, **regressor._describe(saving, fitted=fitted)}


def load_regressor(spec: Any, loading: Loading) -> Any:
    """Return the regressor of a description.

    Parameters
    ----------
    spec : dict
        What `save_regressor` has returned.
    loading : Loading
        The file that is being read.
    """
    if spec["class"] not in _CLASSES:
        raise FormatProblemError(
            f"an estimator of the class {spec['class']!r:.100} is not known to this version of ibug"
        )
    return _CLASSES[spec["class"]]._restore(spec, loading)


def inspect(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the manifest of a saved file: versions, members, parameters and learned values, as they are stored.

    No model is loaded, so that no library is needed. The manifest's own checksum and the members' sizes are checked.

    Parameters
    ----------
    path : path-like
        The file.
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
    return load_with_manifest(path, mmap=mmap, verify=verify, trusted=trusted)[0]


def load_with_manifest(
    path: str | os.PathLike[str],
    *,
    mmap: bool = True,
    verify: bool = True,
    trusted: Iterable[str] = (),
) -> tuple[Any, dict[str, Any]]:
    """Load a regressor and its manifest: what `load` and `inspect` return, with the file opened once.

    Parameters
    ----------
    path, mmap, verify, trusted
        As in `load`.

    Returns
    -------
    regressor : IBUGRegressor, CBURegressor or ProbabilisticEnsemble
        As it was saved.
    manifest : dict
        Versions, members, parameters, learned values and metadata, as they are stored.
    """
    if isinstance(trusted, str):
        raise InvalidInputError(f"trusted must be a list of names of types; got the text {trusted!r}.")
    with Container(path) as container:
        manifest = read_manifest(container)
        members = check_members(container, manifest, verify=verify)
        check_libraries(container, manifest)
        loading = Loading(container, members, mapped=mmap, trusted=tuple(trusted))
        try:
            return load_regressor(manifest["estimator"], loading), manifest
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
