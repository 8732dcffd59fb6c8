#pragma once

#include <memory>
#include <string>

#include "learner/replicas/strategy.hpp"

namespace troupe::learner {

/// One replica in each of several processes, or threads, that a communicator connects.
class WorkerStrategy : public Strategy {
public:
  explicit WorkerStrategy(collectives::Communicator& communicator) : communicator_(communicator) {}

  int num_replicas() const override { return communicator_.size(); }
  int num_local_replicas() const override { return 1; }
  int worker() const override { return communicator_.rank(); }
  int num_workers() const override { return num_replicas(); }
  ReplicaAssignment assignment(int) override {
    return {.replica_id = worker(), .num_replicas = num_replicas(), .communicator = &communicator_};
  }
  void abort(const std::string& reason) override { communicator_.abort(reason); }

private:
  collectives::Communicator& communicator_;
};

inline std::unique_ptr<Strategy> make_worker_strategy(collectives::Communicator& communicator) {
  return std::make_unique<WorkerStrategy>(communicator);
}

} // namespace troupe::learner
