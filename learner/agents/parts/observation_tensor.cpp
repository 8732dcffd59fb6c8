#include "learner/agents/parts/observation_tensor.hpp"

#include <cstring>
#include <stdexcept>
#include <vector>

#include <torch/types.h>

#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {

at::Tensor observation_tensor(const Observations& observations,
                              const replay::TransitionSpec& transitions,
                              std::span<const float> actions) {
  const env::ArraySpec observation = transitions.observation();
  const std::size_t bytes = observations.frames.size() * observations.frame_bytes;
  if (observations.batch < 1
      || bytes != static_cast<std::size_t>(observations.batch) * observation.bytes()
      || static_cast<std::int64_t>(actions.size()) != observations.batch * transitions.action_size)
    throw std::invalid_argument("the policy got " + std::to_string(bytes)
                                + " bytes of observations and " + std::to_string(actions.size())
                                + " actions for a batch of " + std::to_string(observations.batch)
                                + "; one observation has " + std::to_string(observation.bytes())
                                + " bytes, one action " + std::to_string(transitions.action_size)
                                + " values");
  std::vector<std::int64_t> shape = observation.shape;
  shape.insert(shape.begin(), observations.batch);
  at::Tensor tensor =
      at::empty(shape, observation.type == env::ElementType::uint8 ? at::kByte : at::kFloat);
  auto* to = static_cast<std::byte*>(tensor.mutable_data_ptr());
  for (const std::byte* frame : observations.frames) {
    std::memcpy(to, frame, observations.frame_bytes);
    to += observations.frame_bytes;
  }
  if (!all_finite(tensor))
    throw std::runtime_error("NaN or infinity in an observation given to the policy");
  return tensor;
}

void load_parameters(std::span<const float> parameters, const at::Tensor& to,
                     const std::string& agent) {
  if (static_cast<std::int64_t>(parameters.size()) != to.numel())
    throw std::invalid_argument("the policy has " + std::to_string(to.numel()) + " parameters, not "
                                + std::to_string(parameters.size())
                                + "; learner and actors must be given the same " + agent
                                + " settings and environment");
  if (!kernel_table().all_finite(parameters.data(), to.numel()))
    throw std::invalid_argument("the policy's parameters hold NaN or infinity; they are refused");
  std::memcpy(to.mutable_data_ptr<float>(), parameters.data(), parameters.size_bytes());
}

} // namespace troupe::learner
