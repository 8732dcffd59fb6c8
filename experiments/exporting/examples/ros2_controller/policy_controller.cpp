// A policy for state observations as a ros2_control controller. Parameters, each in the policy's
// order:
//   observations, actions     the names in the contract, so that a different order is refused
//   state_interfaces          "right_hip/position", one for each observation
//   command_interfaces        "right_hip/effort", one for each action
// The policy acts once per control period of its contract, whatever the manager's update rate; in
// between, the last command is held. update() does not allocate or lock.
#include "policy_logic.hpp"

#include <controller_interface/controller_interface.hpp>
#include <pluginlib/class_list_macros.hpp>

namespace policy_controller {

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::return_type;

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
    const std::string problem =
        PolicyLogic::problem({list("observations"), list("actions"), list("state_interfaces"),
                              list("command_interfaces")});
    if (problem.empty())
      return CallbackReturn::SUCCESS;
    RCLCPP_ERROR(get_node()->get_logger(), "%s", problem.c_str());
    return CallbackReturn::ERROR;
  }

  CallbackReturn on_activate(const rclcpp_lifecycle::State&) override {
    logic_.reset();
    return CallbackReturn::SUCCESS;
  }

  return_type update(const rclcpp::Time&, const rclcpp::Duration& period) override {
    const PolicyStep step = logic_.update(
        period.seconds(), [this](int i) { return state_interfaces_[i].get_value(); },
        [this](int i, double value) { command_interfaces_[i].set_value(value); });
    return step == PolicyStep::kRefused ? return_type::ERROR : return_type::OK;
  }

private:
  std::vector<std::string> list(const char* name) const {
    return get_node()->get_parameter(name).as_string_array();
  }

  PolicyLogic logic_;
};

} // namespace policy_controller

PLUGINLIB_EXPORT_CLASS(policy_controller::PolicyController,
                       controller_interface::ControllerInterface)
