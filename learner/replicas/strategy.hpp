#pragma once

#include <memory>
#include <string>

#include "collectives/communicator.hpp"
#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {

/// Decides which replicas this process runs and how they exchange data with all others, on one
/// device or on many hosts. A program sees only the assignments.
class Strategy {
public:
  virtual ~Strategy() = default;

  virtual int num_replicas() const = 0;       // of the program, in all its processes
  virtual int num_local_replicas() const = 0; // of this process
  virtual int worker() const { return 0; }    // index of this process
  virtual int num_workers() const { return 1; }

  /// Called once for every local replica, concurrently and on the replica's own thread, so the
  /// calls may wait for each other. Throws std::runtime_error naming a missing replica.
  virtual ReplicaAssignment assignment(int local_id) = 0;

  /// Reports that a replica of this process has failed, so that no other replica waits for it. Any
  /// thread may call it.
  virtual void abort(const std::string& reason) = 0;
};

/// Makes the mirrored strategy of one host: its replicas are threads of this process that step
/// together. `devices` gives the devices of each replica, [replica][logical device]; empty means
/// the CPU. Throws std::invalid_argument for fewer than one replica.
std::unique_ptr<Strategy>
make_mirrored_strategy(int replicas, const collectives::CommunicatorOptions& options = {},
                       const std::vector<std::vector<at::Device>>& devices = {});

} // namespace troupe::learner
