"""Steps into chunks, and items of any windows of the newest ones."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

from troupe import _native
from troupe.replay.columns import Column, converter

Shape = _native.ReplayShape


class Writer:
    """Stores time steps and makes items of windows of them; made by writer() of a table or a client. One thread at a time; a second one gets a
    RuntimeError.

    Steps are counted from 0: `rows` is the number of the one to come. What is written is sent by insert(); a step that several items show
    travels and is stored once.
    """

    def __init__(
        self, sink: _native.ReplaySink, columns: Tuple[Column, ...], where: str, id: int, reach: int, chunk_rows: int, deadline: float = 10.0
    ):
        self._columns, self._where, self._deadline = columns, where, deadline
        self._native = _native.ReplayWriter(sink, id, reach, chunk_rows, converter(columns))

    @property
    def rows(self) -> int:
        """The number of the step to come."""
        return self._native.rows

    @property
    def kept_rows(self) -> int:
        """How many of the newest steps items may lie in."""
        return self._native.kept_rows

    @property
    def pending_items(self) -> int:
        """Items that insert() has not taken yet."""
        return self._native.pending_items

    def append(self, **columns: Any) -> None:
        """A step: for each column an array of its shape, or what NumPy makes one of. An array of the column's type that is contiguous
        is copied once, into its place. Raises ValueError or TypeError with the column, what came and what is expected; nothing is
        stored then."""
        self._native.append(columns)

    def extend(self, **columns: Any) -> None:
        """Several steps: for each column an array [steps, *shape]."""
        self._native.extend(columns)

    def shape(self, **slices: Sequence[Tuple[int, int]]) -> Shape:
        """Which rows of its window an item shows of each column: pairs of first row and count. A column that is not named is not shown at
        all. Make one for each kind of item and use it again and again."""
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
        """An item of steps [first, first + count) (None: the newest), the first `history` of them older than what it is about. `table`:
        another one behind the same port that stores the same steps; these then travel and are stored once."""
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
        """Items of steps [first, first + count) for each first of range(begin, end, step)."""
        if step < 1:
            raise ValueError(f"step is {step} but must be 1 or more")
        self._native.add_items(begin, end, step, count, history, shape, priority, table)

    def insert(self, *, deadline: Optional[float] = None) -> None:
        """Sends the items added since and the steps they need, and does not wait until a server has accepted them (flush() does). Raises
        TimeoutError where the limiter, or the window of insertions, is full until the deadline (None: 10 s for a server, else now); the next
        insert() goes on."""
        if deadline is None:
            deadline = self._deadline
        if not self._native.insert(deadline):
            raise TimeoutError(f"{self._where} has not taken what was written within {deadline} s; info().waiting describes the waiting requests")
