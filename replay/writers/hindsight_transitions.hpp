#pragma once

#include <cstdint>

#include "env/spec.hpp"
#include "replay/writers/n_step_items.hpp"

namespace troupe::replay {

/// A writer of the transitions of a spec with hindsight, used as transition_writer()'s. Episodes
/// are given out whole, at their end. `goal`: of the environment; a relabelled transition has its
/// outcome for another goal, and there is none from a row where that goal was already reached.
/// `seed`: of the choice of goals. Throws std::invalid_argument if the spec is out of range or is
/// not of this goal.
Writer hindsight_transition_writer(const TransitionSpec& spec, std::uint64_t writer_id,
                                   std::uint64_t seed, const env::GoalSpec& goal);

} // namespace troupe::replay
