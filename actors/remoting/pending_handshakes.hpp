#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace troupe::actors {

class Refusals;

/// Accepted connections without TLS whose peers have not completed CAF's handshake. Shuts each one
/// down at its deadline, and the oldest one when there are more than `most`, so that silent peers
/// hold a bounded number of descriptors and buffers. Uses one thread, from the first connection on.
/// Any thread.
class PendingHandshakes {
public:
  /// A handshake has less than 100 bytes. CAF allocates the length that a peer announces.
  static constexpr std::size_t kMostBytes = 4096;

  PendingHandshakes(std::chrono::milliseconds deadline, std::size_t most,
                    std::shared_ptr<Refusals> refusals);
  ~PendingHandshakes();
  PendingHandshakes(const PendingHandshakes&) = delete;
  PendingHandshakes& operator=(const PendingHandshakes&) = delete;

  /// The caller keeps `socket` open until it has called remove().
  void add(int socket, std::string address);
  /// After the handshake, and before the socket is closed. Does nothing if the socket was shut
  /// down.
  void remove(int socket);
  std::size_t count() const;

private:
  struct Pending {
    int socket;
    std::string address;
    std::chrono::steady_clock::time_point deadline;
  };
  void run(const std::stop_token& stop);
  void shut_down_oldest(const std::string& why); // requires mutex_

  const std::chrono::milliseconds deadline_;
  const std::size_t most_;
  const std::shared_ptr<Refusals> refusals_;
  mutable std::mutex mutex_; // guards pending_
  std::condition_variable_any changed_;
  std::list<Pending> pending_; // oldest first
  std::jthread thread_;
};

} // namespace troupe::actors
