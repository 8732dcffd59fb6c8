#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "actors/protocol/histogram_wire.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {
class Replica;
}

namespace troupe::actors {

/// The distributions of a learner's parameters, "parameters/<name>", and of its optimizers' running
/// means of the gradients, "gradient_means/<name>": of the first 64 tensors of each, without
/// targets, and of at most 65,536 evenly spaced values of a tensor. Between two updates, on the
/// learner's thread.
wire::Distributions learner_histograms(learner::Replica& replica);

/// Counts the actions of an environment actor: "actions/<i>" of each of up to 16 components, or
/// "actions" of all together. One thread; does not allocate in add().
class ActionHistograms {
public:
  explicit ActionHistograms(const replay::TransitionSpec& transitions);

  /// [environments, action size], exploration included.
  void add(std::span<const float> actions);
  /// Those since the last call.
  wire::Distributions take();

private:
  std::vector<learner::Histogram> empty_, counted_; // one per component, or one
};

} // namespace troupe::actors
