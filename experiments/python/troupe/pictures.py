"""Pictures that notebooks display."""

from __future__ import annotations

import math
import struct
import zlib
from typing import Any, Optional

import numpy as np

from troupe import _native

KINDS = {
    "rgb": (_native.PictureKind.COLOUR, np.uint8),
    "depth": (_native.PictureKind.DEPTH, np.float32),
    "segmentation": (_native.PictureKind.SEGMENTATION, np.int32),
}
_MOST_TILES = 64
_OBJECT_COLOURS = np.array([[37, 99, 235], [234, 88, 12], [22, 163, 74], [220, 38, 38], [147, 51, 234], [13, 148, 136], [202, 138, 4], [219, 39, 119]], np.uint8)


def check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(map(repr, KINDS))}")


def _colours(array: np.ndarray) -> Optional[np.ndarray]:
    """Converts pictures that troupe draws to uint8 [..., height, width, 1 or 3]; returns None for other arrays."""
    if array.dtype == np.uint8 and array.ndim in (3, 4) and array.shape[-1] in (1, 3):
        return array
    if array.dtype == np.float32 and array.ndim in (2, 3):  # metres: the nearest is white
        near = max(float(np.min(array, where=np.isfinite(array), initial=np.inf)), 1e-6)
        return (255 * near / np.maximum(np.nan_to_num(array, nan=np.inf), near)).astype(np.uint8)[..., None]
    if array.dtype == np.int32 and array.ndim in (3, 4) and array.shape[-1] == 2:  # object and type
        colours = _OBJECT_COLOURS[(array[..., 0] + 3 * array[..., 1]) % len(_OBJECT_COLOURS)]
        return np.where(array[..., :1] >= 0, colours, np.uint8(0))
    return None


def _tiled(pictures: np.ndarray) -> np.ndarray:
    """Arranges [n, height, width, c] in a grid that is about as wide as it is high."""
    pictures = pictures[:_MOST_TILES]
    count, height, width, channels = pictures.shape
    across = math.ceil(math.sqrt(count))
    down = math.ceil(count / across)
    tiles = np.zeros((down * across, height, width, channels), np.uint8)
    tiles[:count] = pictures
    return tiles.reshape(down, across, height, width, channels).swapaxes(1, 2).reshape(down * height, across * width, channels)


def png(array: np.ndarray) -> Optional[bytes]:
    """Returns a PNG of one picture, or of several in a grid: colours uint8 [height, width, 3 or 1], depths float32 [height, width], segmentations
    int32 [height, width, 2]; None for other arrays."""
    colours = _colours(array)
    if colours is None or not colours.size:
        return None
    if colours.ndim == 4:
        colours = _tiled(colours)
    height, width, channels = colours.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row follows its filter type: none
    rows[:, 1:] = colours.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)) + chunk(b"IEND", b"")


class Picture(np.ndarray):
    """A NumPy array that a notebook displays as one or several pictures: colours, depths or segmentations."""

    def _repr_png_(self) -> Optional[bytes]:
        return png(self.view(np.ndarray))


def shown(array: Any) -> Picture:
    """Returns a Picture that shares the array's memory."""
    return array.view(Picture)
