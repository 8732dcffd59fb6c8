#pragma once

#include "actors/protocol/messages.pb.h"

namespace troupe::actors {

/// Of this process, for the reports of the actors in it.
wire::ProcessTime process_time();

} // namespace troupe::actors
