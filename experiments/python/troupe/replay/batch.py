"""Sampled items as NumPy arrays that view the memory in which they arrived."""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, Sequence

import numpy as np

from troupe import _native


class Part:
    """Items of a batch in one block of memory, which is kept until its last array is gone; nothing is copied.

    A part from a table in this process belongs to the caller. A part from a server is read-only and may be in memory that the server shares,
    of which there are 64 MiB for each client: copy what you keep for long.
    """

    __slots__ = ("_native", "_places")

    def __init__(self, native: _native.ReplayPart, places: Mapping[str, int]):
        self._native = native
        self._places = places

    def __len__(self) -> int:
        return self._native.items

    def rows_of_all(self, column: str) -> np.ndarray:
        """[rows of all items, *column's shape]: the rows of all items, item by item."""
        return self._native.rows(_place(self._places, column))

    def first(self, column: str) -> np.ndarray:
        """uint64 [items + 1]: item i has the rows [first[i], first[i + 1]) of rows_of_all()."""
        return self._native.first(_place(self._places, column))

    def rows(self, column: str, item: int) -> np.ndarray:
        """[rows, *column's shape] of one item."""
        if not 0 <= item < len(self):
            raise IndexError(f"item {item} of a part of {len(self)}")
        first = self.first(column)
        return self.rows_of_all(column)[int(first[item]) : int(first[item + 1])]

    def of_items(self, what: str) -> np.ndarray:
        """[items] of "key", "priority", "probability", "rows", "history", "times_sampled" or "table_items"."""
        return self._native.of_items(what)


class Batch:
    """Sampled items in the order in which they were chosen, in one part or several.

    `batch["pixels"]` is [items, rows, *shape] if all items have equally many rows, and [items, *shape] if the table's items are single steps.
    It is a view if the batch has only one part, otherwise a copy. `batch.rows("pixels", i)` is [rows, *shape] of one item and always a view.
    """

    __slots__ = ("_natives", "_places", "_single")

    def __init__(self, parts: Sequence[_native.ReplayPart], places: Mapping[str, int], single: bool = False):
        self._natives = parts
        self._places = places
        self._single = single

    @property
    def parts(self) -> List[Part]:
        """One part for each message; a single part for a table in this process."""
        return [Part(native, self._places) for native in self._natives]

    @property
    def columns(self) -> List[str]:
        """The names of the columns."""
        return list(self._places)

    def __len__(self) -> int:
        return sum(native.items for native in self._natives)

    def __getitem__(self, column: str) -> np.ndarray:
        place = _place(self._places, column)
        if len(self._natives) == 1:
            return self._natives[0].stacked(place, self._single)
        arrays = [native.stacked(place, self._single) for native in self._natives]
        if any(array.shape[1:] != arrays[0].shape[1:] for array in arrays):
            raise ValueError(f"the items show different numbers of rows of {column!r}; take rows({column!r}, item) of each")
        return np.concatenate(arrays)

    def rows(self, column: str, item: int) -> np.ndarray:
        """[rows, *column's shape] of one item, as a view."""
        at = item
        for part in self.parts:
            if 0 <= at < len(part):
                return part.rows(column, at)
            at -= len(part)
        raise IndexError(f"item {item} of a batch of {len(self)}")

    def items(self) -> Iterator[Dict[str, np.ndarray]]:
        """Iterates over the items; yields the columns of each as views."""
        for part in self.parts:
            for item in range(len(part)):
                yield {column: part.rows(column, item) for column in self._places}

    @property
    def keys(self) -> np.ndarray:
        """uint64 [items]: for update_priorities()."""
        return self._of_items("key")

    @property
    def priorities(self) -> np.ndarray:
        """float64 [items], at the time of sampling."""
        return self._of_items("priority")

    @property
    def probabilities(self) -> np.ndarray:
        """float64 [items]: the probability with which each item was chosen."""
        return self._of_items("probability")

    @property
    def window_rows(self) -> np.ndarray:
        """uint32 [items]: number of steps in each item's window."""
        return self._of_items("rows")

    @property
    def history(self) -> np.ndarray:
        """uint32 [items]: number of steps at the beginning of the window that are only history of the item."""
        return self._of_items("history")

    @property
    def times_sampled(self) -> np.ndarray:
        """uint32 [items], including this sample."""
        return self._of_items("times_sampled")

    @property
    def table_items(self) -> np.ndarray:
        """uint32 [items]: number of items in the table at the time of sampling."""
        return self._of_items("table_items")

    def _of_items(self, what: str) -> np.ndarray:
        arrays = [native.of_items(what) for native in self._natives]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _place(places: Mapping[str, int], column: str) -> int:
    try:
        return places[column]
    except KeyError:
        raise KeyError(f"there is no column {column!r}; the table has {', '.join(places)}") from None
