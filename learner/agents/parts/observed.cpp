#include "learner/agents/parts/observed.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <torch/types.h>

#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {

namespace {

/// Copies the vectors of row `row` to consecutive memory.
void copy_vectors(const Observations& observations, const replay::TransitionSpec& transitions,
                  std::size_t row, std::byte* to) {
  const std::size_t count = transitions.vectors.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* from = observations.vectors.empty()
                                ? observations.frames[row] + transitions.vector_offset(i)
                                : observations.vectors[row * count + i];
    std::memcpy(to, from, transitions.vectors[i].bytes());
    to += transitions.vectors[i].bytes();
  }
}

} // namespace

Observed observed(const Observations& observations, const replay::TransitionSpec& transitions,
                  std::span<const float> actions) {
  const env::ArraySpec observation = transitions.observation();
  const auto batch = static_cast<std::size_t>(std::max<std::int64_t>(0, observations.batch));
  const std::size_t bytes = observations.frames.size() * observations.frame_bytes;
  const bool whole = observations.vectors.empty() && !transitions.vectors.empty();
  const std::size_t wanted = whole ? transitions.observation_bytes() : observation.bytes();
  if (batch < 1 || bytes != batch * wanted || (whole && observations.frames.size() != batch)
      || (!whole && observations.vectors.size() != batch * transitions.vectors.size())
      || static_cast<std::int64_t>(actions.size()) != observations.batch * transitions.action_size)
    throw std::invalid_argument(
        "the policy got " + std::to_string(bytes) + " bytes of observations and "
        + std::to_string(actions.size()) + " actions for a batch of "
        + std::to_string(observations.batch) + "; one observation has " + std::to_string(wanted)
        + " bytes, one action " + std::to_string(transitions.action_size) + " values");
  std::vector<std::int64_t> shape = observation.shape;
  shape.insert(shape.begin(), observations.batch);
  Observed made{
      at::empty(shape, observation.type == env::ElementType::uint8 ? at::kByte : at::kFloat), {}};
  auto* to = static_cast<std::byte*>(made.frames.mutable_data_ptr());
  const std::size_t frame_bytes = whole ? observation.bytes() : observations.frame_bytes;
  for (const std::byte* frame : observations.frames) {
    std::memcpy(to, frame, frame_bytes);
    to += frame_bytes;
  }
  if (const std::size_t numbers = transitions.vector_elements(); numbers > 0) {
    made.vectors = at::empty({observations.batch, static_cast<std::int64_t>(numbers)}, at::kFloat);
    auto* vectors = static_cast<std::byte*>(made.vectors.mutable_data_ptr());
    for (std::size_t row = 0; row < batch; ++row)
      copy_vectors(observations, transitions, row, vectors + row * numbers * sizeof(float));
  }
  if (!all_finite(made.frames) || (made.vectors.defined() && !all_finite(made.vectors)))
    throw std::runtime_error("NaN or infinity in an observation given to the policy");
  return made;
}

Observed observed(const TensorMap& batch, const std::string& name,
                  const replay::TransitionSpec& transitions, const at::TensorOptions& options) {
  const at::Tensor& frames = batch.at(name);
  Observed made{
      frames.scalar_type() == at::kByte ? frames.to(options.device()) : frames.to(options), {}};
  const std::int64_t rows =
      frames.dim() - static_cast<std::int64_t>(transitions.frame.shape.size());
  std::vector<at::Tensor> vectors;
  for (const env::ArraySpec& vector : transitions.vectors) {
    const at::Tensor& one = batch.at(replay::vector_name(name, vector));
    vectors.push_back(one.dim() == rows ? one.unsqueeze(rows) : one.flatten(rows));
  }
  if (!vectors.empty())
    made.vectors = (vectors.size() == 1 ? vectors[0] : at::cat(vectors, rows)).to(options);
  return made;
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
