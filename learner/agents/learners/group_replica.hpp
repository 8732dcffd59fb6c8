#pragma once

#include <string>
#include <utility>

#include "learner/agents/learners/saved_replica.hpp"
#include "learner/agents/parts/layers.hpp"

namespace troupe::learner {

/// The replica of an agent whose parameters form one group. This class initialises the parameters
/// and publishes them to the actors; a derived class makes the updates.
class GroupReplica : public SavedReplica {
public:
  struct Setting {
    double learning_rate = 0;
    double gradient_norm = 0;
    std::string precision;
    bool target = false; // checkpoints also contain the target network
    double adam_epsilon = kAdamEpsilon;
  };

  void build(ReplicaContext& context) override;
  at::Tensor policy_parameters() override { return published(group_.flat()); }

protected:
  GroupReplica(Setting setting, ParameterLayout layout) : setting_(std::move(setting)) {
    group_.declare(std::move(layout));
    save_group("", group_, setting_.target);
  }
  /// Returns the initial parameters, float32 on the CPU.
  virtual at::Tensor initial(at::Generator& generator) const = 0;

  ParameterGroup& group() { return group_; }
  const Leaves& leaves() const { return leaves_; }

private:
  Setting setting_;
  ParameterGroup group_;
  Leaves leaves_;
};

} // namespace troupe::learner
