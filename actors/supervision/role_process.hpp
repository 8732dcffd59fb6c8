#pragma once

#include <memory>

#include "actors/protocol/run_config.hpp"
#include "actors/supervision/deployment.hpp"

namespace troupe::actors {

/// The body of a process that runs one actor: runs it until its head stops it or is lost. If the
/// connection to the head breaks, it waits at most lost_seconds for this head, or another one of
/// the same epoch, at the same address. Returns the exit code.
int run_actor(const RunConfig& config, const ProcessOrder& order,
              const std::shared_ptr<const ClusterKeys>& keys = nullptr);

} // namespace troupe::actors
