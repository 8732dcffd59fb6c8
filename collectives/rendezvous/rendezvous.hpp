#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/communicator.hpp"
#include "collectives/mesh/socket.hpp"

namespace troupe::collectives {

/// Returns the store in which the processes of a group find each other. Rank 0 serves a TCPStore
/// that listens only at host:port. LibTorch neither encrypts nor authenticates it; with keys in
/// options.trust it contains no secret. Throws std::invalid_argument if a rank, size, port or
/// timeout is out of range, or if other hosts can reach `host` and `options.trust` is empty;
/// std::runtime_error if the port is in use or no server answers.
c10::intrusive_ptr<c10d::Store> make_rendezvous(const std::string& host, int port, int rank,
                                                int size, const CommunicatorOptions& options);

/// Returns a client of a rendezvous that another process serves. Throws std::runtime_error if no
/// server answers within options.connect_timeout.
c10::intrusive_ptr<c10d::Store> connect_rendezvous(const std::string& host, int port,
                                                   const CommunicatorOptions& options);

/// A rendezvous that outlives the ranks, because a launcher serves it during this object's
/// lifetime.
class RendezvousServer {
public:
  /// Listens only at `host`, on a free port. Throws std::runtime_error.
  explicit RendezvousServer(const std::string& host);

  const std::string& host() const { return host_; }
  int port() const { return port_; }

private:
  std::string host_;
  int port_ = 0;
  c10::intrusive_ptr<c10d::Store> store_;
};

/// A rendezvous without a port, for ranks of one host and user. It is a memory file that only its
/// owner's processes may open, and only during this object's lifetime.
class RendezvousFile {
public:
  RendezvousFile(); // throws std::system_error
  std::string path() const;

private:
  Socket file_;
};

/// Opens the store in a RendezvousFile. Throws std::runtime_error if this process may not open it.
c10::intrusive_ptr<c10d::Store> open_rendezvous(const std::string& file,
                                                const CommunicatorOptions& options);

} // namespace troupe::collectives
