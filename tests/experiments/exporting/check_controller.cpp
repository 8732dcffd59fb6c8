// Checks the logic of the ROS 2 controller around an exported policy, without ROS.
// export_checks.py compiles this file with -DPOLICY=<namespace>. Exit code 0: all checks pass.
#include "policy_logic.hpp"

#include <cmath>
#include <cstdio>

namespace {

using policy_controller::Policy;
using policy_controller::PolicyLogic;
using policy_controller::PolicyNames;
using policy_controller::PolicyStep;

int failures = 0;
void check(bool holds, const char* what) {
  if (!holds) {
    std::printf("not true: %s\n", what);
    ++failures;
  }
}

const double kPeriod = POLICY::kContract.control_period_seconds;
PolicyLogic logic;
double commands[Policy::kActionSize];

PolicyStep update(double period_seconds, double observation) {
  return logic.update(
      period_seconds, [=](int i) { return observation + 0.01 * i; },
      [](int i, double value) { commands[i] = value; });
}

/// The updates, of `count`, in which the policy acts.
std::vector<int> acting(double period_seconds, int count) {
  std::vector<int> found;
  logic.reset();
  for (int i = 0; i < count; ++i)
    if (update(period_seconds, 0.1) == PolicyStep::kActed)
      found.push_back(i);
  return found;
}

void check_periods() {
  check(acting(kPeriod, 4) == std::vector<int>({0, 1, 2, 3}), "acts at every update of its period");
  check(acting(kPeriod / 10, 31) == std::vector<int>({0, 10, 20, 30}), "holds in between");
  check(acting(0.3 * kPeriod, 11) == std::vector<int>({0, 3, 7, 10}), "acts at the nearest update");
  check(acting(2.5 * kPeriod, 4) == std::vector<int>({0, 1, 2, 3}), "does not catch up");
}

void check_commands() {
  static Policy policy;
  float frame[Policy::kFrameSize];
  float action[Policy::kActionSize];
  for (int i = 0; i < Policy::kFrameSize; ++i)
    frame[i] = static_cast<float>(0.3 + 0.01 * i);
  policy.step(frame, nullptr, action);
  logic.reset();
  check(update(kPeriod, 0.3) == PolicyStep::kActed, "acts at first");
  for (int i = 0; i < Policy::kActionSize; ++i)
    check(commands[i] == static_cast<double>(action[i]), "commands are the policy's actions");
  commands[0] = 7;
  check(update(kPeriod, std::nan("")) == PolicyStep::kRefused, "NaN is refused");
  check(commands[0] == 7, "a refused observation leaves the commands alone");
}

void check_names() {
  PolicyNames names;
  for (int i = 0; i < POLICY::kContract.observation_size; ++i)
    names.observations.emplace_back(POLICY::kContract.observation[i].name);
  for (int i = 0; i < POLICY::kContract.action_size; ++i)
    names.actions.emplace_back(POLICY::kContract.action[i].name);
  names.state_interfaces.resize(Policy::kFrameSize);
  names.command_interfaces.resize(Policy::kActionSize);
  check(PolicyLogic::problem(names).empty(), "the policy's own names fit");
  PolicyNames other = names;
  other.actions.back() = "left_gripper";
  check(PolicyLogic::problem(other).find("left_gripper") != std::string::npos,
        "another action is named");
  other = names;
  other.state_interfaces.pop_back();
  check(PolicyLogic::problem(other).find("state_interfaces has ") == 0,
        "a missing interface is named");
}

} // namespace

int main() {
  check_periods();
  check_commands();
  check_names();
  return failures;
}
