#pragma once

#include "actors/protocol/messages.pb.h"

namespace troupe::actors {

/// Returns the processor time of this process, for the reports of its actors.
wire::ProcessTime process_time();

} // namespace troupe::actors
