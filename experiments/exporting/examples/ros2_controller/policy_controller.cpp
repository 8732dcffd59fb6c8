// A policy for state observations as a ros2_control controller. Parameters, each in the policy's
// order:
//   observations, actions     the names in the contract, so that a different order is refused
//   state_interfaces          "right_hip/position", one for each observation
//   command_interfaces        "right_hip/effort", one for each action
// The policy acts once per control period of its contract, whatever the manager's update rate; in
// between, the last command is held. update() does not allocate or lock.
#include "policy.hpp"

#include <controller_interface/controller_interface.hpp>
#include <pluginlib/class_list_macros.hpp>

#include <string>
#include <type_traits>
#include <vector>

namespace policy_controller {

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::return_type;
using Policy = POLICY::Policy;
static_assert(std::is_same<Policy::Frame, float>::value && Policy::kVectorSize == 0,
              "this controller takes policies from states; one from pictures needs a camera");

class PolicyController : public controller_interface::ControllerInterface {
public:
  CallbackReturn on_init() override {
    for (const char* name : {"observations", "actions", "state_interfaces", "command_interfaces"})
      auto_declare<std::vector<std::string>>(name, {});
    return CallbackReturn::SUCCESS;
  }

  InterfaceConfiguration command_interface_configuration() const override {
    return {controller_interface::interface_configuration_type::INDIVIDUAL,
            list("command_interfaces")};
  }
  InterfaceConfiguration state_interface_configuration() const override {
    return {controller_interface::interface_configuration_type::INDIVIDUAL,
            list("state_interfaces")};
  }

  CallbackReturn on_configure(const rclcpp_lifecycle::State&) override {
    const auto observations = list("observations");
    const auto actions = list("actions");
    const auto fits = [&](const char* key, std::size_t count, int wanted) {
      if (count == static_cast<std::size_t>(wanted))
        return true;
      RCLCPP_ERROR(get_node()->get_logger(), "%s has %zu entries; the policy has %d", key, count,
                   wanted);
      return false;
    };
    if (!fits("observations", observations.size(), POLICY::kContract.observation_size)
        || !fits("actions", actions.size(), POLICY::kContract.action_size)
        || !fits("state_interfaces", list("state_interfaces").size(), Policy::kFrameSize)
        || !fits("command_interfaces", list("command_interfaces").size(), Policy::kActionSize))
      return CallbackReturn::ERROR;
    troupe_policy::Contract machine =
        POLICY::kContract; // units, bounds and period come from the policy
    std::vector<troupe_policy::Element> observed = named(observations, machine.observation);
    std::vector<troupe_policy::Element> acted = named(actions, machine.action);
    machine.observation = observed.data();
    machine.action = acted.data();
    char why[256];
    if (!check_contract(POLICY::kContract, machine, why, sizeof why)) {
      RCLCPP_ERROR(get_node()->get_logger(), "%s", why);
      return CallbackReturn::ERROR;
    }
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_activate(const rclcpp_lifecycle::State&) override {
    policy_.reset();
    left_seconds_ = 0;
    return CallbackReturn::SUCCESS;
  }

  return_type update(const rclcpp::Time&, const rclcpp::Duration& period) override {
    left_seconds_ -= period.seconds();
    if (left_seconds_ > 0)
      return return_type::OK;
    left_seconds_ += POLICY::kContract.control_period_seconds;
    if (left_seconds_ < 0) // the manager is slower than the policy: do not catch up
      left_seconds_ = 0;
    for (int i = 0; i < Policy::kFrameSize; ++i)
      frame_[i] = static_cast<float>(state_interfaces_[i].get_value());
    if (!policy_.step(frame_, nullptr, action_))
      return return_type::ERROR; // a sensor returned NaN; the manager decides what to do
    for (int i = 0; i < Policy::kActionSize; ++i)
      command_interfaces_[i].set_value(static_cast<double>(action_[i]));
    return return_type::OK;
  }

private:
  std::vector<std::string> list(const char* name) const {
    return get_node()->get_parameter(name).as_string_array();
  }

  /// The policy's elements under other names. `names` must outlive them.
  static std::vector<troupe_policy::Element> named(const std::vector<std::string>& names,
                                                   const troupe_policy::Element* elements) {
    std::vector<troupe_policy::Element> made(elements, elements + names.size());
    for (std::size_t i = 0; i < names.size(); ++i)
      made[i].name = names[i].c_str();
    return made;
  }

  Policy policy_;
  float frame_[Policy::kFrameSize] = {};
  float action_[Policy::kActionSize] = {};
  double left_seconds_ = 0; // until the policy acts again
};

} // namespace policy_controller

PLUGINLIB_EXPORT_CLASS(policy_controller::PolicyController,
                       controller_interface::ControllerInterface)
