#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "replay/service/sharded_client.hpp"

namespace troupe::replay {

/// A ShardedClient's record of one shard.
struct ShardedClient::Shard {
  ShardAddress address;
  std::uint64_t number = 0; // in the keys of rows; another one each time that it comes back
  std::unique_ptr<ShardClient> client;
  bool lives = true;
  bool catches_up = false; // takes nothing new until it has accepted what it missed
  bool known = false;      // its statistics
  TableStats stats;
  std::string why;            // it was left out
  std::optional<Time> ask_at; // while it is left out: whether it is back, after a refusal

  bool gives() const { return lives && known && stats.sampling_weight > 0; }
};

/// False: the shard did not answer, and is left out when it has been silent for long enough. Other
/// errors pass through.
template <typename Call>
bool ShardedClient::attempt(Shard& shard, Call call) {
  try {
    call();
    return true;
  } catch (const std::runtime_error& e) {
    const auto silent = shard.client->silent(); // zero: this was an answer
    if (silent == std::chrono::milliseconds(0))
      throw;
    if (silent >= options_.client.silence)
      leave(shard, e.what());
    return false;
  }
}

} // namespace troupe::replay
