#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "collectives/backends/flat_backend.hpp"
#include "collectives/backends/tcp_transfer.hpp"
#include "collectives/mesh/control_mesh.hpp"
#include "collectives/mesh/secure_socket.hpp"

namespace troupe::collectives {

/// A backend for processes on any hosts, on CPU tensors, with an encrypted connection between every
/// two ranks. Small data travel with the fingerprints over the control mesh; larger data use
/// separate connections after all ranks have agreed. A waiting rank sleeps in poll(). Results are
/// bit-equal on all ranks, in all runs, and to those of ThreadBackend. At most one thread per rank
/// may call it at a time.
class TcpBackend : public FlatBackend {
public:
  /// `data` holds the connections, [rank]. `store` was used to form the group; it is kept alive
  /// because it may still serve other ranks.
  TcpBackend(int rank, int size, std::vector<SecureSocket> data, std::shared_ptr<ControlMesh> mesh,
             c10::intrusive_ptr<c10d::Store> store, std::chrono::milliseconds timeout);

  const std::string getBackendName() const override { return "tcp"; }
  void poison(const std::string& message) override { mesh_->abort(message); }

private:
  using Payloads = std::vector<std::vector<std::byte>>;

  void run(const FlatCall& call) override;
  bool is_small(const FlatCall& call) const;
  void run_small(const FlatCall& call);
  void reduce_small(const FlatCall& call, Payloads& payloads);
  void exchange_splits(const FlatCall& call);
  std::unique_ptr<TcpTransfer> transfer_of(const FlatCall& call);
  std::unique_ptr<TcpTransfer> part_transfer(const FlatCall& call) const;

  /// Moves data until the transfer is complete. Throws CollectiveError on all ranks after an abort,
  /// the loss of a rank or a missed deadline.
  void move(TcpTransfer& transfer, const Fingerprint& call);
  bool push(TcpTransfer& transfer, int peer);
  bool pull(TcpTransfer& transfer, int peer);
  bool is_flushed();
  /// Sleeps until a connection can make progress or the control mesh has news, then handles both.
  void wait_for_peers(TcpTransfer& transfer, Deadline deadline);

  std::vector<SecureSocket> data_;
  std::shared_ptr<ControlMesh> mesh_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::chrono::milliseconds timeout_;
  std::vector<std::byte> staging_;
  Payloads payloads_;
  int lost_ = -1; // rank whose connection has ended; -1: none
};

} // namespace troupe::collectives
