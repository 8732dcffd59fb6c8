#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "learner/agents/parts/layers.hpp"

namespace troupe::learner {

/// The extra that contains the state of a recurrent policy before it chose the step's action;
/// float32 [state size].
inline constexpr const char* kMemory = "memory";

/// A layer with long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates).
class Lstm {
public:
  Lstm() = default;
  Lstm(ParameterLayout& layout, const std::string& name, std::int64_t inputs, std::int64_t size);

  /// Size of a row of a recurrent policy's state: the layer's outputs and cells.
  std::int64_t state_size() const { return 2 * size_; }

  /// Orthogonal layers; the forget gates are initially open.
  void initialise(const ParameterLayout& layout, const at::Tensor& flat,
                  at::Generator& generator) const;

  struct Output {
    at::Tensor hidden; // [batch, steps, size]
    at::Tensor state;  // [batch, 2 * size] after the last step
  };
  /// x: [batch, steps, inputs]; state: [batch, 2 * size]; first: [batch, steps] uint8 on the CPU, 1
  /// at the beginning of an episode, where the state is reset. Undefined: no episode begins.
  Output forward(const Leaves& leaves, const at::Tensor& x, const at::Tensor& state,
                 const at::Tensor& first = {}) const;

  void describe(const Leaves& leaves, PolicyGraph& graph) const;

private:
  Linear inputs_;             // to the gates: input, forget, output, and the new value
  std::size_t recurrent_ = 0; // [size, 4 * size]
  std::size_t bias_ = 0;
  std::int64_t size_ = 0;
};

/// The states of a recurrent policy as a tensor that is a view of `observations.state`. Throws
/// std::invalid_argument if they are not [batch, size].
at::Tensor acting_state(const Observations& observations, std::int64_t size);

/// Writes the states to the extra with the index `extra`, if extras are stored.
void store_state(const Observations& observations, const Exploration& exploration,
                 std::size_t extra);

} // namespace troupe::learner
