#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <caf/io/middleman_actor.hpp>

namespace troupe::actors {

class PendingHandshakes;
class ReservedPorts;

/// Counts dropped connections and reports the first one. Any thread.
class Refusals {
public:
  explicit Refusals(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}
  void add(const std::string& why) {
    std::function<void(const std::string&)> tell;
    {
      const std::lock_guard lock(mutex_);
      tell = std::exchange(tell_, nullptr);
    }
    ++count_;
    if (tell)
      tell(why);
  }
  std::int64_t count() const { return count_; }

private:
  std::mutex mutex_; // guards tell_
  std::function<void(const std::string&)> tell_;
  std::atomic<std::int64_t> count_ = 0;
};

/// Starts CAF's interface to unencrypted connections within this host, between processes of one
/// user. It drops a connection of another user before reading from it, and one that announces too
/// large a message before allocating memory for it: above kMostMessageBytes, and before its
/// handshake above PendingHandshakes::kMostBytes.
caf::io::middleman_actor spawn_plain_middleman(caf::actor_system& system,
                                               std::shared_ptr<Refusals> refusals,
                                               std::shared_ptr<PendingHandshakes> pending,
                                               std::shared_ptr<ReservedPorts> reserved,
                                               std::chrono::milliseconds connect_deadline);

} // namespace troupe::actors
