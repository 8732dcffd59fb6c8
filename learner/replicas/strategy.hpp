#pragma once

#include <memory>
#include <string>

#include "collectives/communicator.hpp"
#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {

/// Which replicas this process runs, and how they exchange data with all others, on one device or
/// on many hosts. A program sees only the assignments.
class Strategy {
public:
  virtual ~Strategy() = default;

  virtual int num_replicas() const = 0;       // of the program, over all its processes
  virtual int num_local_replicas() const = 0; // of this process
  virtual int worker() const { return 0; }    // this process
  virtual int num_workers() const { return 1; }

  /// Called once for every local replica, on its own thread, at the same time: the calls may wait
  /// for each other. Throws std::runtime_error naming a missing replica.
  virtual ReplicaAssignment assignment(int local_id) = 0;

  /// A replica of this process failed: no other may wait for it. Any thread.
  virtual void abort(const std::string& reason) = 0;
};

/// Replicas as threads of this process that step together: the mirrored strategy of a host.
/// `devices`: of each replica, [replica][logical device]; empty: the CPU. Throws
/// std::invalid_argument for fewer than one replica.
std::unique_ptr<Strategy>
make_mirrored_strategy(int replicas, const collectives::CommunicatorOptions& options = {},
                       const std::vector<std::vector<at::Device>>& devices = {});

/// One replica in this process, over a communicator between processes (null: alone), which outlives
/// the strategy.
std::unique_ptr<Strategy> make_worker_strategy(collectives::Communicator* communicator,
                                               const std::vector<at::Device>& devices = {});

} // namespace troupe::learner
