#pragma once

#include <pybind11/pybind11.h>

namespace troupe::python {

/// Adds the agent that `factory` makes to the agents of this process. It stays for good, and so
/// does `factory`, a troupe.agents.Factory:
///   name, help, metrics (names), settings(options) -> dict of
///     batch_size, layers (of the acting network), noise or epsilon (start, end, steps)
///   make(options, environment: dict, seed, replicas) -> learner, an object with
///     update(batch: dict of arrays) -> dict of metrics;  priorities() -> array or None
///     policy() -> [weight, bias, …] of the acting network, as torch.nn.Linear has them
///     state() -> dict of arrays;  load(dict of arrays)
/// `replicas` is None, or of several the functions that reduce a float32 array over them in place:
/// the mean, and the first one's. Its calls are made by the replica's thread with the
/// interpreter's lock, which those functions release.
void add_python_agent(const pybind11::object& factory);

} // namespace troupe::python
