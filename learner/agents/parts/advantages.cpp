#include "learner/agents/parts/advantages.hpp"

#include <algorithm>

#include <torch/types.h>

#include "learner/agents/agent.hpp"

namespace troupe::learner {

Advantages generalized_advantages(const TensorMap& batch, const at::Tensor& values, double discount,
                                  double lambda) {
  const at::Tensor reward = batch.at("reward").to(at::kDouble);
  const at::Tensor ends = batch.at("discount").to(at::kDouble) * discount;
  const std::int64_t rows = reward.size(0);
  const std::int64_t steps = reward.size(1);
  const at::Tensor dense = values.contiguous();
  Advantages made{at::zeros({rows, steps}, at::kDouble), at::zeros({rows, steps}, at::kDouble)};
  const auto r = reward.accessor<double, 2>();
  const auto d = ends.accessor<double, 2>();
  const auto v = dense.accessor<double, 2>();
  const auto first = batch.at("first").accessor<std::uint8_t, 2>();
  auto advantage = made.advantage.accessor<double, 2>();
  auto value = made.value.accessor<double, 2>();
  for (std::int64_t row = 0; row < rows; ++row) {
    double after = 0;
    for (std::int64_t t = steps - 1; t >= 0; --t) {
      if (first[row][t + 1] != 0) {
        after = 0;
        value[row][t] = v[row][t];
        continue;
      }
      after = r[row][t] + d[row][t] * v[row][t + 1] - v[row][t] + d[row][t] * lambda * after;
      advantage[row][t] = after;
      value[row][t] = after + v[row][t];
    }
  }
  return made;
}

Advantages v_trace(const TensorMap& batch, const at::Tensor& values, const at::Tensor& ratios,
                   const VTraceOptions& options) {
  const at::Tensor reward = batch.at("reward").to(at::kDouble) * options.reward_scale;
  const at::Tensor ends = batch.at("discount").to(at::kDouble) * options.discount;
  const std::int64_t rows = reward.size(0);
  const std::int64_t steps = reward.size(1);
  const at::Tensor dense = values.contiguous();
  const at::Tensor dense_ratios = ratios.contiguous();
  Advantages made{at::zeros({rows, steps}, at::kDouble), at::zeros({rows, steps}, at::kDouble)};
  const auto r = reward.accessor<double, 2>();
  const auto d = ends.accessor<double, 2>();
  const auto v = dense.accessor<double, 2>();
  const auto ratio = dense_ratios.accessor<double, 2>();
  const auto first = batch.at("first").accessor<std::uint8_t, 2>();
  auto advantage = made.advantage.accessor<double, 2>();
  auto value = made.value.accessor<double, 2>();
  for (std::int64_t row = 0; row < rows; ++row) {
    double beyond = 0; // value_{t+1} - V_{t+1}
    for (std::int64_t t = steps - 1; t >= 0; --t) {
      if (first[row][t + 1] != 0) {
        beyond = 0;
        value[row][t] = v[row][t];
        continue;
      }
      const double weight = std::min(options.most_weight, ratio[row][t]);
      const double trace = options.lambda * std::min(options.most_trace, ratio[row][t]);
      const double next = v[row][t + 1];
      advantage[row][t] = weight * (r[row][t] + d[row][t] * (next + beyond) - v[row][t]);
      beyond = weight * (r[row][t] + d[row][t] * next - v[row][t]) + d[row][t] * trace * beyond;
      value[row][t] = v[row][t] + beyond;
    }
  }
  return made;
}

at::Tensor counting_steps(const TensorMap& batch) {
  const at::Tensor& first = batch.at("first");
  return 1 - first.narrow(1, 1, first.size(1) - 1).to(at::kFloat);
}

at::Tensor normalised(const at::Tensor& advantage, const at::Tensor& counts) {
  const at::Tensor count = counts.sum().clamp_min(1);
  const at::Tensor center = (advantage * counts).sum() / count;
  const at::Tensor variance = ((advantage - center).square() * counts).sum() / count;
  return (advantage - center) / (variance.sqrt() + 1e-8);
}

double sample_age(const TensorMap& batch, std::int64_t updates) {
  const at::Tensor counts = counting_steps(batch).to(at::kDouble);
  const at::Tensor lag = updates - batch.at(kVersionColumn).to(at::kDouble);
  return (lag * counts).sum().item<double>() / std::max(1.0, counts.sum().item<double>());
}

} // namespace troupe::learner
