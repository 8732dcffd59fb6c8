"""The columns of a table, and conversion of values for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Tuple

import numpy as np

from troupe import _native


@dataclass(frozen=True)
class Column:
    """One field of a step: rows of `dtype` and `shape` (() is a single number)."""

    name: str
    dtype: np.dtype
    shape: Tuple[int, ...]


def columns_of(sink: _native.ReplaySink) -> Tuple[Column, ...]:
    """Returns the columns of a table or client."""
    return tuple(Column(name, np.dtype(kind), tuple(shape)) for name, kind, shape in sink.columns)


def converter(columns: Tuple[Column, ...]) -> Callable[[int, int, Any], np.ndarray]:
    """Returns a function that makes a contiguous array of a column's type from anything that NumPy can read. It raises ValueError or
    TypeError with the column, the value's type and what is expected. Whole numbers outside the column's range are refused."""

    def convert(place: int, leading: int, value: Any) -> np.ndarray:
        column = columns[place]
        array = np.asarray(value)
        expected = f"{column.dtype} [{', '.join((['steps'] if leading else []) + [str(n) for n in column.shape])}]"
        got = f"{array.dtype} [{', '.join(str(n) for n in array.shape)}]"
        if array.ndim != leading + len(column.shape) or array.shape[leading:] != column.shape:
            raise ValueError(f"column {column.name!r}: got {got}, expected {expected}")
        if array.dtype != column.dtype and not np.can_cast(array.dtype, column.dtype, "same_kind"):
            raise TypeError(f"column {column.name!r}: got {got}, expected {expected}; convert it with astype() if that is intended")
        if column.dtype.kind in "iu" and array.size > 0 and not np.can_cast(array.dtype, column.dtype):
            limits, low, high = np.iinfo(column.dtype), int(array.min()), int(array.max())
            if low < limits.min or high > limits.max:
                raise ValueError(f"column {column.name!r}: got {low if low < limits.min else high}; it must be from {limits.min} to {limits.max}")
        return np.array(array, dtype=column.dtype, order="C", copy=True, ndmin=array.ndim)

    return convert
