"""Sampled items as NumPy arrays that view the memory in which they arrived."""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, Sequence

import numpy as np

from troupe import _native


class Part:
    """Some items of a batch in one piece of memory, which lives as long as any of its arrays; nothing is copied.

    A part of a table of this process belongs to the caller. A part from a server is read-only and may lie in memory shared with the server,
    which has 64 MiB of it for each client: what is kept for long is better copied.
    """

    __slots__ = ("_native", "_places")

    def __init__(self, native: _native.ReplayPart, places: Mapping[str, int]):
        self._native = native
        self._places = places

    def __len__(self) -> int:
        return self._native.items

    def rows_of_all(self, column: str) -> np.ndarray:
        """[rows of all items, *column's shape]: one item's rows after another's."""
        return self._native.rows(_place(self._places, column))

    def first(self, column: str) -> np.ndarray:
        """uint64 [items + 1]: item i shows rows first[i] to first[i + 1] of rows_of_all()."""
        return self._native.first(_place(self._places, column))

    def rows(self, column: str, item: int) -> np.ndarray:
        """[rows, *column's shape] of one item."""
        first = self.first(column)
        return self.rows_of_all(column)[int(first[item]) : int(first[item + 1])]

    def of_items(self, what: str) -> np.ndarray:
        """[items] of "key", "priority", "probability", "rows", "history", "times_sampled" or "table_items"."""
        return self._native.of_items(what)


class Batch:
    """Items in the order in which they were chosen, in one part or several.

    `batch["pixels"]` is [items, rows, *shape] where all items show equally many rows, and [items, *shape] of a table whose items are single
    steps: a view of a batch of one part, else a copy. `batch.rows("pixels", i)` is [rows, *shape] of one item and always a view.
    """

    __slots__ = ("_natives", "_places", "_single")

    def __init__(self, parts: Sequence[_native.ReplayPart], places: Mapping[str, int], single: bool = False):
        self._natives = parts
        self._places = places
        self._single = single

    @property
    def parts(self) -> List[Part]:
        """One of each message; one of a table of this process."""
        return [Part(native, self._places) for native in self._natives]

    @property
    def columns(self) -> List[str]:
        """The names."""
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
        """[rows, *column's shape] of one item, a view."""
        at = item
        for part in self.parts:
            if 0 <= at < len(part):
                return part.rows(column, at)
            at -= len(part)
        raise IndexError(f"item {item} of a batch of {len(self)}")

    def items(self) -> Iterator[Dict[str, np.ndarray]]:
        """The columns of one item after another, views."""
        for part in self.parts:
            for item in range(len(part)):
                yield {column: part.rows(column, item) for column in self._places}

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
        arrays = [native.of_items(what) for native in self._natives]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _place(places: Mapping[str, int], column: str) -> int:
    try:
        return places[column]
    except KeyError:
        raise KeyError(f"there is no column {column!r}; the table has {', '.join(places)}") from None
