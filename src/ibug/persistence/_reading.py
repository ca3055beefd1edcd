"""Reading the container: nothing of it is believed before it has been checked."""

from __future__ import annotations

import math
import mmap
import os
import stat
import struct
import zipfile
import zlib
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ibug.exceptions import FileFormatError
from ibug.persistence._digest import digests
from ibug.persistence._format import (
    CHECKSUM,
    DEFLATED,
    MANIFEST,
    MAX_DEFLATE_RATIO,
    MAX_MANIFEST_BYTES,
    MAX_MEMBERS,
    MEMBER_NAME,
    STORED,
)
from ibug.persistence._npy import read_header

if TYPE_CHECKING:
    from typing import Self  # in typing from Python 3.11 on

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")  # signature, …, method, …, lengths of name and extra field
_METHODS = {zipfile.ZIP_STORED: STORED, zipfile.ZIP_DEFLATED: DEFLATED}


@dataclass(frozen=True)
class _Place:
    """Where a member's data are in the file."""

    start: int
    stop: int
    size: int  # when decompressed
    compression: str

    @property
    def stored(self) -> int:
        return self.stop - self.start


class Container:
    """An open file, its members found and their places checked.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise self.error("it is empty")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            try:
                self._places = self._find_members(file)
            except BaseException:
                self._map.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(BufferError):  # where arrays are mapped on it, it is closed when the last of them is gone
            self._map.close()

    @property
    def names(self) -> set[str]:
        """The names of the members."""
        return set(self._places)

    def error(self, reason: str) -> FileFormatError:
        """Make the error for this file."""
        return FileFormatError(f"{self.path!r} cannot be loaded: {reason}.")

    def facts(self, name: str) -> dict[str, Any]:
        """Return sizes and compression of a member, as the manifest should tell them."""
        place = self._places[name]
        return {"size": place.size, "stored": place.stored, "compression": place.compression}

    def digests(self, name: str) -> list[str]:
        """Return the checksums of a member as it lies in the file."""
        with self._raw(name) as raw:
            return digests(raw)

    def read(self, name: str) -> bytes:
        """Return a member's data, decompressed."""
        place = self._places[name]
        with self._raw(name) as raw:
            if place.compression == STORED:
                return bytes(raw)
            inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            try:
                data = inflate.decompress(raw, place.size + 1)  # never more than was announced
            except zlib.error as error:
                raise self.error(f"its member {name!r} is damaged ({error})") from error
        if len(data) != place.size or not inflate.eof or inflate.unused_data:
            raise self.error(f"its member {name!r} does not have the {place.size} bytes that it should have")
        return data

    def array(self, name: str, dtype: Any, shape: Any, *, mapped: bool) -> NDArray[Any]:
        """Return a member as an array of the announced type and shape; read-only and in the file itself if `mapped`."""
        place = self._places[name]
        if mapped and place.compression == STORED:
            buffer: Any = memoryview(self._map)[place.start : place.stop]
        else:
            buffer = bytearray(self.read(name))  # a writable array, as others are
        try:
            found_shape, fortran, found, offset = read_header(buffer)
            n_bytes = math.prod(found_shape) * found.itemsize
            fits = found_shape == tuple(shape) and found == np.dtype(dtype) and not fortran
            if not fits or found.itemsize == 0 or offset + n_bytes != len(buffer):
                raise self.error(f"its array {name!r} is not the one that its manifest describes")
            if offset == len(buffer):
                return np.empty(found_shape, found)
            return np.frombuffer(buffer, found, offset=offset).reshape(found_shape)
        except (ValueError, TypeError, OverflowError) as error:
            if isinstance(error, FileFormatError):
                raise
            raise self.error(f"its array {name!r} cannot be read ({error})") from error

    def _raw(self, name: str) -> memoryview:
        place = self._places[name]
        return memoryview(self._map)[place.start : place.stop]

    def _find_members(self, file: Any) -> dict[str, _Place]:
        try:
            with zipfile.ZipFile(file) as archive:
                infos, end = archive.infolist(), archive.start_dir
        except Exception as error:  # zipfile raises a dozen kinds of errors on damaged files
            raise self.error(self._what_it_is(error)) from error
        if len(infos) > MAX_MEMBERS:
            raise self.error(f"it has {len(infos)} members, more than any file of ibug")
        places: dict[str, _Place] = {}
        for info in infos:
            self._check_info(info, places)
            places[info.filename] = self._place(info, end)
        for name in (MANIFEST, CHECKSUM):
            if name not in places:
                raise self.error(f"it is a zip file without {name}, so not one that ibug has saved")
            if places[name].size > MAX_MANIFEST_BYTES:
                raise self.error(f"its {name} is absurdly large ({places[name].size} bytes)")
        self._check_overlap(places)
        return places

    def _what_it_is(self, error: Exception) -> str:
        start = self._map[:4]
        if start == b"PK\x03\x04":
            return f"it is truncated or damaged ({error})"
        if start[:1] == b"\x80":
            return "it looks like a pickle. Where you trust it, use joblib.load or pickle.load; ibug.load runs no code"
        return f"it is not a file that ibug has saved ({error})"

    def _check_info(self, info: zipfile.ZipInfo, places: dict[str, _Place]) -> None:
        name = info.filename
        if not MEMBER_NAME.fullmatch(name) or len(name) > 255:
            raise self.error(f"a member has the name {name!r}, which ibug would not write")
        if name in places:
            raise self.error(f"it has two members with the name {name!r}")
        mode = info.external_attr >> 16
        if info.flag_bits & 0x1 or info.compress_type not in _METHODS or (mode and not _is_plain(mode)):
            raise self.error(f"its member {name!r} is encrypted, a link, or compressed in an unknown way")
        if info.file_size > MAX_DEFLATE_RATIO * info.compress_size + 64:
            raise self.error(
                f"its member {name!r} claims an absurd size: {info.file_size} bytes from {info.compress_size}"
            )

    def _place(self, info: zipfile.ZipInfo, end: int) -> _Place:
        """Find a member's data behind its local header, which must say the same as the directory."""
        at, size = info.header_offset, _LOCAL_HEADER.size
        damaged = self.error(f"the header of its member {info.filename!r} is damaged")
        if at < 0 or at + size > len(self._map):
            raise damaged
        fields = _LOCAL_HEADER.unpack(self._map[at : at + size])
        n_name, n_extra = fields[-2:]
        name = self._map[at + size : at + size + n_name]
        if fields[0] != b"PK\x03\x04" or fields[3] != info.compress_type or name != info.filename.encode("utf-8"):
            raise damaged
        start = at + size + n_name + n_extra
        stop = start + info.compress_size
        if stop > end:
            raise self.error(f"it is truncated: its member {info.filename!r} goes beyond the end")
        compression = _METHODS[info.compress_type]
        if compression == STORED and info.file_size != info.compress_size:
            raise damaged
        return _Place(start, stop, info.file_size, compression)

    def _check_overlap(self, places: dict[str, _Place]) -> None:
        before = 0
        for place in sorted(places.values(), key=lambda place: place.start):
            if place.start < before:
                raise self.error("its members overlap")
            before = place.stop


def _is_plain(mode: int) -> bool:
    return stat.S_IFMT(mode) in (0, stat.S_IFREG)
