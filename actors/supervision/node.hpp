#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/placement/placer.hpp"
#include "actors/supervision/deployment.hpp"

namespace troupe::actors {

/// One host of a run.
struct NodeConfig {
  std::string head_host = "127.0.0.1";
  std::uint16_t head_port = 0;
  NodeResources resources = {}; // with name and address
  std::shared_ptr<const ClusterKeys> keys = nullptr;
  double join_seconds = 120; // until the head has accepted it, at first and after a loss
  std::function<int(const ProcessOrder&)> start_process = {}; // with the run's `config`
  std::function<void(const std::string& text)> log = {};
};

/// The body of `troupe node`: starts and ends processes of this host as the head says, until it
/// says that the run is over (0). A node whose head is silent, or says that it counted as lost,
/// ends its processes and joins again. No process outlives it. Throws std::invalid_argument; when
/// it cannot join, or `stop` becomes true before the run is over, std::runtime_error.
int run_node(const NodeConfig& config, const std::atomic<bool>& stop);

} // namespace troupe::actors
