"""Writes steps, and makes items of any windows of the newest ones."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

from troupe import _native
from troupe.replay.columns import Column, converter

Shape = _native.ReplayShape


class Writer:
    """Stores time steps and makes items of windows of them; writer() of a table or client makes it. Only one thread at a time may use it;
    a second one gets a RuntimeError.

    Steps are numbered from 0: `rows` is the number of the next one. insert() sends what was written; a step that several items contain is
    sent and stored once.
    """

    def __init__(
        self, sink: _native.ReplaySink, columns: Tuple[Column, ...], where: str, id: int, reach: int, chunk_rows: int, deadline: float = 10.0
    ):
        self._columns, self._where, self._deadline = columns, where, deadline
        self._native = _native.ReplayWriter(sink, id, reach, chunk_rows, converter(columns))

    @property
    def rows(self) -> int:
        """The number of the next step."""
        return self._native.rows

    @property
    def kept_rows(self) -> int:
        """How many of the newest steps items may contain."""
        return self._native.kept_rows

    @property
    def pending_items(self) -> int:
        """Number of items that insert() has not yet taken."""
        return self._native.pending_items

    def append(self, **columns: Any) -> None:
        """Appends a step: for each column, an array of its shape, or anything that NumPy can convert to one. A contiguous array of the
        column's type is copied only once, into its place. Raises ValueError or TypeError with the column, the value's type and what is
        expected; then nothing is stored."""
        self._native.append(columns)

    def extend(self, **columns: Any) -> None:
        """Appends several steps: for each column, an array [steps, *shape]."""
        self._native.extend(columns)

    def shape(self, **slices: Sequence[Tuple[int, int]]) -> Shape:
        """Returns a shape: for each column, the rows of its window that an item contains, as pairs of first row and count. Items contain
        nothing of a column that is not named. Make one shape for each kind of item and reuse it."""
        unknown = set(slices) - {column.name for column in self._columns}
        if unknown:
            raise ValueError(f"there is no column {sorted(unknown)[0]!r}; the table has {', '.join(c.name for c in self._columns)}")
        return Shape([[tuple(pair) for pair in slices.get(column.name, ())] for column in self._columns])

    def add_item(
        self,
        count: int,
        *,
        first: Optional[int] = None,
        history: int = 0,
        shape: Optional[Shape] = None,
        priority: float = 1.0,
        table: str = "",
    ) -> None:
        """Makes an item of the steps [first, first + count) (None: the newest ones); the first `history` steps are only its history. `table`:
        another table behind the same port with the same columns; shared steps are sent and stored once."""
        begin = self.rows - count if first is None else first
        self._native.add_items(begin, begin + 1, 1, count, history, shape, priority, table)

    def add_items(
        self,
        begin: int,
        end: int,
        count: int,
        *,
        step: int = 1,
        history: int = 0,
        shape: Optional[Shape] = None,
        priority: float = 1.0,
        table: str = "",
    ) -> None:
        """Makes an item of the steps [first, first + count) for each first in range(begin, end, step)."""
        if step < 1:
            raise ValueError(f"step is {step} but must be 1 or more")
        self._native.add_items(begin, end, step, count, history, shape, priority, table)

    def insert(self, *, deadline: Optional[float] = None) -> None:
        """Sends the items added since the last call and the steps they need. It does not wait until a server has accepted them; flush() does.
        Raises TimeoutError if the limiter or a full window of insertions still blocks at the deadline (None: 10 s for a server, otherwise
        immediately); the next insert() continues."""
        if deadline is None:
            deadline = self._deadline
        if not self._native.insert(deadline):
            raise TimeoutError(f"{self._where} has not taken what was written within {deadline} s; info().waiting describes the waiting requests")
