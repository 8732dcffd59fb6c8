#include "learner/agents/parts/parameter_noise.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include <torch/types.h>

#include "env/state_bytes.hpp"
#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/normal.hpp"

namespace troupe::learner {
namespace {

constexpr double kAdaption = 1.01; // factor by which the scale changes, from the paper
constexpr std::int64_t kAdaptionSteps = 10;
/// A policy that is saturated everywhere does not respond to any noise, so the scale needs a limit.
constexpr double kLargestScale = 10;

} // namespace

void ParameterNoise::load(const std::vector<LayerTensors>& parameters) {
  parameters_ = parameters;
  for (Copy& copy : copies_)
    copy.network.clear();
}

void ParameterNoise::perturb(Copy& copy) const {
  at::NoGradGuard no_gradient;
  if (copy.noise.empty()) {
    Random random(copy.seed);
    for (const LayerTensors& layer : parameters_)
      copy.noise.push_back(
          {normal(random, layer.weight.sizes()), normal(random, layer.bias.sizes()), {}, {}});
  }
  std::vector<LayerTensors> perturbed = parameters_;
  for (std::size_t i = 0; i < perturbed.size(); ++i) {
    perturbed[i].weight = at::add(perturbed[i].weight, copy.noise[i].weight, scale_).contiguous();
    perturbed[i].bias = at::add(perturbed[i].bias, copy.noise[i].bias, scale_).contiguous();
  }
  copy.network.emplace_back(network_).load(perturbed);
}

void ParameterNoise::apply(const float* x, const Exploration& exploration,
                           std::span<float> actions) {
  const double wanted = distance_.at(exploration.steps);
  if (wanted <= 0)
    return;
  if (scale_ == 0)
    scale_ = wanted;
  const std::size_t batch = exploration.random.size();
  const std::size_t size = actions.size() / batch;
  const auto inputs = static_cast<std::size_t>(network_.layer_inputs(0));
  copies_.resize(batch);
  played_.resize(size);
  for (std::size_t row = 0; row < batch; ++row) {
    Copy& copy = copies_[row];
    if (!copy.drawn || exploration.begins(row))
      copy = {.drawn = true, .seed = exploration.random[row]->generator()};
    if (copy.network.empty())
      perturb(copy);
    kernel_table().tanh(copy.network[0].forward(x + row * inputs, 1), played_.data(),
                        static_cast<std::int64_t>(size));
    for (std::size_t i = 0; i < size; ++i) {
      float& action = actions[row * size + i];
      if (!std::isfinite(played_[i]))
        throw std::runtime_error("the perturbed policy's action " + std::to_string(i) + " in row "
                                 + std::to_string(row) + " is not finite");
      const double distance = static_cast<double>(played_[i]) - static_cast<double>(action);
      squares_ += distance * distance;
      action = played_[i];
    }
  }
  distances_ += static_cast<std::int64_t>(actions.size());
  if (++steps_ == kAdaptionSteps)
    adapt(wanted);
}

void ParameterNoise::adapt(double wanted) {
  const double distance = std::sqrt(squares_ / static_cast<double>(distances_));
  scale_ = std::min(distance < wanted ? scale_ * kAdaption : scale_ / kAdaption, kLargestScale);
  squares_ = 0;
  distances_ = steps_ = 0;
  for (Copy& copy : copies_)
    copy.network.clear();
}

void ParameterNoise::save_state(std::vector<std::byte>& out) const {
  env::save_value(out, scale_);
  env::save_value(out, squares_);
  env::save_value(out, distances_);
  env::save_value(out, steps_);
  env::save_value(out, static_cast<std::uint64_t>(copies_.size()));
  for (const Copy& copy : copies_) {
    env::save_value(out, static_cast<std::uint8_t>(copy.drawn));
    env::save_value(out, copy.seed);
  }
}

std::span<const std::byte> ParameterNoise::load_state(std::span<const std::byte> in) {
  std::uint64_t count = 0;
  env::load_value(in, scale_, "scale of the parameter noise");
  env::load_value(in, squares_, "distances of the parameter noise");
  env::load_value(in, distances_, "number of distances of the parameter noise");
  env::load_value(in, steps_, "steps of the parameter noise");
  env::load_value(in, count, "number of perturbed networks");
  if (count > in.size() / (sizeof(std::uint8_t) + sizeof(std::uint64_t)))
    throw std::invalid_argument("the saved parameter noise is truncated: " + std::to_string(count)
                                + " networks in " + std::to_string(in.size()) + " bytes");
  copies_.assign(count, {});
  for (Copy& copy : copies_) {
    std::uint8_t drawn = 0;
    env::load_value(in, drawn, "perturbed network");
    env::load_value(in, copy.seed, "seed of a perturbed network");
    copy.drawn = drawn != 0;
  }
  return in;
}

} // namespace troupe::learner
