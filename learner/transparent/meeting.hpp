#pragma once

#include <memory>
#include <string>

#include "collectives/communicator.hpp"
#include "collectives/place.hpp"
#include "learner/transparent/settings.hpp"

namespace troupe::collectives {
class RendezvousServer;
}

namespace troupe::learner::transparent {

/// Where the ranks of `place` meet: by shared memory where all are on one host, by shared memory
/// and Gloo elsewhere, or by the backend that the settings name. One thread.
class Meeting {
public:
  /// Throws std::invalid_argument for what does not fit together.
  Meeting(collectives::Place place, const Settings& settings);
  ~Meeting();

  /// Once. Throws std::invalid_argument, and std::runtime_error when the others do not come.
  std::unique_ptr<collectives::Communicator> communicator();

  /// One more of the same ranks, who all call; rank 0 tells the others the way over `first`. Throws
  /// CollectiveError.
  std::unique_ptr<collectives::Communicator> another(collectives::Communicator& first);

private:
  std::string way(collectives::Communicator& first);

  collectives::Place place_;
  std::string backend_;
  collectives::CommunicatorOptions options_;
  std::unique_ptr<collectives::RendezvousServer> server_; // rank 0's, of the others
  int others_ = 0;
};

} // namespace troupe::learner::transparent
