#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "actors/placement/placer.hpp"
#include "actors/supervision/deployment.hpp"

namespace troupe::actors {

struct HeadNotFound : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How one host takes part in a run.
struct NodeConfig {
  std::string head_host = "127.0.0.1";
  std::uint16_t head_port = 0;
  NodeResources resources = {}; // including its name and address
  std::shared_ptr<const ClusterKeys> keys = nullptr;
  double join_seconds = 120; // to be accepted by the head, initially and after a loss
  std::function<int(const ProcessOrder&)> start_process = {}; // its order has the run's `config`
  std::function<void(const std::string& text)> log = {};
};

/// The body of `troupe node`. Starts and ends processes of this host as the head orders, and
/// returns 0 when the head says that the run is over. If the head is silent or has given this node
/// up, the node ends its processes and joins again. No process outlives it. Throws
/// std::invalid_argument for an invalid configuration, and std::runtime_error if it cannot join or
/// `stop` becomes true before the run is over: HeadNotFound if it has looked for the head in vain
/// for join_seconds.
int run_node(const NodeConfig& config, const std::atomic<bool>& stop);

} // namespace troupe::actors
