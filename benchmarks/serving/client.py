"""A small HTTP client for load on loopback: bounded in time and number, and light beside the service it measures."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

HOST = "127.0.0.1"


@dataclass
class Load:
    """What a load has measured."""

    seconds: float = 0.0
    codes: Counter[int] = field(default_factory=Counter)  # answers by status; 0 is a lost connection
    latencies: list[float] = field(default_factory=list)  # in seconds, for answers with status 200

    @property
    def rate(self) -> float:
        """Answers with status 200 per second."""
        return self.codes[200] / self.seconds

    def quantile(self, level: float) -> float:
        """Return a quantile of the latencies, in milliseconds."""
        return 1000 * float(np.quantile(self.latencies, level)) if self.latencies else float("nan")


class Connection:
    """One kept-alive connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: bytes) -> int:
        """Send a request and return the status of its answer, which is read to its end."""
        if self.writer is None or self.reader is None:
            self.reader, self.writer = await asyncio.open_connection(HOST, self.port)
        head = f"POST {path} HTTP/1.1\r\nhost: {HOST}\r\ncontent-type: application/json\r\n"
        self.writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        status, *headers = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in headers)}
        await self.reader.readexactly(int(fields["content-length"]))
        if fields.get("connection") == "close":
            await self.close()
        return int(status.split()[1])

    async def close(self) -> None:
        """Close the connection; the next request opens another one."""
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


async def load(
    port: int,
    path: str,
    bodies: list[bytes],
    *,
    connections: int,
    seconds: float = float("inf"),
    requests: int | None = None,
    during: Callable[[Load], Awaitable[Any]] | None = None,
) -> Load:
    """Send requests over some connections until the time is over or their number is reached."""
    found = Load()
    start = time.perf_counter()
    left = requests if requests is not None else 10**9

    async def client(place: int) -> None:
        nonlocal left
        connection = Connection(port)
        while left > 0 and time.perf_counter() - start < seconds:
            left -= 1
            began = time.perf_counter()
            try:
                code = await connection.post(path, bodies[(place + left) % len(bodies)])
            except (OSError, asyncio.IncompleteReadError):
                code = 0
                await connection.close()
                await asyncio.sleep(0.01)
            found.codes[code] += 1
            if code == 200:
                found.latencies.append(time.perf_counter() - began)
            elif code == 503:
                await asyncio.sleep(0.05)  # the service asks for a second; a client that obeys would be no overload
        await connection.close()

    work = [client(place) for place in range(connections)]
    if during is not None:
        work.append(during(found))
    await asyncio.gather(*work)
    found.seconds = time.perf_counter() - start
    return found
