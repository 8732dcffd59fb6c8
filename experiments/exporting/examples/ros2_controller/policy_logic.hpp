// The part of the controller that needs no ROS: which names fit the policy, and when it acts.
#pragma once

#include "policy.hpp"

#include <string>
#include <type_traits>
#include <vector>

namespace policy_controller {

using Policy = POLICY::Policy;
static_assert(std::is_same<Policy::Frame, float>::value && Policy::kVectorSize == 0,
              "this controller takes policies from states; one from pictures needs a camera");

/// Names in the policy's order.
struct PolicyNames {
  std::vector<std::string> observations, actions; // as in the contract
  std::vector<std::string> state_interfaces, command_interfaces;
};

enum class PolicyStep {
  kActed,
  kHeld,   // the control period is not over, so the last commands remain
  kRefused // an observation is not finite; nothing was written
};

/// Runs the policy once per control period of its contract, at the nearest update.
class PolicyLogic {
public:
  /// Returns how the names differ from the policy's contract; empty: they do not.
  static std::string problem(const PolicyNames& names) {
    const troupe_policy::Contract& policy = POLICY::kContract;
    std::string found = count_problem("observations", names.observations, policy.observation_size);
    if (found.empty())
      found = count_problem("actions", names.actions, policy.action_size);
    if (found.empty())
      found = count_problem("state_interfaces", names.state_interfaces, Policy::kFrameSize);
    if (found.empty())
      found = count_problem("command_interfaces", names.command_interfaces, Policy::kActionSize);
    if (!found.empty())
      return found;
    troupe_policy::Contract machine = policy; // units, bounds and period are the policy's
    const auto observed = renamed(policy.observation, names.observations);
    const auto acted = renamed(policy.action, names.actions);
    machine.observation = observed.data();
    machine.action = acted.data();
    char why[256];
    return check_contract(policy, machine, why, sizeof why) ? "" : why;
  }

  /// Begins an episode.
  void reset() {
    policy_.reset();
    is_first_ = true;
  }

  /// `period_seconds`: since the previous update. read(i) returns observation i, and
  /// write(i, value) sets command i. Does not allocate or lock.
  template <class Read, class Write>
  PolicyStep update(double period_seconds, Read read, Write write) {
    left_seconds_ = is_first_ ? 0 : left_seconds_ - period_seconds;
    is_first_ = false;
    if (left_seconds_ > period_seconds / 2)
      return PolicyStep::kHeld;
    left_seconds_ += POLICY::kContract.control_period_seconds;
    if (left_seconds_ < 0) // updates are rarer than control periods: do not catch up
      left_seconds_ = 0;
    for (int i = 0; i < Policy::kFrameSize; ++i)
      frame_[i] = static_cast<float>(read(i));
    if (!policy_.step(frame_, nullptr, action_))
      return PolicyStep::kRefused;
    for (int i = 0; i < Policy::kActionSize; ++i)
      write(i, static_cast<double>(action_[i]));
    return PolicyStep::kActed;
  }

private:
  static std::string count_problem(const char* key, const std::vector<std::string>& names,
                                   int wanted) {
    if (names.size() == static_cast<std::size_t>(wanted))
      return "";
    return std::string(key) + " has " + std::to_string(names.size()) + " entries; the policy has "
           + std::to_string(wanted);
  }

  /// The policy's elements under other names, which must outlive them.
  static std::vector<troupe_policy::Element> renamed(const troupe_policy::Element* elements,
                                                     const std::vector<std::string>& names) {
    std::vector<troupe_policy::Element> made(elements, elements + names.size());
    for (std::size_t i = 0; i < names.size(); ++i)
      made[i].name = names[i].c_str();
    return made;
  }

  Policy policy_;
  float frame_[Policy::kFrameSize] = {};
  float action_[Policy::kActionSize] = {};
  double left_seconds_ = 0; // until the policy acts again
  bool is_first_ = true;
};

} // namespace policy_controller
