#include "learner/replicas/strategy.hpp"

namespace troupe::learner {
namespace {

class WorkerStrategy : public Strategy {
public:
  WorkerStrategy(collectives::Communicator* communicator, const std::vector<at::Device>& devices)
      : communicator_(communicator), devices_(devices) {}

  int num_replicas() const override { return communicator_ ? communicator_->size() : 1; }
  int num_local_replicas() const override { return 1; }
  int worker() const override { return communicator_ ? communicator_->rank() : 0; }
  int num_workers() const override { return num_replicas(); }
  ReplicaAssignment assignment(int) override {
    return {.replica_id = worker(),
            .num_replicas = num_replicas(),
            .communicator = communicator_,
            .devices = devices_};
  }
  void abort(const std::string& reason) override {
    if (communicator_)
      communicator_->abort(reason);
  }

private:
  collectives::Communicator* communicator_;
  std::vector<at::Device> devices_;
};

} // namespace

std::unique_ptr<Strategy> make_worker_strategy(collectives::Communicator* communicator,
                                               const std::vector<at::Device>& devices) {
  return std::make_unique<WorkerStrategy>(communicator, devices);
}

} // namespace troupe::learner
