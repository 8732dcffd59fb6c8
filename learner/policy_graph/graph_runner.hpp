#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "learner/policy_graph/policy_graph.hpp"

namespace troupe::learner {

/// Acts by a graph, one observation at a time, in plain loops of float32: the reference that
/// exported policies are compared with. One thread. act() does not allocate.
class GraphRunner {
public:
  /// Throws std::invalid_argument if layers do not fit each other.
  explicit GraphRunner(PolicyGraph graph);

  const PolicyGraph& graph() const { return graph_; }

  /// frames: graph().inputs bytes of a picture or float32 numbers; vectors: as many as the graph
  /// has; state: state_size() numbers, zeros where an episode begins, which are replaced; action:
  /// action_size() numbers in [-1, 1], choices as they are. Throws std::invalid_argument on other
  /// sizes.
  void act(std::span<const std::byte> frames, std::span<const float> vectors,
           std::span<float> state, std::span<float> action);
  /// What the last layer gave at the last act().
  std::span<const float> outputs() const { return x_; }

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
  std::vector<std::vector<float>> patches_; // weights of convolutions, patch by patch
  std::vector<float> x_;                    // what the layers so far gave
  std::vector<float> y_;
  std::vector<float> kept_; // by the last layer that keeps
};

/// A convolution's weight as [row, column, channel, output], and the layout of pictures in it,
/// [height, width, channels].
std::vector<float> patch_weight(const GraphLayer& layer);

} // namespace troupe::learner
