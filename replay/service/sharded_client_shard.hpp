#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "replay/service/sharded_client.hpp"

namespace troupe::replay {

/// The state that a ShardedClient keeps for one shard.
struct ShardedClient::Shard {
  ShardAddress address;
  std::uint64_t number = 0; // in the keys of rows; a new one each time that the shard comes back
  std::unique_ptr<ShardClient> client;
  bool lives = true;
  bool catches_up = false; // gets nothing new until it has accepted the insertions that it missed
  bool known = false;      // `stats` are up to date
  bool asks_stats = false; // refresh() has asked, and the answer was not taken yet
  TableStats stats;
  std::string why;            // why it was left out
  std::optional<Time> ask_at; // when to ask again whether it is back, after a refusal

  bool gives() const { return lives && known && stats.sampling_weight > 0; }
};

/// Calls `call`. Returns false if the shard did not answer; it is left out if it has been silent
/// for too long. Other errors pass through.
template <typename Call>
bool ShardedClient::attempt(Shard& shard, Call call) {
  try {
    call();
    return true;
  } catch (const std::runtime_error& e) {
    const auto silent = shard.client->silent(); // zero: the shard has answered, with an error
    if (silent == std::chrono::milliseconds(0))
      throw;
    if (silent >= options_.client.silence)
      leave(shard, e.what());
    return false;
  }
}

} // namespace troupe::replay
