#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "collectives/backends/flat_backend.hpp"
#include "collectives/backends/tcp_transfer.hpp"
#include "collectives/mesh/control_mesh.hpp"
#include "collectives/mesh/secure_socket.hpp"

namespace troupe::collectives {

/// Processes on any hosts, on CPU tensors, over encrypted connections between every two. Small data
/// travel with the fingerprints of the control mesh, larger ones over connections of their own
/// after all ranks have agreed; a rank that waits sleeps in poll(). Results are bit-equal on all
/// ranks, in all runs, and to those of ranks as threads. One thread per rank at a time.
class TcpBackend : public FlatBackend {
public:
  /// `data`: the connections [rank]. `store` served to form the group and is kept: it may serve
  /// others still.
  TcpBackend(int rank, int size, std::vector<SecureSocket> data, std::shared_ptr<ControlMesh> mesh,
             c10::intrusive_ptr<c10d::Store> store, std::chrono::milliseconds timeout);

  const std::string getBackendName() const override { return "tcp"; }
  void poison(const std::string& message) override { mesh_->abort(message); }

private:
  using Payloads = std::vector<std::vector<std::byte>>;

  void run(const FlatCall& call) override;
  void run_alone(const FlatCall& call);
  bool is_small(const FlatCall& call) const;
  void run_small(const FlatCall& call);
  void reduce_small(const FlatCall& call, Payloads& payloads);
  void run_large(const FlatCall& call, const Fingerprint& agreed);
  void exchange_splits(const FlatCall& call);
  std::unique_ptr<TcpTransfer> transfer_of(const FlatCall& call);
  std::unique_ptr<TcpTransfer> part_transfer(const FlatCall& call) const;

  /// Moves data until the transfer is done. Throws CollectiveError on an abort, a lost rank or a
  /// passed deadline, on all ranks.
  void move(TcpTransfer& transfer, const Fingerprint& call);
  bool push(TcpTransfer& transfer, int peer);
  bool pull(TcpTransfer& transfer, int peer);
  bool is_flushed();
  /// Sleeps until a connection can go on or the control mesh has news; looks at these.
  void wait_for_peers(TcpTransfer& transfer, Deadline deadline);

  std::vector<SecureSocket> data_;
  std::shared_ptr<ControlMesh> mesh_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::chrono::milliseconds timeout_;
  std::vector<std::byte> staging_;
  Payloads payloads_;
  int lost_ = -1; // the rank whose connection has ended
};

} // namespace troupe::collectives
