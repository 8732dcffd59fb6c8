#include "learner/trainer.hpp"

#include <stdexcept>

#include <torch/optim/optimizer.h>

#include <ATen/ops/full.h>

#include "learner/nn/global_batch_norm.hpp"
#include "learner/nn/module_state.hpp"
#include "learner/not_finite.hpp"
#include "learner/read_ahead.hpp"
#include "learner/row_means.hpp"
#include "learner/safetensors.hpp"

namespace troupe::learner {
namespace {

constexpr const char* kModule = "module.";       // before the names of parameters and buffers
constexpr const char* kOptimizer = "optimizer."; // before those of its state

void load_state(torch::nn::Module& module, const TensorMap& state,
                const std::filesystem::path& path) {
  const at::NoGradGuard guard;
  const auto live = module_state(module);
  std::string wrong;
  for (const auto& [name, tensor] : live) {
    const auto found = state.find(name);
    if (found == state.end())
      wrong += "; \"" + name + "\" is missing";
    else if (found->second.sizes() != tensor.sizes())
      wrong += "; \"" + name + "\" is " + Nest(found->second).describe() + ", not "
               + Nest(tensor).describe();
  }
  for (const auto& [name, tensor] : state)
    if (!live.contains(name))
      wrong += "; \"" + name + "\" is unknown";
  if (!wrong.empty())
    throw std::runtime_error("trainer: " + path.string() + " is not of this model" + wrong
                             + ". Nothing was changed");
  for (const auto& [name, tensor] : live) {
    auto target = tensor;
    target.copy_(state.at(name));
  }
}

std::int64_t counter(const std::map<std::string, std::string>& about, const std::string& name,
                     const std::filesystem::path& path) {
  const auto found = about.find(name);
  std::size_t used = 0;
  try {
    if (found != about.end())
      if (const auto value = std::stoll(found->second, &used);
          used == found->second.size() && value >= 0)
        return value;
  } catch (const std::logic_error&) { // said below
  }
  throw std::runtime_error("trainer: " + path.string() + " has no counter \"" + name
                           + "\" that is a whole number; was it written by a Trainer?");
}

} // namespace

struct Trainer::Seat {
  /// Batch norm takes statistics in the forward pass, before a gradient tells that they are spoilt.
  void keep_buffers() {
    const auto live = model->module().buffers();
    if (kept.empty())
      for (const auto& buffer : live)
        kept.push_back(buffer.detach().clone());
    else
      for (std::size_t i = 0; i < live.size(); ++i)
        kept[i].copy_(live[i]);
  }
  void take_buffers_back() {
    std::size_t i = 0;
    for (auto& buffer : model->module().buffers())
      buffer.detach().copy_(kept[i++]);
  }

  std::unique_ptr<TrainerModel> model;
  std::unique_ptr<WrappedOptimizer> optimizer;
  std::vector<at::Tensor> kept; // buffers as the last update left them, where steps are skipped
};

Trainer::Trainer(Replicator& replicator, const ModelFactory& factory, const TrainerOptions& options)
    : replicator_(replicator), options_(options) {
  if (options_.report_period < 0)
    throw std::invalid_argument("trainer: report_period " + std::to_string(options_.report_period)
                                + " must be at least 0");
  seats_ = std::make_unique<Replicated<Seat>>(replicator_.build<Seat>([&](ReplicaContext& context) {
    auto seat = std::make_shared<Seat>();
    seat->model = factory(context);
    if (!seat->model)
      throw std::invalid_argument("trainer: the factory made no model");
    if (options_.global_batch_norm)
      convert_batch_norm(seat->model->module(), context);
    auto optimizer = seat->model->make_optimizer();
    auto wrapping = options_.optimizer;
    if (wrapping.names.empty())
      wrapping.names = parameter_names(seat->model->module(), *optimizer);
    seat->optimizer = context.wrap_optimizer(std::move(optimizer), wrapping);
    for (auto& buffer : seat->model->module().buffers()) // parameters are alike by now
      context.broadcast_(buffer);
    return seat;
  }));
}

Trainer::~Trainer() = default;

TrainerModel& Trainer::model(int local_id) {
  return *(*seats_)[local_id].model;
}

EpochPlan Trainer::plan_of(const ReplicaContext& context, std::int64_t rows) const {
  // Replicas in sync that do not wait for each other (backup workers) take batches of their own.
  const bool together = context.has_collectives();
  const InputContext in_sync{.num_replicas_in_sync = context.num_replicas_in_sync()};
  return {.dataset_rows = rows,
          .global_batch = together ? options_.global_batch
                                   : in_sync.per_replica_batch_size(options_.global_batch),
          .group = together ? context.sync_group() : context.replica_id(),
          .groups = together ? context.num_sync_groups() : context.num_replicas(),
          .rank = context.rank_in_sync_group(),
          .replicas = together ? context.num_replicas_in_sync() : 1,
          .shuffle = options_.shuffle,
          .keep_last = options_.keep_last,
          .seed = options_.seed};
}

Metrics Trainer::train_steps(const std::vector<EpochPlan>& plans,
                             const std::vector<std::unique_ptr<Prefetcher>>& inputs,
                             std::int64_t begin, std::int64_t end, Sums& sums) {
  const auto all = replicator_.call([&](ReplicaContext& context) {
    using Span = collectives::Timeline::Span;
    auto& seat = seats_->of(context);
    auto& module = seat.model->module();
    module.train();
    const auto& plan = plans.at(static_cast<std::size_t>(context.local_id()));
    auto& batches = *inputs.at(static_cast<std::size_t>(context.local_id()));
    const bool skips = options_.optimizer.skip_not_finite > 0;
    if (skips)
      seat.keep_buffers();
    double loss_sum = 0;
    const auto skipped_before = seat.optimizer->skipped();
    for (std::int64_t step = begin; step < end; ++step) {
      const Span whole(context.timeline(), "step");
      Span input(context.timeline(), "input");
      const auto batch = batches.next();
      input.end();
      seat.optimizer->zero_grad();
      Span forward(context.timeline(), "forward");
      const auto loss = seat.model->loss(batch) * plan.weight(step);
      forward.end();
      {
        const Span backward(context.timeline(), "backward");
        loss.backward();
      }
      const auto skipped = seat.optimizer->skipped();
      const bool updated = seat.optimizer->step();
      if (seat.optimizer->skipped() > skipped) {
        seat.take_buffers_back();
        continue;
      }
      if (skips && updated)
        seat.keep_buffers();
      loss_sum += loss.item<double>();
    }
    const auto left_out = static_cast<double>(seat.optimizer->skipped() - skipped_before);
    return TensorMap{{"loss", at::full({}, loss_sum, at::kDouble)},
                     {"skipped", at::full({}, left_out, at::kDouble)}};
  });
  const auto mean = replicator_.reduce(all);
  const auto skipped = mean.at("skipped").item<double>();
  sums.loss += mean.at("loss").item<double>();
  sums.steps += static_cast<double>(end - begin) - skipped;
  sums.skipped += skipped;
  steps_ += end - begin;
  Metrics metrics = {{"loss", sums.loss / sums.steps}};
  if (options_.optimizer.skip_not_finite > 0)
    metrics["skipped"] = sums.skipped;
  return metrics;
}

bool Trainer::agreed(bool wanted) {
  const auto all = replicator_.call([&](ReplicaContext&) {
    return TensorMap{{"wanted", at::full({}, wanted ? 1 : 0, at::kLong)}};
  });
  return replicator_.reduce(all, ReduceOp::first).at("wanted").item<std::int64_t>() == 1;
}

std::vector<TrainerReport> Trainer::fit(const Dataset& training, std::int64_t epochs,
                                        const Dataset* validation,
                                        const std::vector<Callback*>& callbacks) {
  std::vector<EpochPlan> plans(static_cast<std::size_t>(replicator_.size()));
  replicator_.call([&](ReplicaContext& context) {
    plans[static_cast<std::size_t>(context.local_id())] = plan_of(context, training.size());
    return TensorMap{};
  });
  plans[0].check();
  const auto steps = plans[0].steps_per_epoch();
  const auto period = options_.report_period > 0 ? options_.report_period : steps;
  std::vector<std::unique_ptr<Prefetcher>> inputs;
  for (const auto& plan : plans)
    inputs.push_back(
        read_ahead(borrow(training), plan, epochs_ * steps, epochs * steps, options_.prefetch));
  std::vector<TrainerReport> reports;
  bool go_on = true;
  while (go_on && epochs_ < epochs) {
    for (auto* callback : callbacks)
      callback->before_epoch(*this, epochs_);
    Sums sums;
    TrainerReport report{.epoch = epochs_, .metrics = {}};
    for (std::int64_t begin = 0; begin < steps && go_on; begin += period) {
      report.metrics = train_steps(plans, inputs, begin, std::min(begin + period, steps), sums);
      report.steps = steps_;
      bool wanted = true;
      if (options_.report_period > 0)
        for (auto* callback : callbacks)
          wanted = callback->after_steps(*this, report) && wanted;
      go_on = options_.report_period == 0 || callbacks.empty() || agreed(wanted);
    }
    if (validation)
      for (const auto& [name, value] : evaluate(*validation))
        report.metrics["validation_" + name] = value;
    ++epochs_;
    reports.push_back(report);
    bool wanted = go_on;
    for (auto* callback : callbacks)
      wanted = callback->after_epoch(*this, report) && wanted;
    go_on = callbacks.empty() || agreed(wanted);
  }
  return reports;
}

Metrics Trainer::evaluate(const Dataset& dataset) {
  const auto rows = dataset.size();
  const auto all = replicator_.call([&](ReplicaContext& context) {
    const at::NoGradGuard guard;
    auto& seat = seats_->of(context);
    auto& module = seat.model->module();
    module.eval();
    const bool together = context.has_collectives();
    const int replicas = together ? context.num_replicas_in_sync() : 1;
    const int rank = context.rank_in_sync_group();
    const bool measures = together ? context.sync_group() == 0 : context.replica_id() == 0;
    const auto most = std::max<std::int64_t>(1, options_.global_batch / replicas);
    TensorMap sums;
    if (measures)
      sums = sum_over_rows(
          dataset, rank, replicas, most,
          [&](const TensorMap& batch) { return seat.model->measure(batch); }, options_.prefetch);
    module.train();
    return sums;
  });
  PerReplica measured; // the first sync group's
  for (const auto& one : all)
    if (!one.empty())
      measured.push_back(one);
  Metrics means;
  for (const auto& [name, sum] :
       replicator_.reduce(measured.size() == all.size() ? all : measured, ReduceOp::sum))
    means[name] = sum.item<double>() / static_cast<double>(rows);
  return means;
}

void Trainer::save(const std::filesystem::path& path) {
  const auto states = replicator_.call(
      [&](ReplicaContext& context) { return seats_->of(context).optimizer->state(); });
  if (!replicator_.is_chief())
    return;
  TensorMap tensors;
  for (const auto& [name, tensor] : module_state((*seats_)[0].model->module()))
    tensors[kModule + name] = tensor;
  for (const auto& [name, tensor] : states[0])
    tensors[kOptimizer + name] = tensor;
  write_safetensors(path, tensors,
                    {{"epochs", std::to_string(epochs_)}, {"steps", std::to_string(steps_)}});
}

void Trainer::load(const std::filesystem::path& path) {
  const auto file = read_safetensors(path);
  const auto epochs = counter(file.metadata, "epochs", path),
             steps = counter(file.metadata, "steps", path);
  const auto module = below(file.tensors, kModule), optimizer = below(file.tensors, kOptimizer);
  replicator_.call([&](ReplicaContext& context) {
    auto& seat = seats_->of(context);
    load_state(seat.model->module(), module, path);
    seat.optimizer->load(optimizer);
    return TensorMap{};
  });
  epochs_ = epochs;
  steps_ = steps;
}

} // namespace troupe::learner
