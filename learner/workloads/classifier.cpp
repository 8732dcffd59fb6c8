#include "learner/workloads/classifier.hpp"

#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/rmsprop.h>

#include "env/split_mix.hpp"
#include "learner/data/row_means.hpp"
#include "learner/gradients/not_finite.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/nn/global_batch_norm.hpp"
#include "learner/nn/kernels/fused_sgd.hpp"
#include "learner/nn/kernels/fused_torch_adam.hpp"
#include "learner/nn/kernels/precision.hpp"
#include "learner/nn/module_state.hpp"
#include "learner/nn/parameter_layout.hpp"
#include "learner/nn/picture_normaliser.hpp"
#include "learner/workloads/captured_update.hpp"
#include "learner/workloads/checked_batch.hpp"
#include "learner/workloads/classifier_network.hpp"

namespace troupe::learner {
namespace {

namespace functional = torch::nn::functional;

constexpr const char* kClassifierAverage = "average."; // prefix of the names of averaged weights
constexpr const char* kCounter = "counters.updates";
constexpr std::int64_t kBest = 5;   // for top5
constexpr double kScaledRows = 256; // rows per update to which learning_rate refers

/// Makes two parameter groups; the second one, without decay, holds biases and batch norms.
template <class Optimizer, class Options>
std::unique_ptr<torch::optim::Optimizer> grouped(const torch::nn::Module& module, Options options) {
  std::vector<at::Tensor> decayed, plain;
  for (const auto& parameter : module.parameters())
    (parameter.dim() > 1 ? decayed : plain).push_back(parameter);
  auto without = options;
  without.weight_decay(0);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::move(decayed), std::make_unique<Options>(options));
  groups.emplace_back(std::move(plain), std::make_unique<Options>(without));
  return std::make_unique<Optimizer>(groups, options);
}

std::unique_ptr<torch::optim::Optimizer> optimizer_for(const ClassifierConfig& config,
                                                       const torch::nn::Module& module) {
  const double rate =
      config.learning_rate
      * (config.linear_scaling ? static_cast<double>(config.batch_size) / kScaledRows : 1);
  if (config.optimizer == "sgd")
    return grouped<FusedSgd>(module, torch::optim::SGDOptions(rate)
                                         .momentum(config.momentum)
                                         .nesterov(config.nesterov)
                                         .weight_decay(config.weight_decay));
  if (config.optimizer == "rmsprop")
    return grouped<torch::optim::RMSprop>(module, torch::optim::RMSpropOptions(rate)
                                                      .alpha(config.rmsprop_decay)
                                                      .eps(config.rmsprop_epsilon)
                                                      .momentum(config.momentum)
                                                      .weight_decay(config.weight_decay));
  return grouped<FusedAdamW>(module, torch::optim::AdamWOptions(rate)
                                         .betas({config.beta1, config.beta2})
                                         .eps(config.epsilon)
                                         .weight_decay(config.weight_decay));
}

LearningRateSchedule schedule_for(const ClassifierConfig& config, const ClassifierSpec& spec) {
  const auto steps = [&](double epochs) {
    return std::max<std::int64_t>(1,
                                  std::llround(epochs * static_cast<double>(spec.steps_per_epoch)));
  };
  LearningRateSchedule schedule{.warmup_steps =
                                    config.warmup_epochs > 0 ? steps(config.warmup_epochs) : 0,
                                .total_steps = steps(config.epochs),
                                .decay = config.decay,
                                .decay_steps = steps(config.decay_epochs)};
  for (const double epoch : config.milestones)
    schedule.milestones.push_back(steps(epoch));
  if (config.schedule == "cosine")
    schedule.shape = ScheduleShape::cosine;
  else if (config.schedule == "steps")
    schedule.shape = ScheduleShape::steps;
  else if (config.schedule == "exponential")
    schedule.shape = ScheduleShape::exponential;
  schedule.total_steps = std::max(schedule.total_steps, schedule.warmup_steps + 1);
  return schedule;
}

class NetworkClassifier : public Classifier {
public:
  NetworkClassifier(const ClassifierConfig& config, const ClassifierSpec& spec,
                    UpdateCapture capture)
      : config_(config),
        spec_(spec),
        capture_(capture),
        normalise_(config.mean, config.standard_deviation,
                   spec.features > 0 ? std::int64_t(config.mean.size()) : spec.channels) {
    check(config, spec);
  }

  void build(ReplicaContext& context) override;
  Input input_fn(const InputContext& context) override {
    return spec_.input ? spec_.input(context) : [] { return TensorMap{}; };
  }
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;
  TensorMap parameters() override;
  TensorMap optimizer_state() override;
  void load(const TensorMap& parameters, const TensorMap& optimizer_state) override;

  Metrics evaluate(ReplicaContext& context) override;
  TensorMap measure(const TensorMap& batch) override;
  TensorMap describe(const at::Tensor& pictures) override;
  void agree_on_buffers(ReplicaContext& context) override;

private:
  std::unique_ptr<ClassifierNetwork> built_network(std::uint64_t seed) const;
  std::string update_name() const { return "update " + std::to_string(updates_ + 1); }
  const at::Tensor& rows_of(const TensorMap& batch) const {
    return tensor_of(batch, spec_.features > 0 ? "features" : "picture");
  }
  bool draws() const { return config_.model == "inception_v3" && config_.dropout > 0; }
  void begin_captured();
  void check_input(const at::Tensor& input) const;
  at::Tensor prepare(const at::Tensor& input) const;
  const at::Tensor& labels_of(const TensorMap& batch, std::int64_t rows) const;
  at::Tensor wide(const at::Tensor& x) const { return x.to(network_type_); }
  at::Tensor loss_of(const ClassifierOutputs& outputs, const at::Tensor& labels) const;
  CapturedUpdate::Outcome outcome_of(const at::Tensor& rows, const at::Tensor& labels);
  CapturedUpdate::Report eager_update(const at::Tensor& rows, const at::Tensor& labels);
  ClassifierNetwork& judge() { return average_ ? *average_ : *network_; }

  ClassifierConfig config_;
  ClassifierSpec spec_;
  UpdateCapture capture_;
  PictureNormaliser normalise_;
  at::Device device_ = at::kCPU;
  at::ScalarType precision_ = at::kFloat;    // of the layers
  at::ScalarType network_type_ = at::kFloat; // of the parameters and the loss
  std::uint64_t seed_ = 0;
  std::unique_ptr<ClassifierNetwork> network_;
  std::unique_ptr<ClassifierNetwork> average_; // with averaged weights; null: off
  std::unique_ptr<WrappedOptimizer> optimizer_;
  collectives::Timeline* timeline_ = nullptr; // the replica's; null: not recorded
  std::optional<CapturedUpdate> captured_;    // none: all updates are eager
  std::int64_t updates_ = 0;
};

std::unique_ptr<ClassifierNetwork> NetworkClassifier::built_network(std::uint64_t seed) const {
  auto network = make_network(config_, spec_, seed);
  network->module().to(device_);
  change_type(network->module(), network_type_);
  if (config_.channels_last)
    lay_out_channels_last(network->module());
  return network;
}

void NetworkClassifier::build(ReplicaContext& context) {
  device_ = context.device();
  normalise_.to(device_);
  seed_ = context.seed();
  updates_ = 0;
  precision_ = choose_precision(config_.precision, device_, config_.model != "mlp", "precision");
  network_type_ = precision_ == at::kDouble ? at::kDouble : at::kFloat;
  network_ = built_network(seed_);
  auto& module = network_->module();
  if (config_.global_batch_norm)
    convert_batch_norm(module, context);
  captured_.reset(); // it refers to the optimizer
  auto optimizer = optimizer_for(config_, module);
  WrappedOptimizerOptions wrapping;
  wrapping.max_gradient_norm = config_.gradient_norm;
  wrapping.names = parameter_names(module, *optimizer);
  wrapping.schedules = {schedule_for(config_, spec_)};
  wrapping.timeline = timeline_ = context.timeline();
  optimizer_ = context.wrap_optimizer(std::move(optimizer), wrapping);
  begin_captured();
  average_.reset();
  if (config_.average_decay == 0)
    return;
  average_ = built_network(seed_);
  average_->module().eval();
  const at::NoGradGuard guard;
  copy_by_name(module_state(module), module_state(average_->module()));
}

void NetworkClassifier::begin_captured() {
  captured_.reset();
  if (captures(capture_, device_) && !draws() && CapturedUpdate::supports(*optimizer_))
    captured_.emplace(*optimizer_, device_,
                      [this](const at::Tensor& rows, const at::Tensor& labels) {
                        return outcome_of(rows, labels);
                      });
}

void NetworkClassifier::check_input(const at::Tensor& input) const {
  if (spec_.features > 0)
    check_rows(input, "features", {spec_.features}, update_name());
  else
    check_rows(input, "picture", {spec_.channels, spec_.height, spec_.width}, update_name());
}

/// Converts checked input on the device to the network's input.
at::Tensor NetworkClassifier::prepare(const at::Tensor& input) const {
  if (spec_.features > 0)
    return input.to(network_type_);
  return normalise_(config_.channels_last ? input.contiguous(at::MemoryFormat::ChannelsLast)
                                          : input.contiguous(),
                    precision_);
}

const at::Tensor& NetworkClassifier::labels_of(const TensorMap& batch, std::int64_t rows) const {
  return checked_labels(batch, rows, spec_.classes, update_name());
}

at::Tensor NetworkClassifier::loss_of(const ClassifierOutputs& outputs,
                                      const at::Tensor& labels) const {
  const auto options =
      functional::CrossEntropyFuncOptions().label_smoothing(config_.label_smoothing);
  const auto loss = functional::cross_entropy(wide(outputs.logits), labels, options);
  if (!outputs.auxiliary.defined())
    return loss;
  return loss
         + config_.auxiliary_weight
               * functional::cross_entropy(wide(outputs.auxiliary), labels, options);
}

/// Takes checked rows and labels on the device.
CapturedUpdate::Outcome NetworkClassifier::outcome_of(const at::Tensor& rows,
                                                      const at::Tensor& labels) {
  const auto input = prepare(rows);
  ClassifierOutputs outputs;
  {
    const Autocast cast(precision_, device_);
    outputs = network_->forward(input);
  }
  const auto right = outputs.logits.detach().argmax(1).eq(labels);
  return {.loss = loss_of(outputs, labels), .accuracy = right.to(at::kDouble).mean()};
}

CapturedUpdate::Report NetworkClassifier::eager_update(const at::Tensor& rows,
                                                       const at::Tensor& labels) {
  optimizer_->zero_grad();
  using Span = collectives::Timeline::Span;
  Span forward(timeline_, "forward");
  const auto outcome = outcome_of(rows.to(device_), labels.to(device_));
  forward.end();
  Span backward(timeline_, "backward");
  outcome.loss.backward();
  backward.end();
  optimizer_->step();
  const auto numbers = at::stack({outcome.loss.detach().to(at::kDouble), outcome.accuracy}).cpu();
  return {.loss = numbers[0].item<double>(), .accuracy = numbers[1].item<double>()};
}

Metrics NetworkClassifier::step_fn(ReplicaContext&, const TensorMap& batch) {
  const auto& rows = rows_of(batch);
  check_input(rows);
  const auto& labels = labels_of(batch, rows.size(0));
  network_->module().train();
  network_->seed_dropout(
      env::mix_bits(seed_ + (static_cast<std::uint64_t>(updates_) + 1) * env::kSplitMixStep));
  const auto said = captured_ && captured_->takes(rows, labels) ? captured_->make(rows, labels)
                                                                : eager_update(rows, labels);
  if (!std::isfinite(said.loss))
    throw std::runtime_error("the loss is NaN or infinite at " + update_name()
                             + ": the logits overflowed; lower the learning rate");
  ++updates_;
  if (average_)
    average_module(average_->module(), network_->module(), config_.average_decay, updates_,
                   optimizer_->updates_applied());
  return {{"loss", said.loss},
          {"accuracy", said.accuracy},
          {"learning_rate", optimizer_->optimizer().param_groups()[0].options().get_lr()},
          {"gradient_norm", optimizer_->gradient_norm()}};
}

TensorMap NetworkClassifier::parameters() {
  auto state = module_state(network_->module());
  if (average_)
    state.merge(module_state(average_->module(), kClassifierAverage));
  return state;
}

TensorMap NetworkClassifier::optimizer_state() {
  auto state = optimizer_->state();
  state[kCounter] = at::full({1}, updates_, at::kLong);
  return state;
}

void NetworkClassifier::load(const TensorMap& parameters_in, const TensorMap& state_in) {
  const at::NoGradGuard no_gradient;
  const auto live = parameters();
  check_by_name("parameters", parameters_in, live);
  if (!state_in.empty()) {
    auto state = state_in;
    const auto counter = state.extract(kCounter);
    if (counter.empty() || counter.mapped().numel() != 1
        || counter.mapped().scalar_type() != at::kLong)
      throw std::runtime_error(std::string("the optimizer's state lacks '") + kCounter
                               + "'; load what optimizer_state() gave");
    optimizer_->load(state);
    begin_captured(); // a graph holds the addresses of the old state
    updates_ = counter.mapped().item<std::int64_t>();
  }
  copy_by_name(parameters_in, live);
}

Metrics NetworkClassifier::evaluate(ReplicaContext& context) {
  if (!spec_.validation)
    return {};
  const auto rows = config_.batch_size / context.num_replicas_in_sync();
  return evaluate_classifier(context, *this, *spec_.validation, std::max<std::int64_t>(1, rows));
}

TensorMap NetworkClassifier::describe(const at::Tensor& pictures) {
  const at::NoGradGuard guard;
  auto& network = judge();
  if (network.module().is_training())
    network.module().eval();
  check_input(pictures);
  const auto input = prepare(pictures.to(device_));
  const Autocast cast(precision_, device_);
  const auto features = network.features(input);
  return {{"features", wide(features)}, {"logits", wide(network.head(features))}};
}

TensorMap NetworkClassifier::measure(const TensorMap& batch) {
  const at::NoGradGuard guard;
  const auto logits = describe(rows_of(batch)).at("logits");
  const auto labels = labels_of(batch, logits.size(0)).to(device_);
  const auto best = std::get<1>(logits.topk(std::min(kBest, spec_.classes), 1));
  const auto hits = best.eq(labels.unsqueeze(1));
  return {
      {"loss", functional::cross_entropy(
                   logits, labels, functional::CrossEntropyFuncOptions().reduction(torch::kNone))},
      {"top1", hits.select(1, 0)},
      {"top5", hits.any(1)}};
}

void NetworkClassifier::agree_on_buffers(ReplicaContext& context) {
  if (config_.global_batch_norm)
    return;
  for (auto* network : {network_.get(), average_.get()})
    if (network)
      learner::agree_on_buffers(network->module(), context);
}

} // namespace

std::unique_ptr<Classifier> make_classifier(const ClassifierConfig& config,
                                            const ClassifierSpec& spec, UpdateCapture capture) {
  return std::make_unique<NetworkClassifier>(config, spec, capture);
}

Metrics evaluate_classifier(ReplicaContext& context, Replica& replica, const Dataset& dataset,
                            std::int64_t batch) {
  auto* classifier = dynamic_cast<Classifier*>(&replica);
  if (!classifier)
    throw std::invalid_argument(
        "evaluate_classifier: the replica is not a classifier; give one that "
        "make_classifier made");
  classifier->agree_on_buffers(context);
  return mean_over_rows(context, dataset, batch,
                        [&](const TensorMap& rows) { return classifier->measure(rows); });
}

} // namespace troupe::learner
