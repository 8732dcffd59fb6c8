#pragma once

#include <memory>

#include "actors/protocol/run_config.hpp"
#include "actors/supervision/deployment.hpp"

namespace troupe::actors {

/// The body of such a process: plays its role until its head ends it or is lost. A head whose
/// connection broke may come back, or another one of the same epoch, at its address within the
/// run's lost_seconds. Returns the exit code.
int run_actor(const RunConfig& config, const ProcessOrder& order,
              const std::shared_ptr<const ClusterKeys>& keys = nullptr);

} // namespace troupe::actors
