#pragma once

#include <cstdint>

#include "env/spec.hpp"
#include "replay/writers/n_step_items.hpp"

namespace troupe::replay {

/// Returns a writer of the transitions of a spec with hindsight; it is used like that of
/// transition_writer(). take() returns the rows of an episode only after its end. `goal` is the
/// environment's goal specification: it determines the outcome of a relabelled transition for its
/// new goal. No transition is relabelled with a goal that was already reached in its first row.
/// `seed` is for the choice of goals. Throws std::invalid_argument if the spec is out of range or
/// does not match `goal`.
Writer hindsight_transition_writer(const TransitionSpec& spec, std::uint64_t writer_id,
                                   std::uint64_t seed, const env::GoalSpec& goal);

} // namespace troupe::replay
