"""What is shared by all parts while one file is written or read."""

from __future__ import annotations

import re
from typing import Any

from numpy.typing import NDArray

from ibug.persistence._budget import Budget
from ibug.persistence._digest import digest
from ibug.persistence._format import FormatProblemError
from ibug.persistence._reading import Container
from ibug.persistence._values import Decoder, Encoder
from ibug.persistence._writing import ContainerWriter

#: Smaller arrays are read into memory even where they could be mapped: a page of their own would be wasted on them.
LEAST_MAPPED_BYTES = 2**16


class Saving:
    """A file that is being written.

    Parameters
    ----------
    writer : ContainerWriter
        The open file.
    trusted : tuple of str
        Types beyond those of scikit-learn, NumPy and SciPy that a scikit-learn model may hold.
    """

    def __init__(self, writer: ContainerWriter, trusted: tuple[str, ...] = ()) -> None:
        self.writer = writer
        self.trusted = trusted
        self.encoder = Encoder(self.add_array)
        self.libraries: set[str] = set()
        self.model_digests: list[str] = []

    def need(self, library: str) -> None:
        """Remember that a library is needed to read the file."""
        self.libraries.add(library)

    def add_array(self, where: str, array: NDArray[Any]) -> str:
        """Store an array."""
        return self.writer.add_array(self._free(f"arrays/{_plain(where)}", ".npy"), array)

    def add_model(self, data: bytes | bytearray, extension: str) -> str:
        """Store a model in its library's format."""
        self.model_digests.append(digest(data))
        return self.writer.add_bytes(f"models/{len(self.model_digests)}{extension}", data)

    def _free(self, name: str, extension: str) -> str:
        candidate, n = f"{name}{extension}", 1
        while candidate in self.writer.members:
            n += 1
            candidate = f"{name}-{n}{extension}"
        return candidate


class Loading:
    """A file that is being read.

    Parameters
    ----------
    container
        The open file.
    manifest : dict
        The manifest, checked.
    members : dict
        Its facts about the members, checked.
    mapped
        Map arrays into memory where they are not compressed.
    trusted
        Types beyond those of scikit-learn and NumPy that a scikit-learn model may hold.
    """

    def __init__(
        self,
        container: Container,
        manifest: dict[str, Any],
        members: dict[str, dict[str, Any]],
        *,
        mapped: bool,
        trusted: tuple[str, ...],
    ) -> None:
        self.container = container
        self.manifest = manifest
        self.members = members
        self.mapped = mapped
        self.trusted = trusted
        self.budget = Budget(sum(facts["size"] for facts in members.values()))
        self.model_digests: list[str] = []
        self.decoder = Decoder(self.array)
        self._read: set[str] = set()

    def array(self, name: str) -> NDArray[Any]:
        """Return the array of a member, which nothing else in the file mentions."""
        facts = self._facts(name)
        mapped = self.mapped and facts["size"] >= LEAST_MAPPED_BYTES
        return self.container.array(name, facts["dtype"], facts["shape"], mapped=mapped)

    def model(self, name: str) -> bytes:
        """Return the bytes of a model."""
        self._facts(name)
        data = self.container.read(name)
        self.model_digests.append(digest(data))
        return data

    def _facts(self, name: Any) -> dict[str, Any]:
        if not isinstance(name, str) or name not in self.members:
            raise FormatProblemError(f"it has no member {name!r:.100}")
        if name in self._read:
            raise FormatProblemError(f"it mentions its member {name!r} more than once")
        self._read.add(name)
        facts = self.members[name]
        self.budget.spend(facts["size"], f"its member {name!r}")
        return facts


def _plain(where: str) -> str:
    """Make a member's name of the way to a value."""
    parts = [re.sub(r"[^A-Za-z0-9_\-]+", "_", part).strip("-")[:60] or "_" for part in where.split("/")[:6]]
    return "/".join(parts)
