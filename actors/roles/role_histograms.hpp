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

/// Returns the distributions of a learner's parameters, "parameters/<name>", and of its optimizers'
/// running means of the gradients, "gradient_means/<name>". Covers the first 64 tensors of each,
/// without target networks, and at most 65,536 evenly spaced values per tensor. Call it on the
/// learner's thread, between two updates.
wire::Distributions learner_histograms(learner::Replica& replica);

/// Counts the actions of an environment actor: "actions/<i>" for each of up to 16 components, or
/// "actions" for all together if there are more. One thread; add() does not allocate.
class ActionHistograms {
public:
  explicit ActionHistograms(const replay::TransitionSpec& transitions);

  /// `actions`: [environments, action size], with exploration.
  void add(std::span<const float> actions);
  /// Returns the actions since the last call.
  wire::Distributions take();

private:
  std::vector<learner::Histogram> empty_, counted_; // one per component, or one for all
};

} // namespace troupe::actors
