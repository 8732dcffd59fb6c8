#pragma once

#include <pybind11/pybind11.h>

namespace troupe::python {

/// Adds the agent that `factory` makes to the agents of this process. The agent and `factory`, a
/// troupe.agents.Factory, stay for the life of the process. The factory has
///   name, help, metrics (names), settings(options) -> dict of
///     batch_size, layers (of the acting network), noise or epsilon (start, end, steps)
///   make(options, environment: dict, seed, replicas) -> learner, an object with
///     update(batch: dict of arrays) -> dict of metrics;  priorities() -> array or None
///     policy() -> [weight, bias, …] of the acting network, as torch.nn.Linear has them
///     state() -> dict of arrays;  load(dict of arrays)
/// `replicas` is None for a single replica. For several it has two functions that reduce a float32
/// array over them in place: to the mean, and to the first replica's array. The replica's thread
/// makes all calls with the interpreter's lock, which these functions release.
void add_python_agent(const pybind11::object& factory);

} // namespace troupe::python
