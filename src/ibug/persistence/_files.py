"""A file while it is written or read: its container, and the manifest that says what is in it."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from numpy.typing import NDArray

from ibug._installed import DISTRIBUTION, VERSION
from ibug._warnings import warn_user
from ibug.exceptions import IBUGError, InvalidInputError, OlderLibraryWarning
from ibug.persistence._atomic import replacing
from ibug.persistence._container import (
    CHECKSUM,
    FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    STORED,
    Budget,
    Container,
    ContainerWriter,
    FormatProblemError,
    digest,
    json_bytes,
    memory_bytes,
)
from ibug.persistence._values import Decoder, Encoder

# Smaller arrays are read into memory even where they could be mapped: a page of their own would be wasted on them.
_MIN_MAPPED_BYTES = 2**16
_PACKAGES = {"sklearn": "scikit-learn"}  # where the name to install is another than that to import
_ALWAYS = ("numpy", "scipy", "sklearn")


class Saving:
    """A file that is being written. `description`, which is to be set, is its content as JSON."""

    def __init__(self, writer: ContainerWriter, trusted: tuple[str, ...] = ()) -> None:
        self.writer = writer
        self.trusted = trusted  # names of types of the user's own that a scikit-learn model may hold
        self.encoder = Encoder(self.add_array)
        self.description: dict[str, Any] = {}
        self.libraries: set[str] = set()  # those that are needed to read the file
        self.model_digests: list[str] = []

    def add_array(self, where: str, array: NDArray[Any]) -> str:
        """Store an array, and return the member's name, which is made of the way to the value."""
        parts = [re.sub(r"[^A-Za-z0-9_\-]+", "_", part).strip("-")[:60] or "_" for part in where.split("/")[:6]]
        name = candidate = "/".join(["arrays", *parts])
        n = 1
        while f"{candidate}.npy" in self.writer.members:
            n += 1
            candidate = f"{name}-{n}"
        return self.writer.add_array(f"{candidate}.npy", array)

    def add_model(self, data: bytes | bytearray, extension: str) -> str:
        """Store a model in its library's format, and return the member's name."""
        self.model_digests.append(digest(data))
        return self.writer.add_bytes(f"models/{len(self.model_digests)}{extension}", data)


class Loading:
    """A file that is being read, its manifest and members checked. `description` is its content as JSON."""

    def __init__(
        self, container: Container, manifest: dict[str, Any], *, mapped: bool, trusted: tuple[str, ...]
    ) -> None:
        self.container = container
        self.manifest = manifest
        self.description: dict[str, Any] = manifest["estimator"]
        self.mapped = mapped  # whether arrays that are not compressed are
        self.trusted = trusted  # names of types of the user's own that a scikit-learn model may hold
        self.members: dict[str, dict[str, Any]] = manifest["members"]
        self.budget = Budget(sum(entry["size"] for entry in self.members.values()))
        self.decoder = Decoder(self.array)
        self.model_digests: list[str] = []
        self._read: set[str] = set()

    def array(self, name: str) -> NDArray[Any]:
        """Return the array of a member, which nothing else in the file mentions."""
        entry = self._entry(name)
        mapped = self.mapped and entry["size"] >= _MIN_MAPPED_BYTES
        return self.container.array(name, entry["dtype"], entry["shape"], mapped=mapped)

    def model(self, name: str) -> bytes:
        """Return the bytes of a model, which nothing else in the file mentions."""
        self._entry(name)
        data = self.container.read(name)
        self.model_digests.append(digest(data))
        return data

    def _entry(self, name: Any) -> dict[str, Any]:
        if not isinstance(name, str) or name not in self.members:
            raise FormatProblemError(f"it has no member {name!r:.100}")
        if name in self._read:
            raise FormatProblemError(f"it mentions its member {name!r} more than once")
        self._read.add(name)
        entry = self.members[name]
        self.budget.spend(entry["size"], f"its member {name!r}")
        return entry


@contextmanager
def writing(
    path: str | os.PathLike[str],
    *,
    compress: bool = True,
    metadata: Mapping[str, Any] | None = None,
    trusted: Iterable[str] = (),
) -> Iterator[Saving]:
    """Write a file: within the context its members are added, and its description is set."""
    if not isinstance(compress, bool):
        raise InvalidInputError(f"compress must be True or False; got {compress!r}.")
    names = check_trusted(trusted)
    try:
        own_entries = json.loads(json.dumps(dict(metadata or {}), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"metadata must be a dictionary of texts, finite numbers, lists and dictionaries of such; {error}."
        ) from error
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "The folder to save into does not exist, make it first", folder)
    with replacing(path) as file, ContainerWriter(file, compress=compress) as writer:
        saving = Saving(writer, names)
        yield saving
        packages = [_PACKAGES.get(name, name) for name in (*_ALWAYS, *sorted(saving.libraries))]
        versions = {package: version(package) for package in dict.fromkeys(packages)}
        writer.finish(
            {
                "format": FORMAT,
                "format_version": FORMAT_VERSION,
                "written_by": {"ibug": VERSION, **versions, "python": platform.python_version()},
                "needs": sorted(_PACKAGES.get(name, name) for name in saving.libraries),
                "estimator": saving.description,
                "metadata": own_entries,
            }
        )


@contextmanager
def reading(
    path: str | os.PathLike[str],
    *,
    mmap: bool = True,
    verify: bool = True,
    trusted: Iterable[str] = (),
    checksum: str | None = None,
) -> Iterator[Loading]:
    """Read a file, which must have this checksum if one is given; what is wrong with it becomes a FileFormatError."""
    with Container(path) as container:
        manifest = _read_manifest(container)
        if checksum is not None and _checksum(container) != checksum:
            raise container.error("it is not the file that was saved with the rest or tried first, but another one")
        _check_members(container, manifest["members"], verify=verify)
        _check_libraries(container, manifest)
        try:
            yield Loading(container, manifest, mapped=mmap, trusted=check_trusted(trusted))
        except FormatProblemError as problem:
            raise container.error(str(problem)) from problem
        except InvalidInputError as error:  # our own classes refuse values that were never saved
            raise container.error(str(error).rstrip(".")) from error
        except (IBUGError, MemoryError, Warning):  # a warning, where the user has made them errors
            raise
        except Exception as error:  # what a library says of them
            raise container.error(
                f"what it describes cannot be restored here ({type(error).__name__}: {error}). Either a library is too "
                f"old or too new (it was written with {manifest['written_by']}), or the file was changed"
            ) from error


def inspect(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the manifest of a saved file: versions, members, parameters and learned values, as they are stored.

    No model is loaded, so that no library is needed. The manifest's own checksum and the members' sizes are checked.
    """
    with Container(path) as container:
        manifest = _read_manifest(container)
        _check_members(container, manifest["members"], verify=False)
        return manifest


def checksum_of(path: str | os.PathLike[str]) -> str:
    """Return the checksum of a file's manifest, which has those of everything else."""
    with Container(path) as container:
        return _checksum(container)


def check_trusted(trusted: Iterable[str]) -> tuple[str, ...]:
    """Return names of types as a tuple; a text alone, whose letters would be taken for names, is refused."""
    if isinstance(trusted, str):
        raise InvalidInputError(f"trusted must be a list of names of types; got the text {trusted!r}.")
    return tuple(trusted)


def _checksum(container: Container) -> str:
    return container.read(CHECKSUM).split()[0].decode("ascii")


def _read_manifest(container: Container) -> dict[str, Any]:
    """Return the manifest, after its own checksum and the version of the format have been checked."""
    data = container.read(MANIFEST)
    if container.read(CHECKSUM).split() != [digest(data).encode("ascii"), MANIFEST.encode("ascii")]:
        raise container.error(f"its {MANIFEST} is damaged (its checksum is another one)")
    try:
        json_bytes(data)  # that there are not too many values
        manifest = json.loads(data.decode("utf-8"))
    except FormatProblemError as problem:
        raise container.error(str(problem)) from problem
    except (ValueError, RecursionError) as error:
        raise container.error(f"its {MANIFEST} is not valid JSON ({error})") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise container.error(f"its {MANIFEST} is not one of ibug")
    number, written_by = manifest.get("format_version"), manifest.get("written_by")
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise container.error(f"the version of its format is {number!r:.100}")
    if number > FORMAT_VERSION:
        writer = str(written_by.get("ibug", "?"))[:50] if isinstance(written_by, dict) else "?"
        raise container.error(
            f"its format has version {number}, written by ibug {writer}, and this ibug {VERSION} "
            f"reads up to version {FORMAT_VERSION}. Install a newer one: pip install --upgrade {DISTRIBUTION}"
        )
    kinds = {"members": dict, "written_by": dict, "needs": list, "estimator": dict, "metadata": dict}
    for name, kind in kinds.items():
        if not isinstance(manifest.get(name), kind):
            raise container.error(f"{name!r} of its {MANIFEST} is not as it should be")
    return manifest


def _check_members(container: Container, members: dict[str, dict[str, Any]], *, verify: bool) -> None:
    """Compare what the manifest says of the members with the file: names, sizes and, if asked for, checksums."""
    expected, found = {MANIFEST, CHECKSUM, *members}, container.names
    if expected != found:
        raise container.error(
            f"its members are not those of its {MANIFEST}: missing {sorted(expected - found)[:5]}, unknown "
            f"{sorted(found - expected)[:5]}"
        )
    for name, entry in members.items():
        if not isinstance(entry, dict) or any(entry.get(k) != v for k, v in container.sizes(name).items()):
            raise container.error(f"its member {name!r} does not have the size that its {MANIFEST} says")
    # What the machine has no memory for is refused before any is taken; what can be mapped needs none.
    needed, available = sum(f["size"] for f in members.values() if f["compression"] != STORED), memory_bytes()
    if needed > available:
        raise container.error(
            f"it would need {needed / 2**30:.1f} GiB of memory, and this machine has {available / 2**30:.1f}. If "
            "that is meant, save it with compress=False, so that its arrays can be mapped"
        )
    for name, entry in members.items() if verify else ():
        if container.digests(name) != entry.get("sha256"):
            raise container.error(f"its member {name!r} is damaged (its checksum is another one)")


def _check_libraries(container: Container, manifest: dict[str, Any]) -> None:
    """Warn of libraries that are older than those that wrote the file."""
    for name in filter(lambda name: isinstance(name, str), manifest["needs"]):
        written_with = manifest["written_by"].get(name)
        try:
            installed = version(name)
        except (PackageNotFoundError, ValueError):
            continue  # the error is raised where the library is needed
        if isinstance(written_with, str) and _version_numbers(installed) < _version_numbers(written_with):
            warn_user(
                f"{container.path!r} was written with {name} {written_with}; {installed} is installed, which may not "
                f"read it as it was meant: pip install --upgrade {name}.",
                OlderLibraryWarning,
            )


def _version_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, without what follows them: 1.2.3rc1 is (1, 2, 3)."""
    found = re.match(r"\d{1,9}(\.\d{1,9})*", text, re.ASCII)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
