"""Tables in this process, and the same methods for served ones."""

from __future__ import annotations

import html
import os
import secrets
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from troupe import _native
from troupe.keys import text_of
from troupe.replay.batch import Batch
from troupe.replay.client import Client, Info
from troupe.replay.columns import Column, columns_of, converter
from troupe.replay.writer import Writer

_KEYWORDS = ("last", "priority", "deadline", "self")  # of add()


class _Steps:
    """The methods that tables in this process and served ones share: from steps to items, from items to batches."""

    def __init__(self, sink: _native.ReplaySink, where: str, deadline: float, sequences: Mapping[str, Any]):
        self.columns: Tuple[Column, ...] = columns_of(sink)
        self._places = {column.name: place for place, column in enumerate(self.columns)}
        for name in self._places:
            if name in _KEYWORDS:
                raise ValueError(f"a column is named {name!r}, which is a keyword of add(); give it another name")
        self._sink, self._where, self._deadline = sink, where, deadline
        self.length: Optional[int] = sequences["length"]
        self._single = self.length is None
        self._steps = _native.ReplayWriter.of_sequences(
            sink,
            secrets.randbits(64),
            1 if self._single else self.length,
            sequences["period"],
            sequences["burn_in"],
            sequences["end"],
            sequences["chunk_rows"],
            converter(self.columns),
        )

    @property
    def names(self) -> List[str]:
        """The names of the columns."""
        return list(self._places)

    def add(self, *, last: bool = False, priority: float = 1.0, deadline: Optional[float] = None, **columns: Any) -> None:
        """Adds one step: for each column, an array of its shape or a number. `last`: it is the last step of its episode. An item that the step
        completes enters the table with `priority`. All steps of add() and extend() form one stream: if several environments play, use a
        writer() for each, or leave `length` out.

        Raises ValueError or TypeError with the column, the value's type and what is expected; then nothing is stored. Raises TimeoutError
        if the limiter still blocks at the deadline (None: 10 s for a server, otherwise immediately); the step is kept and enters with the
        next call, so do not add it again."""
        if deadline is None:
            deadline = self._deadline
        if not self._steps.add(columns, last, priority, deadline):
            self._full(deadline)

    def extend(
        self,
        columns: Mapping[str, Any],
        *,
        last: Optional[Sequence[bool]] = None,
        priority: float = 1.0,
        deadline: Optional[float] = None,
    ) -> None:
        """Adds several steps in order: for each column, an array [steps, *shape]. last[i]: step i is the last of its episode. Otherwise like add()."""
        if deadline is None:
            deadline = self._deadline
        if not self._steps.add_many(columns, last, priority, deadline):
            self._full(deadline)

    def begin_episode(self) -> None:
        """Makes the next step begin an episode although the previous one was not the last, for example because its environment failed."""
        self._steps.abandon()

    def writer(self, reach: Optional[int] = None, *, id: Optional[int] = None, chunk_rows: int = 0) -> Writer:
        """Returns a writer of a separate stream of steps. Items may consist of its newest `reach` (None: `length`) steps. `id`: a number that no
        other writer to this table has (None: a random one). `chunk_rows`: number of steps stored together; 0: about 1 MiB."""
        if reach is None:
            reach = self.length or 1
        number = secrets.randbits(64) if id is None else id
        return Writer(self._sink, self.columns, self._where, number, reach, chunk_rows, self._deadline)

    def _repr_html_(self) -> str:
        """Columns and contents as HTML, for notebooks."""
        info = self.info()
        config = info.config or {}
        rows = [
            ("columns", ", ".join(f"{column.name} {column.dtype}{list(column.shape)}" for column in self.columns)),
            ("items", f"{info.items:,}" + (f" of {config['max_items']:,}" if config else "") + ("" if self._single else f", sequences of {self.length} steps")),
            ("memory", f"{info.bytes / 1e6:,.1f} MB" + (f", {info.disk_bytes / 1e6:,.1f} MB on disk" if info.disk_bytes else "")),
            ("inserted, sampled", f"{info.inserted:,}, {info.sampled:,}"),
        ]
        if config:
            rows.append(("sampler, remover, limiter", ", ".join(str(config[key]) for key in ("sampler", "remover", "limiter"))))
        if info.waiting:
            rows.append(("waiting", info.waiting))
        cells = "".join(f'<tr><th style="text-align: left">{name}</th><td>{html.escape(text)}</td></tr>' for name, text in rows)
        return f"<p><code>{html.escape(self._where)}</code></p><table>{cells}</table>"

    def _full(self, deadline: float) -> None:
        raise TimeoutError(f"{self._where} accepts no insertion within {deadline} s; what was added is kept and enters with the next call")


class Table(_Steps):
    """A table in this process, without servers and sockets. Any thread may call; others run while items are copied or a call waits for the
    limiter. In a process that was forked after the table was made, calls raise RuntimeError.

    `columns`: name -> (shape, dtype), or only the shape for float32; dtypes are uint8, float32, float64 and int64. `keys`: the keys of
    `troupe list table-keys`: sampler, remover, limiter, max_items, max_bytes, compression, …; a mistake raises ValueError with the key, the
    value and the rule.

    add() and extend() make each step an item. With `length`, items are sequences of that many consecutive steps of an episode, one every
    `period` steps; the first `burn_in` steps are only warm-up. `end` says what happens to a sequence that the end of an episode cuts off: it is
    padded with zeros ("pad"), shortened ("shorten"), moved back ("shift") or dropped ("drop"). Steps that items share are stored once.
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        *,
        length: Optional[int] = None,
        period: int = 1,
        burn_in: int = 0,
        end: str = "pad",
        chunk_rows: int = 0,
        **keys: Any,
    ):
        if isinstance(columns, str):
            raise TypeError(f"columns is {columns!r}; it must map names to (shape, dtype); Table.connect({columns!r}) connects to a served table")
        texts = [_column_text(name, value) for name, value in columns.items()]
        assignments = [f"{key}={text_of(key, value)}" for key, value in keys.items() if value is not None]
        self._native = _native.ReplayTable(texts, assignments)
        super().__init__(
            self._native, "the table", 0.0, {"length": length, "period": period, "burn_in": burn_in, "end": end, "chunk_rows": chunk_rows}
        )

    @staticmethod
    def connect(
        endpoint: str,
        table: str = "",
        *,
        length: Optional[int] = None,
        period: int = 1,
        burn_in: int = 0,
        end: str = "pad",
        chunk_rows: int = 0,
        **options: Any,
    ) -> "ServedTable":
        """Returns the table `table` ("": the only one) behind `endpoint`, "tcp://…" or "ipc://…". `options` are those of Client."""
        sequences = {"length": length, "period": period, "burn_in": burn_in, "end": end, "chunk_rows": chunk_rows}
        return ServedTable(Client(endpoint, table, **options), sequences)

    def sample(self, count: int, *, deadline: float = 0.0) -> Batch:
        """Returns a batch of `count` items, chosen with replacement. Its arrays belong to the caller: no later call changes them, and they may be
        written to and outlive the table; their memory is reused when the last of them is gone. Raises TimeoutError with the reason if the
        limiter still blocks at the deadline, in seconds; to unblock it, another thread has to add steps."""
        return Batch((self._native.sample(count, deadline),), self._places, self._single)

    def update_priorities(self, keys: Sequence[int], priorities: Sequence[float]) -> None:
        """Sets the priorities [n], from 0 to 1e12, of the items with `keys` [n] of a batch; removed items are skipped."""
        self._native.update_priorities(keys, priorities)

    def set_limiter(
        self,
        limiter: str,
        *,
        minimum_items: int = 1,
        samples_per_insert: float = 1.0,
        error_buffer: float = 1024.0,
        queue_items: int = 1,
    ) -> None:
        """Replaces the limiter: "minimum_size", "samples_per_insert", "queue" or "stack"."""
        self._native.set_limiter(limiter, minimum_items, samples_per_insert, error_buffer, queue_items)

    def __len__(self) -> int:
        return self._native.items()

    def info(self) -> Info:
        """Contents, counters and waiting requests."""
        return Info(**self._native.info())

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes items, priorities, counters and the sampler's state to the folder `path`, with checksums. The folder is either complete or
        absent; an earlier one is replaced at the end. Other threads may use the table meanwhile."""
        self._native.save(os.fspath(path))

    def load(self, path: Union[str, os.PathLike], *, accept_other_configuration: bool = False) -> str:
        """Replaces the contents with saved ones; sampling continues exactly as after save(). Returns how the configuration differs from the
        saved one, or ""; with `accept_other_configuration`, this table's configuration applies. Raises RuntimeError if the folder is missing
        or damaged, or has other columns or another configuration; then nothing changes."""
        return self._native.load(os.fspath(path), accept_other_configuration)

    def clear(self) -> None:
        """Removes all items, and resets the counters, the sampler's state and the limiter, also after set_limiter(), to those of a new table."""
        self._native.clear()

    def flush(self) -> None:
        """Inserts the steps that the limiter has held back. Raises TimeoutError if it still blocks."""
        if not self._steps.insert(0.0):
            self._full(0.0)

    def close(self) -> None:
        """Does nothing: a table ends with its last reference. It is there for programs that also use served tables."""


class ServedTable(_Steps):
    """A table behind `troupe replay serve`; Table.connect() makes it. It has the methods of Table, but save(), load() and clear() are up to
    the server. `client` is the connection."""

    def __init__(self, client: Client, sequences: Mapping[str, Any]):
        self.client = client
        super().__init__(client._native, client.endpoint, 10.0, sequences)

    def sample(self, count: int, *, deadline: float = 10.0) -> Batch:
        """Like Table.sample(), but the arrays are read-only and may be in memory that the server shares: copy what you keep for long."""
        return Batch(self.client.sample(count, deadline=deadline)._natives, self._places, self._single)

    def update_priorities(self, keys: Sequence[int], priorities: Sequence[float]) -> None:
        """Like Table.update_priorities()."""
        self.client.update_priorities(keys, priorities)

    def set_limiter(self, limiter: str, **numbers: Any) -> None:
        """Like Table.set_limiter()."""
        self.client.set_limiter(limiter, **numbers)

    def __len__(self) -> int:
        return self.client.info().items

    def info(self) -> Info:
        """Like Table.info()."""
        return self.client.info()

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Raises RuntimeError."""
        raise RuntimeError(f"{self._where} saves its tables itself: start it with `troupe replay serve --checkpoints <folder>`")

    def load(self, path: Union[str, os.PathLike], *, accept_other_configuration: bool = False) -> str:
        """Raises RuntimeError."""
        raise RuntimeError(f"{self._where} loads its tables itself: start it with `troupe replay serve --checkpoints <folder>`")

    def clear(self) -> None:
        """Raises RuntimeError."""
        raise RuntimeError(f"{self._where} serves others, too; start it again without checkpoints for an empty table")

    def flush(self, *, deadline: float = 10.0) -> None:
        """Returns when the server has accepted everything that was added. Raises TimeoutError."""
        if not self._steps.insert(deadline):
            self._full(deadline)
        self.client.flush(deadline=deadline)

    def close(self) -> None:
        """Closes the connection; call flush() first."""
        self.client.close()


def _column_text(name: str, value: Any) -> str:
    """"name:type:3,84,84"."""
    if not isinstance(name, str) or not name or ":" in name:
        raise ValueError(f"a column is named {name!r}; a name is a string without colons")
    if hasattr(value, "shape") and hasattr(value, "dtype"):  # a space of Gymnasium, an array
        shape, kind = value.shape, value.dtype
    elif isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], (tuple, list)):
        shape, kind = value
    else:
        shape, kind = value, np.float32
    try:
        extents = (shape,) if isinstance(shape, (int, np.integer)) else tuple(int(extent) for extent in shape)
        text = f"{name}:{np.dtype(kind).name}"
    except (TypeError, ValueError) as mistake:
        raise TypeError(f"column {name!r} is {value!r}; it must be (shape, dtype), e.g. ((84, 84), 'uint8'): {mistake}") from None
    return text + (":" + ",".join(map(str, extents)) if extents else "")
