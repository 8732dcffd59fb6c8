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

std::shared_ptr<ControlMesh> make_control_mesh(c10d::Store& store,
                                               const std::string& interface_host, int rank,
                                               int size, const CommunicatorOptions& options);

} // namespace troupe::collectives
