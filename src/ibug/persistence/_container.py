"""The container: a zip file whose arrays can be mapped into memory; nothing in it is trusted before it is checked."""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from io import BytesIO
from typing import Any, BinaryIO, Self

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray

from ibug.exceptions import FileFormatError, NotStorableError

FORMAT, FORMAT_VERSION = "ibug", 1
MANIFEST, CHECKSUM = "manifest.json", "manifest.json.sha256"
DEFLATED, STORED = "deflate", "none"

# A member has one checksum for each block of this many bytes, so that all processors can take part in verifying.
_CHUNK_BYTES = 2**24
# Members have plain relative names: no absolute ones, no drive, no way up, nothing hidden.
_MEMBER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(/[A-Za-z0-9_][A-Za-z0-9_.\-]*){0,7}")
_MAX_MEMBERS = 20_000
_MAX_MANIFEST_BYTES = 2**26
_MAX_DEFLATE_RATIO = 1032  # no deflate stream grows by more when it is decompressed
_METHODS = {zipfile.ZIP_STORED: STORED, zipfile.ZIP_DEFLATED: DEFLATED}
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")  # signature, …, method, …, lengths of name and extra field

_ALIGNMENT = 64  # the kernel reads arrays by cache lines; NumPy pads the header of a .npy file to as many bytes
_PADDING = 0xD935  # the kind of an extra field that only fills, as Android's zipalign writes it
_ZIP64_BYTES, _EXTRA_HEADER_BYTES = 20, 4
_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest of a zip: the same estimator gives the same bytes, whenever it is saved
_MIN_COMPRESSED_BYTES = 256  # below it, compression saves nothing worth a look

# What NumPy writes before an array. Its own reader uses Python's parser, which counts how deep it is once for all
# threads, and complains where two of them use it at a time (https://github.com/python/cpython/issues/106905).
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|=]?[biufU][0-9]{1,9})', 'fortran_order': (False|True), "
    rb"'shape': \(((?:[0-9]{1,18}, )*[0-9]{1,18},?|)\), \} *\n"
)
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_MAX_NPY_HEADER_BYTES = 10_000

# How much memory a load may take: in proportion to what the file declares, and counted before it is taken.
LEAST_BYTES = 2**26  # what any load may take, however small the file: libraries' own tables, say
_TIMES_DECLARED = 4  # beyond that, this many times the declared and checked sizes of the file's members
# The most that a mark of JSON (a bracket, a comma, a colon) stands for in Python, with its place in a collection.
_BYTES_PER_MARK = 96
# The most marks of one JSON document, 400 MB: those of a table with 800,000 columns, or four million categories.
MOST_MARKS = 2**22


class FormatProblemError(Exception):
    """The content of a file is wrong; `reading` makes a FileFormatError of it, with the name of the file."""


class Budget:
    """The memory that is left for the rest of a load of a file whose members declare this many bytes, decompressed."""

    def __init__(self, declared: int) -> None:
        self.limit = LEAST_BYTES + _TIMES_DECLARED * declared
        self.spent = 0

    def spend(self, n_bytes: int, what: str) -> None:
        """Take some of it, or raise FormatProblemError where there is not as much."""
        self.spent += n_bytes
        if self.spent > self.limit:
            raise FormatProblemError(
                f"{what} would take its memory beyond {self.limit / 2**20:,.0f} MiB, the most for a file of this size: "
                "no file that ibug has saved needs as much"
            )


def json_bytes(text: bytes) -> int:
    """Return an upper bound of the memory that JSON takes in Python; raise FormatProblemError for too much.

    Nothing is parsed for it: each value but the first follows an opening bracket, a comma or a colon.
    """
    n_marks = 1 + sum(text.count(mark) for mark in (b"[", b"{", b",", b":"))
    if n_marks > MOST_MARKS:
        raise FormatProblemError(
            f"its JSON has {n_marks:,} brackets, commas and colons, more than {MOST_MARKS:,}: no file that ibug has "
            "saved has as many"
        )
    return 2 * len(text) + _BYTES_PER_MARK * n_marks


def memory_bytes() -> float:
    """Return how much memory the machine has; infinity where it does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def digest(data: bytes | bytearray | memoryview) -> str:
    """Return the SHA-256 of the data in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _chunk_ranges(n_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield where each chunk begins and ends; one empty chunk for no data."""
    for start in range(0, max(n_bytes, 1), _CHUNK_BYTES):
        yield start, min(start + _CHUNK_BYTES, n_bytes)


class ContainerWriter:
    """Writes members one after another to a new file, and at last the manifest that lists them."""

    def __init__(self, file: BinaryIO, *, compress: bool) -> None:
        self._file = file
        self._zip = zipfile.ZipFile(file, "w", allowZip64=True)
        self._compress = compress  # arrays; models always are
        self.members: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        # Where writing has failed, the end of the container cannot be written either, and the file is thrown away.
        with suppress(OSError, ValueError) if kind else nullcontext():
            self._zip.close()

    def add_bytes(self, name: str, data: bytes | bytearray) -> str:
        """Add a member, and return its name."""
        return self._add(name, [data], len(data), True)

    def add_array(self, name: str, array: NDArray[Any]) -> str:
        """Add an array as a .npy file, and return the member's name."""
        if array.dtype.hasobject:
            raise NotStorableError(f"The array {name!r} holds Python objects, which cannot be saved without pickle.")
        array = np.asarray(array, order="C")  # which leaves an array without axes as it is
        header = BytesIO()
        np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
        payload = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
        parts, size = [header.getvalue(), payload.data], header.tell() + len(payload)
        return self._add(name, parts, size, self._compress, dtype=array.dtype.str, shape=list(array.shape))

    def finish(self, manifest: dict[str, Any]) -> None:
        """Write the manifest; leaving the context then writes the end of the container."""
        text = json.dumps({**manifest, "members": self.members}, indent=1, allow_nan=False, ensure_ascii=False)
        data = text.encode("utf-8")
        checksum = f"{digest(data)}  {MANIFEST}\n".encode("ascii")  # as `sha256sum --check` reads it
        self._write(MANIFEST, [data], len(data), zipfile.ZIP_DEFLATED)
        self._write(CHECKSUM, [checksum], len(checksum), zipfile.ZIP_STORED)

    def _add(self, name: str, parts: list[Any], size: int, compress: bool, **more: Any) -> str:
        assert name not in self.members, f"two members are called {name!r}"
        pack = compress and size >= _MIN_COMPRESSED_BYTES
        info = self._write(name, parts, size, zipfile.ZIP_DEFLATED if pack else zipfile.ZIP_STORED)
        # The checksums are of what is in the file, read again.
        self._file.seek(self._zip.start_dir - info.compress_size)
        digests = [digest(self._file.read(stop - start)) for start, stop in _chunk_ranges(info.compress_size)]
        self.members[name] = {
            "size": size,
            "stored": info.compress_size,
            "compression": DEFLATED if pack else STORED,
            "sha256": digests,
            **more,
        }
        return name

    def _write(self, name: str, parts: list[Any], size: int, method: int) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(name, _DATE)
        info.compress_type = method
        info.file_size = size
        info.external_attr = 0o644 << 16
        # An extra field moves the member's data to a multiple of 64 bytes.
        before = self._zip.start_dir + _LOCAL_HEADER.size + len(name.encode("utf-8")) + _ZIP64_BYTES
        n_bytes = -(before + _EXTRA_HEADER_BYTES) % _ALIGNMENT
        info.extra = struct.pack("<HH", _PADDING, n_bytes) + bytes(n_bytes)
        with self._zip.open(info, "w", force_zip64=True) as member:
            for part in parts:
                member.write(part)
        return info


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
    """An open file, its members found and their places checked."""

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

    def __exit__(self, *error: object) -> None:
        with suppress(BufferError):  # where arrays are mapped on it, it is closed when the last of them is gone
            self._map.close()

    @property
    def names(self) -> set[str]:
        """The names of the members."""
        return set(self._places)

    def error(self, reason: str) -> FileFormatError:
        """Make the error for this file."""
        return FileFormatError(f"{self.path!r} cannot be loaded: {reason}.")

    def sizes(self, name: str) -> dict[str, Any]:
        """Return sizes and compression of a member, which the manifest must agree with."""
        place = self._places[name]
        return {"size": place.size, "stored": place.stored, "compression": place.compression}

    def digests(self, name: str) -> list[str]:
        """Return the checksums of a member's chunks as they lie in the file, made by several threads."""
        with self._raw(name) as raw:
            chunks = [raw[start:stop] for start, stop in _chunk_ranges(len(raw))]
            if len(chunks) == 1:
                return [digest(chunks[0])]
            with ThreadPoolExecutor(min(cpu_count(), len(chunks))) as pool:
                return list(pool.map(digest, chunks))

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
        if mapped and self._places[name].compression == STORED:
            buffer: Any = self._raw(name)
        else:
            buffer = bytearray(self.read(name))  # a writable array, as others are
        try:
            found_shape, fortran, found, offset = read_npy_header(buffer)
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
        if len(infos) > _MAX_MEMBERS:
            raise self.error(f"it has {len(infos)} members, more than any file of ibug")
        places: dict[str, _Place] = {}
        for info in infos:
            self._check_info(info, places)
            places[info.filename] = self._place(info, end)
        for name in (MANIFEST, CHECKSUM):
            if name not in places:
                raise self.error(f"it is a zip file without {name}, so not one that ibug has saved")
            if places[name].size > _MAX_MANIFEST_BYTES:
                raise self.error(f"its {name} is absurdly large ({places[name].size} bytes)")
        before = 0
        for place in sorted(places.values(), key=lambda place: place.start):
            if place.start < before:
                raise self.error("its members overlap")
            before = place.stop
        return places

    def _what_it_is(self, error: Exception) -> str:
        start = self._map[:4]
        if start == b"PK\x03\x04":
            return f"it is truncated or damaged ({error})"
        if start[:1] == b"\x80":
            return "it looks like a pickle. Where you trust it, use joblib.load or pickle.load; ibug.load runs no code"
        return f"it is not a file that ibug has saved ({error})"

    def _check_info(self, info: zipfile.ZipInfo, places: dict[str, _Place]) -> None:
        name, mode = info.filename, info.external_attr >> 16
        if not _MEMBER_NAME.fullmatch(name) or len(name) > 255:
            raise self.error(f"a member has the name {name!r}, which ibug would not write")
        if name in places:
            raise self.error(f"it has two members with the name {name!r}")
        plain = stat.S_IFMT(mode) in (0, stat.S_IFREG)
        if info.flag_bits & 0x1 or info.compress_type not in _METHODS or not plain:
            raise self.error(f"its member {name!r} is encrypted, a link, or compressed in an unknown way")
        if info.file_size > _MAX_DEFLATE_RATIO * info.compress_size + 64:
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


def read_npy_header(buffer: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, whether the order is Fortran's, type, and length of the header of a .npy file that ibug writes."""
    start = bytes(buffer[: len(_NPY_MAGIC) + 2])
    if start[: len(_NPY_MAGIC)] != _NPY_MAGIC or len(start) != len(_NPY_MAGIC) + 2:
        raise ValueError("it does not begin as a .npy file of version 1.0 does")
    n_bytes = len(start) + int.from_bytes(start[len(_NPY_MAGIC) :], "little")
    text = bytes(buffer[len(start) : n_bytes])
    found = _NPY_HEADER.fullmatch(text) if n_bytes <= min(_MAX_NPY_HEADER_BYTES, len(buffer)) else None
    if found is None:
        raise ValueError(f"its header is none that ibug writes: {text[:100]!r}")
    descr, fortran, shape = found.groups()
    sizes = tuple(int(size) for size in shape.replace(b",", b" ").split())
    if len(sizes) == 1 and not shape.endswith(b","):
        raise ValueError("its shape is no tuple")
    return sizes, fortran == b"True", np.dtype(descr.decode("ascii")), n_bytes
