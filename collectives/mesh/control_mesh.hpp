#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include <poll.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/communicator.hpp"
#include "collectives/mesh/fingerprint.hpp"
#include "collectives/mesh/secure_socket.hpp"

namespace troupe::collectives {

/// An encrypted connection between every two processes of a group, separate from the data's. Before
/// each collective the ranks exchange fingerprints over it, with small data; an abort travels over
/// it at once, and a rank that dies is seen by its closed connection. One thread per rank, but
/// abort() may come from any.
class ControlMesh {
public:
  struct Options {
    std::string host = "127.0.0.1"; // this process's address that the others reach
    std::chrono::milliseconds timeout{60'000};
    std::chrono::milliseconds connect_timeout{60'000};
    GroupTrust trust{};
  };

  static constexpr std::size_t kMostPayload = 16 << 10; // bytes

  /// Connects to the others through `store`. Throws std::runtime_error naming a missing rank.
  ControlMesh(c10d::Store& store, int rank, int size, const Options& options);
  /// Sends the others the reason, if it was poisoned, and waits until they have read it.
  ~ControlMesh();
  ControlMesh(const ControlMesh&) = delete;
  ControlMesh& operator=(const ControlMesh&) = delete;

  /// Returns once all ranks have called with an equal fingerprint; counts the calls. Throws
  /// CollectiveError naming the ranks that called something else, are late, left or aborted.
  /// Returns the fingerprint with its number.
  Fingerprint agree(Fingerprint mine) { return agree(mine, {}, nullptr); }

  /// The same, and hands all ranks `payload`, at most kMostPayload bytes: (*payloads)[rank], the
  /// own one empty. They are those of equal fingerprints and may still differ in length.
  Fingerprint agree(Fingerprint mine, std::span<const std::byte> payload,
                    std::vector<std::vector<std::byte>>* payloads);

  /// While data move after agree(): whether a rank has closed its connection, because it died or
  /// made its last call. Throws if one has aborted. Does not wait.
  bool someone_left();

  /// What becomes readable when someone_left() has news, after it was called once.
  void add_news(std::vector<pollfd>& items) const;

  /// Poisons all ranks. Any thread.
  void abort(const std::string& message);

  /// The data part of `call` failed with `error`: asks the others for the cause, poisons, throws.
  [[noreturn]] void data_failed(const Fingerprint& call, const std::string& error);

private:
  struct Peer {
    SecureSocket socket;
    std::vector<std::byte> inbox; // not yet interpreted
    bool closed = false;
    bool failure_answered = false; // it lives: it answered after data had failed
  };

  void send(std::uint32_t kind, std::span<const std::byte> content,
            std::span<const std::byte> payload, bool all_must_read);
  bool take_fingerprint(int rank, Fingerprint& fingerprint, std::vector<std::byte>* payload);
  void handle_notices(int rank);
  void answer_failure();
  bool read(int rank);
  void send_abort();
  void wait(const std::vector<char>& arrived, Deadline deadline);
  void poison_locally(const std::string& message);
  [[noreturn]] void fail(const std::string& message);
  void check() const;

  const int rank_;
  const std::chrono::milliseconds timeout_;
  std::vector<Peer> peers_; // [rank]; the own one is empty
  Socket wake_;             // an event: abort() from another thread
  std::uint64_t sequence_ = 0;
  bool failure_answered_ = false;

  mutable std::mutex mutex_; // of the connections and of the message
  std::atomic<bool> poisoned_{false};
  std::string message_;
};

} // namespace troupe::collectives
