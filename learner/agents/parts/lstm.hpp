#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "learner/agents/parts/layers.hpp"

namespace troupe::learner {

/// The extra of a step, float32 [state size]: what a recurrent policy remembered when it was about
/// to choose the step's action.
inline constexpr const char* kMemory = "memory";

/// Cells with a long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates).
class Lstm {
public:
  Lstm() = default;
  Lstm(ParameterLayout& layout, const std::string& name, std::int64_t inputs, std::int64_t size);

  /// Of a layer's outputs and cells: a row of a recurrent policy's state.
  std::int64_t state_size() const { return 2 * size_; }
  std::int64_t size() const { return size_; }

  /// Orthogonal layers; gates that remember at first.
  void initialise(const ParameterLayout& layout, const at::Tensor& flat,
                  at::Generator& generator) const;

  struct Output {
    at::Tensor hidden; // [batch, steps, size]
    at::Tensor state;  // [batch, 2 * size] behind the last step
  };
  /// x: [batch, steps, inputs]; state: [batch, 2 * size]; first: [batch, steps] uint8 on the CPU,
  /// 1 where an episode begins, so that nothing is remembered; undefined: nowhere.
  Output forward(const Leaves& leaves, const at::Tensor& x, const at::Tensor& state,
                 const at::Tensor& first = {}) const;

  void describe(const Leaves& leaves, PolicyGraph& graph) const;

private:
  Linear inputs_;             // of the gates: input, forget, output, and the new value
  std::size_t recurrent_ = 0; // [size, 4 * size]
  std::size_t bias_ = 0;
  std::int64_t size_ = 0;
};

/// The states of a recurrent policy as a tensor, a view of `observations.state`. Throws
/// std::invalid_argument if they are not [batch, size].
at::Tensor acting_state(const Observations& observations, std::int64_t size);

/// Writes the states into the extra of that number, if steps are stored.
void store_state(const Observations& observations, const Exploration& exploration,
                 std::size_t extra);

} // namespace troupe::learner
