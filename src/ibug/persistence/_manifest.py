"""The manifest: what a file holds, who wrote it, and whether all of it is as it was written."""

from __future__ import annotations

import json
import math
import os
import platform
import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ibug._installed import DISTRIBUTION, VERSION
from ibug.exceptions import InvalidInputError, OlderLibraryWarning
from ibug.persistence._budget import json_bytes
from ibug.persistence._digest import digest
from ibug.persistence._format import CHECKSUM, FORMAT, FORMAT_VERSION, MANIFEST, STORED, FormatProblemError
from ibug.persistence._reading import Container

_PACKAGES = {"sklearn": "scikit-learn"}
_ALWAYS = ("numpy", "scipy", "sklearn")


def check_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a user's own entries of the manifest, if JSON knows them all."""
    try:
        kept = json.loads(json.dumps(dict(metadata or {}), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"metadata must be a dictionary of texts, finite numbers, lists and dictionaries of such; {error}."
        ) from error
    assert isinstance(kept, dict)
    return kept


def make_manifest(libraries: set[str], estimator: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest, without the members, which the writer adds."""
    names = dict.fromkeys([*_ALWAYS, *sorted(libraries)])
    versions = {_package(name): version(_package(name)) for name in names}
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "written_by": {"ibug": VERSION, **versions, "python": platform.python_version()},
        "needs": sorted(_package(name) for name in libraries),
        "estimator": estimator,
        "metadata": metadata,
    }


def read_manifest(container: Container) -> dict[str, Any]:
    """Return the manifest, after its own checksum and the version of the format have been checked."""
    data = container.read(MANIFEST)
    expected = container.read(CHECKSUM)
    if expected.split() != [digest(data).encode("ascii"), MANIFEST.encode("ascii")]:
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
    number = manifest.get("format_version")
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise container.error(f"the version of its format is {number!r:.100}")
    if number > FORMAT_VERSION:
        raise container.error(
            f"its format has version {number}, written by ibug {_writer(manifest)}, and this ibug {VERSION} "
            f"reads up to version {FORMAT_VERSION}. Install a newer one: pip install --upgrade {DISTRIBUTION}"
        )
    manifest.setdefault("metadata", {})
    kinds = {"members": dict, "written_by": dict, "needs": list, "estimator": dict, "metadata": dict}
    for name, kind in kinds.items():
        if not isinstance(manifest.get(name), kind):
            raise container.error(f"{name!r} of its {MANIFEST} is not as it should be")
    return manifest


def check_members(container: Container, manifest: dict[str, Any], *, verify: bool) -> dict[str, dict[str, Any]]:
    """Return the facts about the members, compared with the file: names, sizes and, if asked for, checksums."""
    members: dict[str, dict[str, Any]] = manifest["members"]
    expected, found = {MANIFEST, CHECKSUM, *members}, container.names
    if expected != found:
        raise container.error(
            f"its members are not those of its {MANIFEST}: missing {sorted(expected - found)[:5]}, unknown "
            f"{sorted(found - expected)[:5]}"
        )
    for name, facts in members.items():
        if not isinstance(facts, dict) or any(facts.get(k) != v for k, v in container.facts(name).items()):
            raise container.error(f"its member {name!r} does not have the size that its {MANIFEST} tells")
    _check_memory(container, members)
    if verify:
        for name, facts in members.items():
            if container.digests(name) != facts.get("sha256"):
                raise container.error(f"its member {name!r} is damaged (its checksum is another one)")
    return members


def _check_memory(container: Container, members: dict[str, dict[str, Any]]) -> None:
    """Refuse what the machine has no memory for, before any is taken; what can be mapped needs none."""
    needed = sum(facts["size"] for facts in members.values() if facts["compression"] != STORED)
    if needed > memory_bytes():
        raise container.error(
            f"it would need {needed / 2**30:.1f} GiB of memory, and this machine has {memory_bytes() / 2**30:.1f}. If "
            "that is meant, save it with compress=False, so that its arrays can be mapped"
        )


def memory_bytes() -> float:
    """Return how much memory the machine has; where it does not tell, there is no limit."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def check_libraries(container: Container, manifest: dict[str, Any]) -> None:
    """Warn of libraries that are older than those that wrote the file."""
    for name in filter(lambda name: isinstance(name, str), manifest["needs"]):
        wrote = manifest["written_by"].get(name)
        try:
            here = version(name)
        except (PackageNotFoundError, ValueError):
            continue  # told where it is needed
        if isinstance(wrote, str) and _as_numbers(here) < _as_numbers(wrote):
            warnings.warn(
                f"{container.path!r} was written with {name} {wrote}; {here} is installed, which may not read it as it "
                f"was meant: pip install --upgrade {name}.",
                OlderLibraryWarning,
                stacklevel=4,
            )


def _package(name: str) -> str:
    return _PACKAGES.get(name, name)


def _writer(manifest: dict[str, Any]) -> str:
    writer = manifest.get("written_by")
    return str(writer.get("ibug", "?"))[:50] if isinstance(writer, dict) else "?"


def _as_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, without what follows them: 1.2.3rc1 is (1, 2, 3)."""
    numbers = []
    for part in text.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits[:9]))
        if digits != part:
            break
    return tuple(numbers)
