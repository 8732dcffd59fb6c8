"""A client of one table of a replay server."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

from troupe import _native
from troupe.replay.batch import Batch
from troupe.replay.columns import Column, columns_of
from troupe.replay.writer import Writer


@dataclass(frozen=True)
class Info:
    """What a server reports about a table. `bytes` counts memory. `waiting` describes the waiting requests ("": none). `config` is None if the
    owner does not provide it."""

    protocol: int
    tables: List[str]
    items: int
    bytes: int
    inserted: int
    sampled: int
    updated_priorities: int
    late_priorities: int
    chunks_on_disk: int
    disk_bytes: int
    failed_spills: int
    waiting: str
    config: Optional[Dict[str, Any]]


class Client:
    """Connects to the table `table` ("": the only one) behind `endpoint`, "tcp://…" or "ipc://…", and asks for its columns.

    Times are in seconds. Any thread may call; calls take turns, and other calls run while one waits. On the same host, rows and samples go
    through shared memory unless `shared_memory` is False. `secret_key` and `server_key` are files of `troupe keys new`, for a server with
    keys. `window`: maximum number of insertions that are sent but not yet accepted, 1 to 64. `part_bytes`: maximum size of a batch's parts.

    In a process that was forked after the client was made, calls raise RuntimeError, and the arrays of earlier batches must not be read: they
    may be in shared memory, which a fork does not inherit. Copy them before the fork.
    """

    def __init__(
        self,
        endpoint: str,
        table: str = "",
        *,
        deadline: float = 10.0,
        secret_key: str = "",
        server_key: str = "",
        shared_memory: bool = True,
        window: int = 64,
        part_bytes: int = 48 << 20,
    ):
        self.endpoint, self.table = endpoint, table
        self._native = _native.ReplayClient(
            endpoint=endpoint,
            table=table,
            deadline=deadline,
            secret_key=str(secret_key),
            server_key=str(server_key),
            shared_memory=shared_memory,
            window=window,
            part_bytes=part_bytes,
        )
        self.columns: Tuple[Column, ...] = columns_of(self._native)
        self._places = {column.name: place for place, column in enumerate(self.columns)}

    @property
    def items_are(self) -> str:
        """A description of how items are made of steps; "" if the table has none."""
        return self._native.items_are

    def writer(self, reach: int = 1, *, id: Optional[int] = None, chunk_rows: int = 0) -> Writer:
        """Returns a writer of steps. Items may consist of its newest `reach` steps. `id`: a number that no other writer to this port has (None:
        a random one). `chunk_rows`: number of steps stored together; 0: about 1 MiB."""
        return Writer(self._native, self.columns, self.endpoint, secrets.randbits(64) if id is None else id, reach, chunk_rows)

    def sample(self, count: int, *, deadline: float = 10.0, patience: float = 0.0) -> Batch:
        """Returns a batch of `count` items. Raises TimeoutError if the limiter still blocks at the deadline; the next sample() with the same
        count then gets the answer. With `patience`, the server refuses a request that has waited for that time: RuntimeError with the reason."""
        parts = self._native.sample(count, deadline, patience)
        if parts is None:
            raise TimeoutError(
                f"no sample of {count} items from {self.endpoint} within {deadline} s; info().waiting describes the waiting requests"
            )
        return Batch(parts, self._places)

    def update_priorities(self, keys: Sequence[int], priorities: Sequence[float], *, deadline: float = 10.0) -> None:
        """Sets the priorities [n], from 0 to 1e12, of the items with `keys` [n] of a batch; removed items are skipped."""
        self._native.update_priorities(keys, priorities, deadline)

    def set_limiter(
        self,
        limiter: str,
        *,
        minimum_items: int = 1,
        samples_per_insert: float = 1.0,
        error_buffer: float = 1024.0,
        queue_items: int = 1,
        deadline: float = 10.0,
    ) -> None:
        """Replaces the limiter of the running table: "minimum_size", "samples_per_insert", "queue" or "stack"."""
        self._native.set_limiter(limiter, minimum_items, samples_per_insert, error_buffer, queue_items, deadline)

    def info(self, *, deadline: float = 10.0) -> Info:
        """Contents, counters and waiting requests."""
        return Info(**self._native.info(deadline))

    @property
    def in_flight(self) -> int:
        """Number of insertions that are sent but not yet accepted."""
        return self._native.in_flight()

    def flush(self, *, deadline: float = 10.0) -> None:
        """Returns when the server has accepted everything that was sent. Raises TimeoutError."""
        if not self._native.flush(deadline):
            raise TimeoutError(
                f"{self.endpoint} has not accepted all insertions within {deadline} s: {self.in_flight} are in flight; "
                "info().waiting says why"
            )

    def close(self) -> None:
        """Closes the connection. Insertions in flight are lost: call flush() first. Batches stay readable."""
        self._native.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
