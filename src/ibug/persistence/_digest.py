"""Checksums of large members, by several threads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from joblib import cpu_count

from ibug.persistence._format import CHUNK_BYTES


def digest(data: bytes | bytearray | memoryview) -> str:
    """Return the SHA-256 of the data in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def chunk_ranges(n_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield where each chunk begins and ends; one empty chunk for no data."""
    for start in range(0, max(n_bytes, 1), CHUNK_BYTES):
        yield start, min(start + CHUNK_BYTES, n_bytes)


def digests(data: memoryview) -> list[str]:
    """Return the SHA-256 of each chunk of the data."""
    chunks = [data[start:stop] for start, stop in chunk_ranges(len(data))]
    if len(chunks) == 1:
        return [digest(chunks[0])]
    with ThreadPoolExecutor(min(cpu_count(), len(chunks))) as pool:
        return list(pool.map(digest, chunks))
