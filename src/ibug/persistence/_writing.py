"""Writing the container: a zip whose arrays lie where memory can be mapped on them."""

from __future__ import annotations

import json
import struct
import zipfile
from contextlib import nullcontext, suppress
from io import BytesIO
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ibug.exceptions import NotStorableError
from ibug.persistence._digest import chunk_ranges, digest
from ibug.persistence._format import CHECKSUM, DEFLATED, MANIFEST, STORED

if TYPE_CHECKING:
    from typing import Self  # in typing from Python 3.11 on

# The kernel reads arrays by cache lines; NumPy pads the header of a .npy file to as many bytes.
_ALIGNMENT = 64
_PADDING = 0xD935  # the kind of an extra field that only fills, as Android's zipalign writes it
# The same estimator gives the same bytes, whenever it is saved: the earliest date that a zip can tell.
_DATE = (1980, 1, 1, 0, 0, 0)
_LOCAL_HEADER_BYTES, _ZIP64_BYTES, _EXTRA_HEADER_BYTES = 30, 20, 4
# Below it, compression saves nothing worth a look.
_LEAST_COMPRESSED = 256


class ContainerWriter:
    """Writes members one after another, and at last the manifest that lists them.

    Parameters
    ----------
    file
        A new file, open for writing and reading.
    compress
        Compress arrays; else they are stored as they are, and can be mapped into memory. Models always are.
    """

    def __init__(self, file: BinaryIO, *, compress: bool) -> None:
        self._file = file
        self._zip = zipfile.ZipFile(file, "w", allowZip64=True)
        self._compress = compress
        self.members: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Where writing has failed, the end of the container cannot be written either, and nobody will read it.
        with suppress(OSError, ValueError) if kind else nullcontext():
            self._zip.close()

    def add_bytes(self, name: str, data: bytes | bytearray, **facts: Any) -> str:
        """Add a member, and return its name."""
        self._add(name, [data], len(data), True, facts)
        return name

    def add_array(self, name: str, array: NDArray[Any]) -> str:
        """Add an array as a .npy file, and return the member's name."""
        if array.dtype.hasobject:
            raise NotStorableError(f"The array {name!r} holds Python objects, which cannot be saved without pickle.")
        array = np.asarray(array, order="C")  # which leaves an array without axes as it is
        header = _npy_header(array)
        payload = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
        facts = {"dtype": array.dtype.str, "shape": list(array.shape)}
        self._add(name, [header, payload.data], len(header) + len(payload), self._compress, facts)
        return name

    def finish(self, manifest: dict[str, Any]) -> None:
        """Write the manifest; leaving the context then writes the end of the container."""
        text = json.dumps({**manifest, "members": self.members}, indent=1, allow_nan=False, ensure_ascii=False)
        data = text.encode("utf-8")
        # As `sha256sum --check` reads it.
        checksum = f"{digest(data)}  {MANIFEST}\n".encode("ascii")
        self._write(MANIFEST, [data], len(data), zipfile.ZIP_DEFLATED)
        self._write(CHECKSUM, [checksum], len(checksum), zipfile.ZIP_STORED)

    def _add(self, name: str, parts: list[Any], size: int, compress: bool, facts: dict[str, Any]) -> None:
        assert name not in self.members, f"two members are called {name!r}"
        pack = compress and size >= _LEAST_COMPRESSED
        info = self._write(name, parts, size, zipfile.ZIP_DEFLATED if pack else zipfile.ZIP_STORED)
        self.members[name] = {
            "size": size,
            "stored": info.compress_size,
            "compression": DEFLATED if pack else STORED,
            "sha256": self._digests(info),
            **facts,
        }

    def _write(self, name: str, parts: list[Any], size: int, method: int) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(name, _DATE)
        info.compress_type = method
        info.file_size = size
        info.external_attr = 0o644 << 16
        info.extra = self._padding(name)
        with self._zip.open(info, "w", force_zip64=True) as member:
            for part in parts:
                member.write(part)
        return info

    def _padding(self, name: str) -> bytes:
        """Return the extra field that moves the member's data to a multiple of 64 bytes."""
        before = self._zip.start_dir + _LOCAL_HEADER_BYTES + len(name.encode("utf-8")) + _ZIP64_BYTES
        n_bytes = -(before + _EXTRA_HEADER_BYTES) % _ALIGNMENT
        return struct.pack("<HH", _PADDING, n_bytes) + bytes(n_bytes)

    def _digests(self, info: zipfile.ZipInfo) -> list[str]:
        """Return the checksums of what is in the file, read again."""
        start = self._zip.start_dir - info.compress_size
        self._file.seek(start)
        return [digest(self._file.read(stop - begin)) for begin, stop in chunk_ranges(info.compress_size)]


def _npy_header(array: NDArray[Any]) -> bytes:
    header = BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    return header.getvalue()
