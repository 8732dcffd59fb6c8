"""Experience replay: tables in this process, and clients of served ones.

    table = troupe.replay.Table({"observation": ((17,), "float32"), "action": ((6,), "float32"), "reward": ()}, sampler="prioritized")
    table.add(observation=observation, action=action, reward=reward)
    batch = table.sample(256)

`Table` keeps items in this process, `Table.connect("tcp://…")` has the same methods for a table behind `troupe replay serve`, and `Client` is
the connection itself.

Mistakes of the caller raise ValueError, TypeError or KeyError. If a limiter still blocks at the deadline, TimeoutError is raised. If a server
refuses, RuntimeError is raised with the server's message; if it does not respond, ShardSilent (a ConnectionError).
"""

from troupe._native import ShardSilent
from troupe.replay.batch import Batch, Part
from troupe.replay.client import Client, Column, Info
from troupe.replay.table import ServedTable, Table
from troupe.replay.writer import Shape, Writer

__all__ = ["Batch", "Client", "Column", "Info", "Part", "ServedTable", "Shape", "ShardSilent", "Table", "Writer"]
