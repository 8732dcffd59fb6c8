#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learner/acting/policy.hpp"
#include "learner/agents/parts/exploration.hpp"
#include "learner/nn/encoder.hpp"
#include "learner/nn/mlp.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::python {

/// The properties of an agent's Python class under certain options.
struct Settings {
  std::int64_t batch_size = 1;
  std::vector<std::int64_t> layers;
  learner::Schedule noise;   // of continuous actions
  learner::Schedule epsilon; // of choices
  bool discrete = false;
  std::string encoder; // for pixels; "": states
  std::int64_t encoder_channels = 0;
};

/// The acting network: layers with ReLU, preceded by an encoder for pixels.
struct Acting {
  /// Throws std::invalid_argument naming the agent if the environment does not fit.
  Acting(const std::string& name, const Settings& settings, replay::TransitionSpec transitions);

  replay::TransitionSpec spec; // without the choice
  bool pixels = false;
  learner::EncoderShape encoder;
  std::int64_t inputs = 0, outputs = 0; // of the layers
  learner::Mlp layers;
  learner::ParameterLayout layout;
};

/// Makes the policy by which the agent acts. Continuous actions are the tanh of the outputs; a
/// choice is the greatest output.
std::unique_ptr<learner::Policy> make_python_policy(const std::string& name,
                                                    const Settings& settings,
                                                    const replay::TransitionSpec& transitions);

} // namespace troupe::python
