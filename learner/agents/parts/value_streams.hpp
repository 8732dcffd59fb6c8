#pragma once

#include <cstdint>
#include <optional>

#include "learner/agents/parts/layers.hpp"
#include "learner/nn/parameter_layout.hpp"
#include "learner/policy_graph/policy_graph.hpp"

namespace troupe::learner {

struct ValueStreamsOptions {
  std::int64_t features = 0; // inputs
  std::int64_t hidden = 0;   // units of a hidden layer with ReLU in each stream; 0: none
  std::int64_t choices = 1;
  std::int64_t atoms = 1; // per choice
  bool dueling = false;
  bool noisy = false;
};

/// The last layers of a network of the choices' values. A dueling network has two streams with a
/// hidden layer each, for the state's value and for the advantages of the choices, whose mean is
/// subtracted (Wang et al. 2016). Otherwise there is one stream.
class ValueStreams {
public:
  ValueStreams(ParameterLayout& layout, const ValueStreamsOptions& options);

  void initialise(const ParameterLayout& layout, const at::Tensor& flat,
                  at::Generator& generator) const;
  /// Returns [batch, choices, atoms].
  at::Tensor forward(const Leaves& leaves, const at::Tensor& features,
                     const NoiseSource* noise = nullptr) const;
  /// Adds the layers without noise. Two streams become one: their hidden layers lie side by side,
  /// and their outputs are added in the last layer, because the mean is linear.
  void describe(const Leaves& leaves, PolicyGraph& graph) const;

private:
  struct Stream {
    Stream(ParameterLayout& layout, const std::string& name, const ValueStreamsOptions& options,
           std::int64_t outputs);
    void initialise(const ParameterLayout& layout, const at::Tensor& flat,
                    at::Generator& generator) const;
    at::Tensor forward(const Leaves& leaves, const at::Tensor& features,
                       const NoiseSource* noise) const;

    std::optional<Linear> hidden;
    Linear output;
  };
  /// Combines advantages and values, whose last dimension has the outputs of their streams.
  at::Tensor combined(const at::Tensor& advantage, const at::Tensor& value) const;

  ValueStreamsOptions options_;
  Stream advantage_;
  std::optional<Stream> value_;
};

} // namespace troupe::learner
