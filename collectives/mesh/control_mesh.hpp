#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/communicator.hpp"
#include "collectives/mesh/control_frame.hpp"
#include "collectives/mesh/secure_socket.hpp"

namespace troupe::collectives {

/// Connects every two processes of a group, encrypted and separate from the data connections.
/// Before each collective the ranks exchange fingerprints, along with any small data, over this
/// mesh. An abort reaches the other ranks immediately, and a rank that dies is detected by its
/// closed connection. One thread per rank uses the mesh, but any thread may call abort().
class ControlMesh {
public:
  /// Connects to the other ranks through `store`. `interface_host` is the address at which they
  /// reach this process. Throws std::runtime_error naming a missing rank.
  ControlMesh(c10d::Store& store, int rank, int size, const CommunicatorOptions& options,
              const std::string& interface_host = "127.0.0.1");
  /// If the mesh is poisoned, sends the other ranks the reason and waits until they have read it.
  ~ControlMesh();
  ControlMesh(const ControlMesh&) = delete;
  ControlMesh& operator=(const ControlMesh&) = delete;

  /// Waits until all ranks have called it with an equal fingerprint, and counts the calls. Returns
  /// the fingerprint with its sequence number. Throws CollectiveError naming the ranks that made a
  /// different call, are late, have left or have aborted.
  Fingerprint agree(Fingerprint mine) { return agree(mine, {}, nullptr); }

  /// Does the same and also exchanges payloads of at most kMostPayload bytes. (*payloads)[rank]
  /// receives each rank's payload; this rank's own entry stays empty. The fingerprints are equal,
  /// but the payloads may differ in length.
  Fingerprint agree(Fingerprint mine, std::span<const std::byte> payload,
                    std::vector<std::vector<std::byte>>* payloads);

  /// Returns whether a rank has closed its connection, because it died or made its last call. Used
  /// while data move after agree(). Throws if a rank has aborted. Does not wait.
  bool someone_left();

  /// Adds the descriptors that become readable when someone_left() has news. Call someone_left()
  /// once before.
  void add_news(std::vector<pollfd>& items) const;

  /// Poisons all ranks. Any thread may call it.
  void abort(const std::string& message);

  /// Reports that moving the data of `call` failed with `error`: asks the other ranks for the
  /// cause, poisons the group and throws.
  [[noreturn]] void data_failed(const Fingerprint& call, const std::string& error);

private:
  struct Peer {
    SecureSocket socket;
    std::vector<std::byte> inbox; // received, not yet parsed
    bool closed = false;
    bool failure_answered = false; // the peer is alive: it answered after data had failed
  };

  void send(FrameKind kind, std::span<const std::byte> content, std::span<const std::byte> payload,
            bool all_must_read);
  std::optional<ControlFrame> frame_from(int rank);
  void drop_frame(int rank, const ControlFrame& frame);
  bool take_fingerprint(int rank, Fingerprint& fingerprint, std::vector<std::byte>* payload);
  void handle_notices(int rank);
  void answer_failure();
  bool read(int rank);
  void send_abort();
  void wait(const std::vector<char>& arrived, Deadline deadline);
  bool poison_locally(const std::string& message);
  [[noreturn]] void fail(const std::string& message);
  void check() const;

  const int rank_;
  const std::chrono::milliseconds timeout_;
  std::vector<Peer> peers_; // [rank]; this rank's own entry is empty
  Socket wake_;             // an event that abort() on another thread signals
  std::uint64_t sequence_ = 0;
  bool failure_answered_ = false;

  mutable std::mutex mutex_; // guards the connections and the message
  std::atomic<bool> poisoned_{false};
  std::string message_;
};

} // namespace troupe::collectives
