#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "learner/policy_graph/policy_graph.hpp"

namespace troupe::learner {

/// Computes a policy graph's actions, one observation at a time, in plain float32 loops. It is the
/// reference that exported policies are compared with. Not thread-safe. act() does not allocate.
class GraphRunner {
public:
  /// Throws std::invalid_argument if the layers do not fit together.
  explicit GraphRunner(PolicyGraph graph);

  const PolicyGraph& graph() const { return graph_; }

  /// Computes an action.
  ///   frames: graph().inputs bytes of a picture, or float32 numbers
  ///   vectors: graph().vectors numbers
  ///   state: state_size() numbers, zeros at the beginning of an episode; updated in place
  ///   action: output of action_size() numbers in [-1, 1]; choices are indices
  /// Throws std::invalid_argument if a size is wrong.
  void act(std::span<const std::byte> frames, std::span<const float> vectors,
           std::span<float> state, std::span<float> action);
  /// The outputs of the last layer in the most recent act().
  std::span<const float> outputs() const { return x_; }
  /// By how much the best choice of the most recent act() exceeds the next one, relative to the
  /// largest absolute value of a choice or, for distributions, of their range. The smallest margin
  /// of all components; infinity without choices. Where it is tiny, another order of summation may
  /// choose otherwise.
  double choice_margin() const;

private:
  void enter(std::span<const std::byte> frames);
  void convolve(const GraphLayer& layer, const std::vector<float>& weight);
  void multiply(const GraphLayer& layer);
  void remember(const GraphLayer& layer, std::span<float> state);
  void normalise(const GraphLayer& layer);
  void scale(const GraphLayer& layer);
  void shorten();
  void add_kept(const GraphLayer& layer);
  void choose(std::span<float> action) const;

  PolicyGraph graph_;
  std::vector<std::vector<float>> patches_; // weights of convolutions, see patch_weight()
  std::vector<float> x_;                    // outputs of the current layer
  std::vector<float> y_;
  std::vector<float> kept_; // copied by the most recent `keep` layer
};

/// A convolution's weight as [row, column, channel, output]. GraphRunner stores pictures as
/// [height, width, channels].
std::vector<float> patch_weight(const GraphLayer& layer);

} // namespace troupe::learner
