#pragma once

#include <memory>
#include <string>

#include "collectives/communicator.hpp"
#include "collectives/rendezvous/process_topology.hpp"
#include "learner/transparent/settings.hpp"

namespace troupe::collectives {
class RendezvousServer;
}

namespace troupe::learner::transparent {

/// Connects the ranks of `place`: over shared memory if all are on one host, otherwise over shared
/// memory and TCP, or with the backend that the settings name. One thread only.
class ProcessRendezvous {
public:
  /// Throws std::invalid_argument on inconsistent settings.
  ProcessRendezvous(collectives::ProcessTopology place, const Settings& settings);
  ~ProcessRendezvous();

  /// Makes the first communicator. Must be called only once. Throws std::invalid_argument, and
  /// std::runtime_error if the other ranks do not connect.
  std::unique_ptr<collectives::Communicator> communicator();

  /// Makes another communicator of the same ranks. All ranks must call it; rank 0 sends the others
  /// its address over `first`. Throws CollectiveError.
  std::unique_ptr<collectives::Communicator> another(collectives::Communicator& first);

private:
  std::string way(collectives::Communicator& first);

  collectives::ProcessTopology place_;
  std::string backend_;
  collectives::CommunicatorOptions options_;
  std::unique_ptr<collectives::RendezvousServer> server_; // rank 0's, for another()
  int others_ = 0;
};

} // namespace troupe::learner::transparent
