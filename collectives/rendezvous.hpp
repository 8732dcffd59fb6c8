#pragma once

#include <memory>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/control_mesh.hpp"

namespace troupe::collectives {

/// Where the processes of a group find each other: rank 0 serves a TCPStore that listens at
/// host:port and nowhere else. Throws std::invalid_argument for rank, size, port or timeouts out of
/// range; std::runtime_error when the port is in use or nobody answers.
c10::intrusive_ptr<c10d::Store> make_rendezvous(const std::string& host, int port, int rank,
                                                int size, const CommunicatorOptions& options);

/// A client of a rendezvous that another process serves. Throws std::runtime_error when nobody
/// answers within options.connect_timeout.
c10::intrusive_ptr<c10d::Store> connect_rendezvous(const std::string& host, int port,
                                                   const CommunicatorOptions& options);

/// A rendezvous that outlives the ranks: served by a launcher, for as long as the owner lives.
class RendezvousServer {
public:
  /// Listens at host:port and nowhere else; port 0: one that is free. Throws std::runtime_error
  /// when it is in use.
  RendezvousServer(const std::string& host, int port);

  const std::string& host() const { return host_; }
  int port() const { return port_; }

private:
  std::string host_;
  int port_ = 0;
  c10::intrusive_ptr<c10d::Store> store_;
};

std::shared_ptr<ControlMesh> make_control_mesh(c10d::Store& store,
                                               const std::string& interface_host, int rank,
                                               int size, const CommunicatorOptions& options);

} // namespace troupe::collectives
