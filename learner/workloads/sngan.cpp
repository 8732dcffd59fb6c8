#include "learner/workloads/sngan.hpp"

#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/autograd.h>

#include "collectives/timeline.hpp"
#include "env/split_mix.hpp"
#include "learner/gradients/not_finite.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/nn/global_batch_norm.hpp"
#include "learner/nn/kernels/fused_torch_adam.hpp"
#include "learner/nn/kernels/precision.hpp"
#include "learner/nn/module_state.hpp"
#include "learner/nn/parameter_layout.hpp"
#include "learner/nn/picture_normaliser.hpp"
#include "learner/nn/spectral_norm.hpp"
#include "learner/workloads/checked_batch.hpp"
#include "learner/workloads/sngan_networks.hpp"

namespace troupe::learner {
namespace {

constexpr const char* kGenerator = "generator.";
constexpr const char* kCritic = "critic.";
constexpr const char* kSnganAverage = "average.";
constexpr std::int64_t kEvaluated = 64;   // real pictures processed at a time
constexpr std::uint64_t kSampleSeed = 17; // for evaluation and pictures(): always the same
constexpr std::int64_t kShownClasses = 20;
constexpr std::int64_t kShownEach = 8; // samples per class
constexpr const char* kSteps = "counters.generator_steps";
constexpr const char* kCriticSteps = "counters.critic_steps";

/// Makes the optimizer of one of the two networks: Adam with a rate that falls linearly to 0.
std::unique_ptr<WrappedOptimizer> wrapped(ReplicaContext& context, const torch::nn::Module& module,
                                          const SnganConfig& config, double rate,
                                          std::int64_t decay_steps) {
  auto adam = std::make_unique<FusedTorchAdam>(
      module.parameters(), torch::optim::AdamOptions(rate).betas({config.beta1, config.beta2}));
  WrappedOptimizerOptions wrapping;
  wrapping.names = parameter_names(module, *adam);
  wrapping.timeline = context.timeline();
  if (decay_steps > 0)
    wrapping.schedules.push_back({.shape = ScheduleShape::polynomial, .total_steps = decay_steps});
  return context.wrap_optimizer(std::move(adam), wrapping);
}

std::int64_t counter_of(const TensorMap& state, const char* name) {
  const auto found = state.find(name);
  if (found == state.end() || found->second.numel() != 1 || found->second.scalar_type() != at::kLong
      || found->second.item<std::int64_t>() < 0)
    throw std::runtime_error(std::string("the optimizer's state lacks '") + name
                             + "'; load what optimizer_state() gave");
  return found->second.item<std::int64_t>();
}

class SnganReplica : public Sngan {
public:
  SnganReplica(const SnganConfig& config, const SnganSpec& spec)
      : config_(config), spec_(spec), normalise_({0.5}, {0.5}, 3) {
    check(config, spec);
  }

  void build(ReplicaContext& context) override;
  Input input_fn(const InputContext& context) override {
    return spec_.input ? spec_.input(context) : [] { return TensorMap{}; };
  }
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;
  Metrics critic_step(ReplicaContext& context, const TensorMap& batch) override;
  Metrics generator_step(ReplicaContext& context, std::int64_t rows) override;
  TensorMap parameters() override;
  TensorMap optimizer_state() override;
  void load(const TensorMap& parameters, const TensorMap& optimizer_state) override;
  Metrics evaluate(ReplicaContext& context) override;
  TensorMap pictures() override;
  at::Tensor sample(const at::Tensor& labels, at::Generator generator) override;

private:
  struct Wish { // the inputs of the generator
    at::Tensor noise;
    at::Tensor labels;
  };

  SnganGenerator built_generator(std::uint64_t seed) const;
  void settle(torch::nn::Module& module) const;
  Wish draw(ReplicaContext& context, std::int64_t rows, std::uint64_t number) const;
  at::Tensor generated(const Wish& wish);
  at::Tensor scored(const at::Tensor& pictures, const at::Tensor& labels);
  double finite(double loss, const char* name) const;

  SnganConfig config_;
  SnganSpec spec_;
  PictureNormaliser normalise_;
  at::Device device_ = at::kCPU;
  at::ScalarType precision_ = at::kFloat;
  at::ScalarType type_ = at::kFloat; // of the parameters and losses
  std::uint64_t noise_seed_ = 0;     // equal on all replicas that step together
  SnganGenerator generator_{nullptr};
  SnganGenerator average_{nullptr}; // with averaged weights; null: off
  SnganCritic critic_{nullptr};
  std::unique_ptr<SpectralNorm> spectral_norm_;
  std::unique_ptr<WrappedOptimizer> generator_optimizer_;
  std::unique_ptr<WrappedOptimizer> critic_optimizer_;
  std::optional<FeatureStatistics> real_; // of the real pictures, once needed
  std::int64_t steps_ = 0;
  std::int64_t critic_steps_ = 0;
};

void SnganReplica::settle(torch::nn::Module& module) const {
  module.to(device_);
  change_type(module, type_);
  if (config_.channels_last)
    lay_out_channels_last(module);
}

SnganGenerator SnganReplica::built_generator(std::uint64_t seed) const {
  SnganGenerator generator(SnganShape{.size = spec_.size,
                                      .classes = spec_.classes,
                                      .latent = config_.latent,
                                      .generator_channels = config_.generator_channels,
                                      .tapered = config_.tapered},
                           at::make_generator<at::CPUGeneratorImpl>(seed));
  settle(*generator);
  return generator;
}

void SnganReplica::build(ReplicaContext& context) {
  device_ = context.device();
  precision_ = choose_precision(config_.precision, device_, true, "precision");
  type_ = precision_ == at::kDouble ? at::kDouble : at::kFloat;
  steps_ = critic_steps_ = 0;
  auto seed = at::full({1}, static_cast<std::int64_t>(context.seed()),
                       at::TensorOptions(at::kLong).device(device_));
  if (context.has_collectives())
    context.broadcast_(seed);
  noise_seed_ = static_cast<std::uint64_t>(seed.item<std::int64_t>());
  generator_ = built_generator(noise_seed_);
  critic_ = SnganCritic(SnganShape{.size = spec_.size,
                                   .classes = spec_.classes,
                                   .critic_channels = config_.critic_channels,
                                   .tapered = config_.tapered},
                        at::make_generator<at::CPUGeneratorImpl>(env::mix_bits(noise_seed_)));
  settle(*critic_);
  if (config_.global_batch_norm)
    convert_batch_norm(*generator_, context);
  critic_optimizer_ = wrapped(context, *critic_, config_, config_.critic_learning_rate,
                              config_.decay_steps * config_.critic_steps);
  generator_optimizer_ =
      wrapped(context, *generator_, config_, config_.generator_learning_rate, config_.decay_steps);
  spectral_norm_ = std::make_unique<SpectralNorm>(*critic_, noise_seed_); // from equal weights
  average_ = nullptr;
  if (config_.average_decay == 0)
    return;
  average_ = built_generator(noise_seed_);
  average_->eval();
  const at::NoGradGuard guard;
  copy_by_name(module_state(*generator_), module_state(*average_));
}

/// Every replica that steps together draws the noise of all of them, and takes its own rows.
SnganReplica::Wish SnganReplica::draw(ReplicaContext& context, std::int64_t rows,
                                      std::uint64_t number) const {
  const bool together = context.has_collectives();
  const auto parts = together ? context.num_replicas_in_sync() : 1;
  const auto first = rows * (together ? context.rank_in_sync_group() : 0);
  auto random = at::make_generator<at::CPUGeneratorImpl>(
      env::mix_bits(noise_seed_ + (number + 1) * env::kSplitMixStep));
  const auto noise = at::randn({rows * parts, config_.latent}, random, at::kFloat);
  const auto labels = at::randint(spec_.classes, {rows * parts}, random, at::kLong);
  return {.noise = noise.narrow(0, first, rows).to(device_, type_),
          .labels = labels.narrow(0, first, rows).to(device_)};
}

at::Tensor SnganReplica::generated(const Wish& wish) {
  const Autocast cast(precision_, device_);
  return generator_->forward(wish.noise, wish.labels).to(precision_);
}

at::Tensor SnganReplica::scored(const at::Tensor& pictures, const at::Tensor& labels) {
  spectral_norm_->apply(true);
  const Autocast cast(precision_, device_);
  return critic_->forward(pictures, labels).to(type_);
}

double SnganReplica::finite(double loss, const char* name) const {
  if (!std::isfinite(loss))
    throw std::runtime_error(std::string(name) + " is NaN or infinite at step "
                             + std::to_string(steps_ + 1)
                             + ": the networks' outputs overflowed; lower the learning rates");
  return loss;
}

Metrics SnganReplica::critic_step(ReplicaContext& context, const TensorMap& batch) {
  const collectives::Timeline::Span critic(context.timeline(), "critic");
  const auto& pictures = tensor_of(batch, "picture");
  const auto when = "critic step " + std::to_string(critic_steps_ + 1);
  check_rows(pictures, "picture", {3, spec_.size, spec_.size}, when);
  const auto rows = pictures.size(0);
  const auto labels = checked_labels(batch, rows, spec_.classes, when).to(device_);
  const auto layout =
      config_.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  const auto real = normalise_(pictures.to(device_).contiguous(layout), precision_);
  const auto wish = draw(context, rows, 2 * static_cast<std::uint64_t>(critic_steps_));
  generator_->train();
  at::Tensor fake;
  {
    const at::NoGradGuard guard;
    fake = generated(wish);
  }
  critic_optimizer_->zero_grad();
  const auto scores = scored(at::cat({real, fake}), at::cat({labels, wish.labels}));
  const auto of_real = scores.narrow(0, 0, rows), of_fake = scores.narrow(0, rows, rows);
  const auto loss = hinge_critic_loss(of_real, of_fake);
  loss.backward();
  critic_optimizer_->step();
  const auto numbers =
      at::stack({loss.detach(), of_real.detach().mean(), of_fake.detach().mean()}).cpu();
  const auto number = [&](int i) { return numbers[i].item<double>(); };
  finite(number(0), "critic_loss");
  ++critic_steps_;
  return {{"critic_loss", number(0)}, {"critic_real", number(1)}, {"critic_fake", number(2)}};
}

Metrics SnganReplica::generator_step(ReplicaContext& context, std::int64_t rows) {
  const collectives::Timeline::Span generator(context.timeline(), "generator");
  const auto wish = draw(context, rows, 2 * static_cast<std::uint64_t>(steps_) + 1);
  generator_->train();
  generator_optimizer_->zero_grad();
  const auto fake = generated(wish);
  // The backward pass of the critic stops at the pictures: its parameters get no gradients.
  const auto seen = fake.detach().requires_grad_();
  const auto loss = hinge_generator_loss(scored(seen, wish.labels));
  fake.backward(torch::autograd::grad({loss}, {seen})[0]);
  generator_optimizer_->step();
  const double value = finite(loss.item<double>(), "generator_loss");
  ++steps_;
  if (average_)
    average_module(*average_, *generator_, config_.average_decay, steps_,
                   generator_optimizer_->updates_applied());
  return {
      {"generator_loss", value},
      {"learning_rate", generator_optimizer_->optimizer().param_groups()[0].options().get_lr()}};
}

Metrics SnganReplica::step_fn(ReplicaContext& context, const TensorMap& batch) {
  const auto rows = tensor_of(batch, "picture").size(0);
  const auto critic_steps = config_.critic_steps;
  if (rows < critic_steps || rows % critic_steps != 0)
    throw std::invalid_argument("the batch has " + std::to_string(rows) + " rows; it must be "
                                + std::to_string(critic_steps)
                                + " (critic_steps) times as many as one critic step takes");
  Metrics metrics;
  for (int step = 0; step < critic_steps; ++step) {
    TensorMap part;
    for (const auto& [name, tensor] : batch)
      part[name] = tensor.slice(0, step, std::nullopt, critic_steps);
    metrics = critic_step(context, part);
  }
  metrics.merge(generator_step(context, rows / critic_steps));
  return metrics;
}

TensorMap SnganReplica::parameters() {
  auto state = module_state(*generator_, kGenerator);
  state.merge(module_state(*critic_, kCritic));
  if (average_)
    state.merge(module_state(*average_, kSnganAverage));
  return state;
}

TensorMap SnganReplica::optimizer_state() {
  TensorMap state{{kSteps, at::full({1}, steps_, at::kLong)},
                  {kCriticSteps, at::full({1}, critic_steps_, at::kLong)}};
  for (const auto& [name, tensor] : generator_optimizer_->state())
    state[kGenerator + name] = tensor;
  for (const auto& [name, tensor] : critic_optimizer_->state())
    state[kCritic + name] = tensor;
  return state;
}

void SnganReplica::load(const TensorMap& parameters_in, const TensorMap& state_in) {
  const at::NoGradGuard no_gradient;
  const auto live = parameters();
  check_by_name("parameters", parameters_in, live);
  if (!state_in.empty()) {
    const auto steps = counter_of(state_in, kSteps);
    const auto critic_steps = counter_of(state_in, kCriticSteps);
    generator_optimizer_->load(below(state_in, kGenerator));
    critic_optimizer_->load(below(state_in, kCritic));
    steps_ = steps;
    critic_steps_ = critic_steps;
  }
  copy_by_name(parameters_in, live);
}

at::Tensor SnganReplica::sample(const at::Tensor& labels, at::Generator generator) {
  const at::NoGradGuard guard;
  if (labels.dim() != 1 || labels.scalar_type() != at::kLong)
    throw std::invalid_argument("sample: labels are " + Nest(labels).describe()
                                + "; they must be int64 [pictures]");
  auto& network = average_ ? average_ : generator_;
  network->eval();
  const auto noise = at::randn({labels.size(0), config_.latent}, std::move(generator), at::kFloat);
  const Autocast cast(precision_, device_);
  const auto pictures = network->forward(noise.to(device_, type_), labels.to(device_));
  return ((pictures.to(type_) + 1) * 127.5).round_().clamp_(0, 255).to(at::kCPU, at::kByte);
}

Metrics SnganReplica::evaluate(ReplicaContext& context) {
  if (!spec_.real || !spec_.describe)
    return {};
  if (!config_.global_batch_norm)
    for (auto generator : {generator_, average_})
      if (generator)
        agree_on_buffers(*generator, context);
  if (!real_)
    real_ = statistics_of(context, *spec_.real, kEvaluated, spec_.describe);
  return measure_samples(
      context,
      [&](const at::Tensor& labels, at::Generator random) {
        return sample(labels, std::move(random));
      },
      spec_.describe, *real_, config_.evaluation_samples, spec_.classes, kSampleSeed);
}

TensorMap SnganReplica::pictures() {
  const auto rows = std::min<std::int64_t>(spec_.classes, kShownClasses);
  const auto labels = at::arange(rows, at::kLong).repeat_interleave(kShownEach);
  return {{"samples",
           picture_grid(sample(labels, at::make_generator<at::CPUGeneratorImpl>(kSampleSeed)),
                        kShownEach)}};
}

} // namespace

std::unique_ptr<Sngan> make_sngan(const SnganConfig& config, const SnganSpec& spec) {
  return std::make_unique<SnganReplica>(config, spec);
}

at::Tensor hinge_critic_loss(const at::Tensor& real, const at::Tensor& fake) {
  return (1 - real).relu().mean() + (1 + fake).relu().mean();
}

at::Tensor hinge_generator_loss(const at::Tensor& fake) {
  return -fake.mean();
}

at::Tensor picture_grid(const at::Tensor& pictures, std::int64_t columns) {
  if (columns < 1 || pictures.dim() != 4 || pictures.scalar_type() != at::kByte)
    throw std::invalid_argument("picture_grid: " + std::to_string(columns) + " columns of "
                                + Nest(pictures).describe()
                                + "; it takes at least 1, of uint8 [n, channels, height, width]");
  const auto channels = pictures.size(1), height = pictures.size(2), width = pictures.size(3);
  const auto rows = (pictures.size(0) + columns - 1) / columns;
  const auto grid = at::full({channels, rows * height, columns * width}, 0, pictures.options());
  for (std::int64_t i = 0; i < pictures.size(0); ++i)
    grid.narrow(1, i / columns * height, height)
        .narrow(2, i % columns * width, width)
        .copy_(pictures[i]);
  return grid;
}

} // namespace troupe::learner
