#pragma once
// Every agent in the list, with networks that train within a second.

#include <memory>
#include <stdexcept>
#include <string>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>

#include "learner/agents/agent_kinds.hpp"

namespace troupe::learner {

/// `more`: further keys of the agent's block, as in an experiment file.
inline AgentPtr small_agent(const AgentKind& kind, const std::string& more = "") {
  google::protobuf::DynamicMessageFactory factory;
  const std::unique_ptr<google::protobuf::Message> options(
      factory.GetPrototype(kind.options)->New());
  std::string keys = "batch_size: 16 ";
  if (kind.options->FindFieldByName("rollout") != nullptr)
    keys += "rollout: 2 ";
  if (kind.name == "r2d2")
    keys += "burn_in: 1 length: 2 period: 2 lstm: 8 ";
  if (kind.name == "mrq" && more.find("encoder_layers") == std::string::npos)
    keys += "encoder_layers: 12 state_features: 10 action_features: 6 pair_layers: 12 "
            "pair_features: 12 period: 5 "
            "horizon: 3 n_step: 2 ";
  if (!kind.states)
    keys += "encoder_channels: 4 feature_size: 10 ";
  for (const char* layers : {"policy_layers", "critic_layers", "layers"})
    if (kind.options->FindFieldByName(layers) != nullptr && more.find(layers) == std::string::npos)
      keys += std::string(layers) + ": [24, 20] ";
  if (!google::protobuf::TextFormat::ParseFromString(keys + more, options.get()))
    throw std::invalid_argument(kind.name + " has not the options " + more);
  return kind.make(*options);
}

/// Transitions for the agent: states of 5 numbers or, if it takes none, pictures of 17 x 17 pixels;
/// and two continuous numbers or one choice of 4. `more` is as in small_agent().
inline replay::TransitionSpec small_transitions(const AgentKind& kind,
                                                const std::string& more = "") {
  replay::TransitionSpec transitions{.frame = {"state", env::ElementType::float32, {5}},
                                     .action_size = 2};
  if (!kind.states)
    transitions.frame = {"pixels", env::ElementType::uint8, {1, 17, 17}};
  if (kind.actions == ActionKind::choice) {
    transitions.action_size = 1;
    transitions.action_choices = {4};
  }
  return stored_by(*small_agent(kind, more), transitions);
}

} // namespace troupe::learner
