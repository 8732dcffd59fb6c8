#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "learner/agents/parts/layers.hpp"
#include "learner/agents/parts/parameter_group.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::learner {

/// The replica of an agent whose parameters are one group: how they begin, what a checkpoint holds
/// and what the actors get. What derives from it makes the updates.
class GroupReplica : public Replica {
public:
  struct Setting {
    double learning_rate = 0;
    double gradient_norm = 0;
    std::string precision;
    bool target = false; // a checkpoint holds the target network, too
  };

  void build(ReplicaContext& context) override;
  Input input_fn(const InputContext&) override {
    return [] { return TensorMap{}; }; // replay's batches are brought by the caller of step_fn
  }
  TensorMap parameters() override;
  TensorMap optimizer_state() override;
  void load(const TensorMap& parameters, const TensorMap& optimizer_state) override;
  at::Tensor policy_parameters() override;

protected:
  GroupReplica(Setting setting, ParameterLayout layout) : setting_(std::move(setting)) {
    group_.declare(std::move(layout));
  }
  /// The parameters at first: float32 on the CPU.
  virtual at::Tensor initial(at::Generator& generator) const = 0;

  ParameterGroup& group() { return group_; }
  const Leaves& leaves() const { return leaves_; }
  const at::TensorOptions& options() const { return options_; }
  Random& random() { return random_; }
  std::int64_t updates() const { return updates_; } // that the parameters took
  void count_updates(std::int64_t more) { updates_ += more; }

private:
  Setting setting_;
  ParameterGroup group_;
  at::TensorOptions options_;
  Leaves leaves_;
  Random random_{0};
  std::int64_t updates_ = 0;
};

} // namespace troupe::learner
