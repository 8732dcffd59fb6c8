"""Writes to, samples from and manages Troupe's replay tables; README.md has examples.

Mistakes of the caller raise ValueError, TypeError or KeyError; a server that refuses raises RuntimeError in its own words, one that gives no
sign of life ShardSilent (a ConnectionError), and a limiter that lets nothing through before the deadline TimeoutError.
"""

from troupe_replay._native import ShardSilent
from troupe_replay.batch import Batch, Part
from troupe_replay.client import Client, Column, Info
from troupe_replay.writer import Shape, Writer

__all__ = ["Batch", "Client", "Column", "Info", "Part", "Shape", "ShardSilent", "Writer"]
__version__ = "0.1.0"
