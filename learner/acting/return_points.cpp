#include "learner/acting/return_points.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include <torch/types.h>

#include "learner/tensor_type.hpp"

namespace troupe::learner {
namespace {

constexpr double kMostMissing = 0.05; // fraction of the weight of what follows a step

/// Extracts one array of each observation, at byte `offset`, as [points, …].
at::Tensor array_of(const ReturnPoints& points, std::size_t bytes, std::size_t offset,
                    const env::ArraySpec& array) {
  std::vector<std::int64_t> shape = array.shape;
  const std::size_t count = points.returns.size();
  shape.insert(shape.begin(), static_cast<std::int64_t>(count));
  at::Tensor made = at::empty(shape, tensor_type(array.type));
  auto* to = static_cast<std::byte*>(made.mutable_data_ptr());
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(to + i * array.bytes(), points.observations.data() + i * bytes + offset,
                array.bytes());
  return made;
}

} // namespace

void ReturnPointRecorder::add(std::span<const std::byte> observation, std::span<const float> action,
                              double reward, double discount) {
  const std::size_t number = rewards_.size();
  rewards_.push_back(reward);
  discounts_.push_back(discount);
  if (number % stride_ != 0)
    return;
  if (steps_.size() == 2 * most_) { // full: keep every second step
    stride_ *= 2;
    std::erase_if(steps_, [&](const Step& step) { return step.number % stride_ != 0; });
    if (number % stride_ != 0)
      return;
  }
  steps_.push_back(
      {number, {observation.begin(), observation.end()}, {action.begin(), action.end()}});
}

ReturnPoints ReturnPointRecorder::finish() const {
  std::vector<double> returns(rewards_.size());
  std::vector<double> missing(rewards_.size()); // [steps] weight of what would follow the last step
  double following = 0, weight = 1;
  for (std::size_t i = rewards_.size(); i-- > 0;) {
    following = returns[i] = rewards_[i] + discount_ * discounts_[i] * following;
    weight = missing[i] = discount_ * discounts_[i] * weight;
  }
  std::vector<const Step*> whole;
  for (const Step& step : steps_)
    if (missing[step.number] <= kMostMissing)
      whole.push_back(&step);
  ReturnPoints made;
  const std::size_t count = std::min(most_, whole.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Step& step = *whole[i * whole.size() / count];
    made.observations.insert(made.observations.end(), step.observation.begin(),
                             step.observation.end());
    made.actions.insert(made.actions.end(), step.action.begin(), step.action.end());
    made.returns.push_back(returns[step.number]);
  }
  return made;
}

TensorMap tensors_of(const ReturnPoints& points, const replay::TransitionSpec& transitions) {
  const std::size_t bytes = transitions.observation_bytes(), count = points.returns.size();
  const auto actions = static_cast<std::size_t>(transitions.action_size);
  if (points.observations.size() != count * bytes || points.actions.size() != count * actions)
    throw std::invalid_argument(
        std::to_string(count) + " points with " + std::to_string(points.observations.size())
        + " bytes of observations and " + std::to_string(points.actions.size())
        + " numbers of actions; each has " + std::to_string(bytes) + " bytes and "
        + std::to_string(actions) + " numbers");
  TensorMap made;
  made["observation"] = array_of(points, bytes, 0, transitions.observation());
  for (std::size_t i = 0; i < transitions.vectors.size(); ++i) {
    const env::ArraySpec& vector = transitions.vectors[i];
    made[replay::vector_name("observation", vector)] =
        array_of(points, bytes, transitions.vector_offset(i), vector);
  }
  made["action"] = at::empty({static_cast<std::int64_t>(count), transitions.action_size});
  std::copy(points.actions.begin(), points.actions.end(), made["action"].mutable_data_ptr<float>());
  return made;
}

Metrics value_errors(const ReturnPoints& points, const at::Tensor& values) {
  const auto count = static_cast<std::int64_t>(points.returns.size());
  if (values.dim() != 1 || values.size(0) != count)
    throw std::runtime_error("the replica's action_values() are not [batch]");
  const at::Tensor returns =
      at::from_blob(const_cast<double*>(points.returns.data()), {count}, at::kDouble);
  const at::Tensor errors = values.to(at::kCPU, at::kDouble) - returns;
  return {{"q_bias", errors.mean().item<double>()},
          {"q_bias_deviation", errors.std(false).item<double>()},
          {"q_return", returns.mean().item<double>()}};
}

} // namespace troupe::learner
