#pragma once

#include <memory>
#include <string>
#include <vector>

#include "env/wire/context.hpp"

namespace troupe::actors {

/// Shards that other processes serve. An actor connects to them on its own thread, so that there is
/// no hop between its buffers and the sockets.
struct ShardEndpoints {
  env::wire::Context* context = nullptr;   // outlives the actor
  std::vector<std::string> endpoints = {}; // by shard; empty: the shards are in this process
};

} // namespace troupe::actors
