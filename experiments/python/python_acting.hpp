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

/// What an agent's Python class says of itself with certain options.
struct Settings {
  std::int64_t batch_size = 1;
  std::vector<std::int64_t> layers;
  learner::Schedule noise;   // of continuous actions
  learner::Schedule epsilon; // of choices
  bool discrete = false;
  std::string encoder; // of pixels; "": states
  std::int64_t encoder_channels = 0;
};

/// The acting network: ReLU layers, from pixels behind an encoder.
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

/// How the agent acts: tanh of the outputs makes continuous actions, the greatest output a choice.
std::unique_ptr<learner::Policy> make_python_policy(const std::string& name,
                                                    const Settings& settings,
                                                    const replay::TransitionSpec& transitions);

} // namespace troupe::python
