#include "learner/strategy.hpp"

#include <stdexcept>

namespace troupe::learner {
namespace {

class MirroredStrategy : public Strategy {
public:
  MirroredStrategy(int replicas, const collectives::CommunicatorOptions& options,
                   const std::vector<std::vector<at::Device>>& devices)
      : communicators_(collectives::make_thread_communicators(replicas, options)),
        devices_(devices) {}

  int num_replicas() const override { return static_cast<int>(communicators_.size()); }
  int num_local_replicas() const override { return num_replicas(); }
  ReplicaSeat seat(int local_id) override {
    const auto i = static_cast<std::size_t>(local_id);
    return {.replica_id = local_id,
            .num_replicas = num_replicas(),
            .local_id = local_id,
            .communicator = communicators_.at(i).get(),
            .devices = devices_.empty() ? std::vector<at::Device>{} : devices_[i]};
  }
  void abort(const std::string& reason) override { communicators_[0]->abort(reason); }

private:
  std::vector<std::unique_ptr<collectives::Communicator>> communicators_; // [replica]
  std::vector<std::vector<at::Device>> devices_;
};

class WorkerStrategy : public Strategy {
public:
  WorkerStrategy(collectives::Communicator* communicator, const std::vector<at::Device>& devices)
      : communicator_(communicator), devices_(devices) {}

  int num_replicas() const override { return communicator_ ? communicator_->size() : 1; }
  int num_local_replicas() const override { return 1; }
  int worker() const override { return communicator_ ? communicator_->rank() : 0; }
  int num_workers() const override { return num_replicas(); }
  ReplicaSeat seat(int) override {
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

std::unique_ptr<Strategy>
make_mirrored_strategy(int replicas, const collectives::CommunicatorOptions& options,
                       const std::vector<std::vector<at::Device>>& devices) {
  if (replicas < 1)
    throw std::invalid_argument("replicas " + std::to_string(replicas) + " must be at least 1");
  if (!devices.empty() && devices.size() != static_cast<std::size_t>(replicas))
    throw std::invalid_argument("devices of " + std::to_string(devices.size())
                                + " replicas were given for " + std::to_string(replicas)
                                + "; give each a list, or none at all");
  return std::make_unique<MirroredStrategy>(replicas, options, devices);
}

std::unique_ptr<Strategy> make_worker_strategy(collectives::Communicator* communicator,
                                               const std::vector<at::Device>& devices) {
  return std::make_unique<WorkerStrategy>(communicator, devices);
}

} // namespace troupe::learner
