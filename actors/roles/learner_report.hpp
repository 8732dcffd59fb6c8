#pragma once

#include "actors/protocol/messages.pb.h"
#include "actors/roles/learner_actor.hpp"

namespace troupe::actors {

/// What the learner itself knows: its counters and metrics, and whether it waits for a grant.
wire::LearnerReport report_of(const LearnerState& state);

} // namespace troupe::actors
