"""Sampled items as NumPy arrays that view the memory in which they arrived."""

from __future__ import annotations

from typing import Dict, Iterator, List, Sequence, Tuple

import numpy as np

from troupe_replay import _native


class Part:
    """Some items of a batch, as one message brought them.

    All arrays are read-only views: nothing is copied, and the message lives as long as any of them. It may lie in memory shared with the
    server, which has 64 MiB of it for each client: what is kept for long is better copied.
    """

    def __init__(self, native: _native.Part, names: Tuple[str, ...]):
        self._native = native
        self._places = {name: place for place, name in enumerate(names)}

    def __len__(self) -> int:
        return self._native.items

    def rows_of_all(self, column: str) -> np.ndarray:
        """[rows of all items, *column's shape]: one item's rows after another's."""
        return np.asarray(self._native.column(self._place(column)))

    def first(self, column: str) -> np.ndarray:
        """uint64 [items + 1]: item i shows rows first[i] to first[i + 1] of rows_of_all()."""
        return np.asarray(self._native.first(self._place(column)))

    def rows(self, column: str, item: int) -> np.ndarray:
        """[rows, *column's shape] of one item."""
        first = self.first(column)
        return self.rows_of_all(column)[int(first[item]) : int(first[item + 1])]

    def of_items(self, what: str) -> np.ndarray:
        """[items] of "key", "priority", "probability", "rows", "history", "times_sampled" or "table_items"."""
        return np.asarray(self._native.of_items(what))

    def _place(self, column: str) -> int:
        try:
            return self._places[column]
        except KeyError:
            raise KeyError(f"there is no column {column!r}; the table has {', '.join(self._places)}") from None


class Batch:
    """Items in the order in which they were chosen, in one part or several.

    `batch["pixels"]` is [items, rows, *shape] where all items show equally many rows: a view of a batch of one part, else a copy.
    `batch.rows("pixels", i)` is [rows, *shape] of one item and always a view.
    """

    def __init__(self, parts: Sequence[_native.Part], names: Tuple[str, ...]):
        self.parts: List[Part] = [Part(part, names) for part in parts]
        self.columns: Tuple[str, ...] = names
        self._begins = np.cumsum([0] + [len(part) for part in self.parts])

    def __len__(self) -> int:
        return int(self._begins[-1])

    def __getitem__(self, column: str) -> np.ndarray:
        arrays = []
        for part in self.parts:
            first = part.first(column)
            counts = np.diff(first)
            if (counts != counts[0]).any() or (arrays and counts[0] != arrays[0].shape[1]):
                raise ValueError(f"the items show different numbers of rows of {column!r}; take rows({column!r}, item) of each")
            rows = part.rows_of_all(column)
            arrays.append(rows.reshape((len(part), int(counts[0])) + rows.shape[1:]))
        return _joined(arrays)

    def rows(self, column: str, item: int) -> np.ndarray:
        """[rows, *column's shape] of one item, a view."""
        if not 0 <= item < len(self):
            raise IndexError(f"item {item} of a batch of {len(self)}")
        part = int(np.searchsorted(self._begins, item, side="right")) - 1
        return self.parts[part].rows(column, item - int(self._begins[part]))

    def items(self) -> Iterator[Dict[str, np.ndarray]]:
        """The columns of one item after another, views."""
        for item in range(len(self)):
            yield {column: self.rows(column, item) for column in self.columns}

    @property
    def keys(self) -> np.ndarray:
        """uint64 [items]: for update_priorities()."""
        return self._of_items("key")

    @property
    def priorities(self) -> np.ndarray:
        """float64 [items], when they were sampled."""
        return self._of_items("priority")

    @property
    def probabilities(self) -> np.ndarray:
        """float64 [items]: how likely each choice was."""
        return self._of_items("probability")

    @property
    def window_rows(self) -> np.ndarray:
        """uint32 [items]: steps in each item's window."""
        return self._of_items("rows")

    @property
    def history(self) -> np.ndarray:
        """uint32 [items]: how many of the window's first steps are older than what the item is about."""
        return self._of_items("history")

    @property
    def times_sampled(self) -> np.ndarray:
        """uint32 [items]: this sample counts."""
        return self._of_items("times_sampled")

    @property
    def table_items(self) -> np.ndarray:
        """uint32 [items]: how many items the table held."""
        return self._of_items("table_items")

    def _of_items(self, what: str) -> np.ndarray:
        return _joined([part.of_items(what) for part in self.parts])


def _joined(arrays: List[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
