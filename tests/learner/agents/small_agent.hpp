#pragma once
// Each agent of the list, with networks that learn in a second.

#include <memory>
#include <stdexcept>
#include <string>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>

#include "learner/agents/agent_kinds.hpp"

namespace troupe::learner {

/// `more`: further keys of its block, as in an experiment file.
inline AgentPtr small_agent(const AgentKind& kind, const std::string& more = "") {
  google::protobuf::DynamicMessageFactory factory;
  const std::unique_ptr<google::protobuf::Message> options(
      factory.GetPrototype(kind.options)->New());
  if (!google::protobuf::TextFormat::ParseFromString(
          "policy_layers: [24, 20] critic_layers: [28, 20] batch_size: 16 " + more, options.get()))
    throw std::invalid_argument(kind.name + " has not the options " + more);
  return kind.make(*options);
}

} // namespace troupe::learner
