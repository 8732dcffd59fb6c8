#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <torch/types.h>

#include "learner/acting/policy.hpp"
#include "learner/agents/parts/layers.hpp"
#include "learner/agents/parts/observed.hpp"

namespace troupe::learner {

/// A policy that computes its actions with the network that its agent trains. A Network has
/// layout() and describe(leaves, transitions). A derived class computes actions from the network's
/// outputs.
template <class Network>
class NetworkPolicy : public Policy {
public:
  NetworkPolicy(std::string agent, Network network, const replay::TransitionSpec& transitions)
      : agent_(std::move(agent)),
        transitions_(transitions),
        network_(std::move(network)),
        parameters_(at::zeros({network_.layout().count()}, at::kFloat)),
        leaves_(leaves_of(network_.layout(), parameters_)) {}

  std::int64_t parameter_count() const final { return network_.layout().count(); }
  void load(std::span<const float> parameters) final {
    load_parameters(parameters, parameters_, agent_);
  }
  std::optional<PolicyGraph> graph() const final {
    return network_.describe(leaves_, transitions_);
  }
  using Policy::act;

protected:
  const Network& network() const { return network_; }
  const Leaves& leaves() const { return leaves_; }
  Observed seen(const Observations& observations, std::span<const float> actions) const {
    return observed(observations, transitions_, actions);
  }

private:
  std::string agent_;
  replay::TransitionSpec transitions_;
  Network network_;
  at::Tensor parameters_;
  Leaves leaves_;
};

} // namespace troupe::learner
