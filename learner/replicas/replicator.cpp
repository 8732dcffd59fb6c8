#include "learner/replicas/replicator.hpp"

#include <stdexcept>

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

namespace troupe::learner {
namespace {

TensorMap detached(TensorMap values) {
  for (auto& [name, tensor] : values)
    tensor = tensor.detach();
  return values;
}

/// Converts [replica] -> {name: tensor} to {name: tensors in replica order}. Throws if the names
/// differ.
std::map<std::string, std::vector<at::Tensor>> by_name(const PerReplica& values) {
  std::map<std::string, std::vector<at::Tensor>> result;
  for (const auto& one : values)
    for (const auto& [name, tensor] : one)
      result[name].push_back(tensor.detach());
  for (const auto& [name, tensors] : result)
    if (tensors.size() != values.size())
      throw std::invalid_argument(
          "replicator: \"" + name + "\" came from " + std::to_string(tensors.size()) + " of "
          + std::to_string(values.size()) + " replicas; return the same names on all");
  return result;
}

} // namespace

Replicator::Replicator(std::unique_ptr<Strategy> strategy, const ReplicatorOptions& options)
    : threads_(std::move(strategy),
               {.seed = options.seed, .threads = options.threads, .timeline = options.timeline}),
      choices_(static_cast<std::size_t>(threads_.size()),
               ThreadChoice(options.threads, options.fixed_threads)) {}

Replicator::~Replicator() = default;

int Replicator::num_replicas() const {
  return threads_.strategy().num_replicas();
}

bool Replicator::is_chief() const {
  return threads_.strategy().worker() == 0;
}

PerReplica Replicator::call(const Body& body) {
  PerReplica results(static_cast<std::size_t>(size()));
  threads_.call([&](ReplicaContext& context) {
    results[static_cast<std::size_t>(context.local_id())] = detached(body(context));
  });
  return results;
}

std::unique_ptr<DistributedInput> Replicator::input(InputFn input_fn,
                                                    const DistributedInputOptions& options) {
  if (!input_fn)
    throw std::invalid_argument("replicator: there is no input_fn");
  return std::make_unique<DistributedInput>(
      [input_fn = std::move(input_fn)](const InputContext& context, const ReplicaContext&) {
        return input_fn(context);
      },
      threads_.strategy(), options);
}

std::optional<PerReplica> Replicator::step(DistributedInput& input, const StepFn& step_fn) {
  std::vector<char> stepped(static_cast<std::size_t>(size()));
  auto results = call([&](ReplicaContext& context) {
    const auto batch = input.next(context);
    if (batch.empty())
      return TensorMap{};
    const collectives::Timeline::Span span(context.timeline(), "step");
    const auto id = static_cast<std::size_t>(context.local_id());
    stepped[id] = 1;
    TensorMap result;
    choices_[id].run([&] { result = step_fn(context, batch); });
    return result;
  });
  for (const auto one : stepped)
    if (one)
      return results;
  return std::nullopt;
}

bool Replicator::all_in_sync() {
  const int program = num_replicas();
  bool all = false;
  threads_.call([&](ReplicaContext& context) {
    if (context.local_id() == 0)
      all = context.has_collectives() && context.num_replicas_in_sync() == program;
  });
  return all;
}

TensorMap Replicator::reduce(const PerReplica& values, ReduceOp op) {
  TensorMap result;
  if (!all_in_sync()) {
    for (const auto& [name, tensors] : by_name(values))
      result[name] = reduced_rows(at::stack(tensors), op);
    return result;
  }
  const auto all = call([&](ReplicaContext& context) {
    TensorMap mine;
    const auto reduced =
        context.all_reduce(Nest(values.at(static_cast<std::size_t>(context.local_id()))), op);
    for (const auto& [name, value] : reduced.map())
      mine[name] = value.tensor();
    return mine;
  });
  return all[0];
}

TensorMap Replicator::gather(const PerReplica& values) {
  const auto rows = [](const at::Tensor& tensor) {
    return tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor;
  };
  TensorMap result;
  if (!all_in_sync()) {
    for (auto& [name, tensors] : by_name(values)) {
      std::vector<at::Tensor> parts;
      for (const auto& tensor : tensors)
        parts.push_back(rows(tensor));
      result[name] = at::cat(parts);
    }
    return result;
  }
  const auto all = call([&](ReplicaContext& context) {
    TensorMap mine;
    for (const auto& [name, tensor] : values.at(static_cast<std::size_t>(context.local_id())))
      mine[name] = context.all_gather_rows(rows(tensor.detach()));
    return mine;
  });
  return all[0];
}

void Replicator::write_timeline(const std::filesystem::path& path) {
  const auto timelines = threads_.timelines();
  if (timelines.empty())
    throw std::invalid_argument(
        "replicator: no timeline was kept; set ReplicatorOptions::timeline to its length in spans");
  if (!all_in_sync()) {
    collectives::write_timeline(timelines, nullptr, path);
    return;
  }
  threads_.call([&](ReplicaContext& context) {
    collectives::write_timeline({context.timeline()}, context.communicator(), path,
                                context.device());
  });
}

ReplicaProgram::ReplicaProgram(Replicator& replicator, ReplicaFactory factory,
                               const DistributedInputOptions& input)
    : replicator_(replicator),
      replicas_(replicator.build<Replica>([&](ReplicaContext& context) {
        std::shared_ptr<Replica> replica = factory();
        if (!replica)
          throw std::invalid_argument("replicator: the factory made no replica");
        replica->build(context);
        return replica;
      })),
      input_(
          [this, own = input.pipelines == Pipelines::per_replica](const InputContext& context,
                                                                  const ReplicaContext& replica) {
            return (own ? replicas_.of(replica) : replicas_[0]).input_fn(context);
          },
          replicator.threads_.strategy(), input) {}

ReplicaReport ReplicaProgram::run_steps(ReplicaContext& context, std::int64_t steps) {
  auto& replica = replicas_.of(context);
  auto& choice = replicator_.choices_[static_cast<std::size_t>(context.local_id())];
  ReplicaReport report;
  Metrics sums;
  for (std::int64_t i = 0; i < steps && !replicator_.threads_.ending(); ++i) {
    const auto batch = input_.next(context);
    if (batch.empty())
      break;
    const collectives::Timeline::Span span(context.timeline(), "step");
    Metrics metrics;
    choice.run([&] { metrics = replica.step_fn(context, batch); });
    ++report.steps;
    for (const auto& [name, value] : metrics)
      sums[name] += value;
    report.last = std::move(metrics);
  }
  for (const auto& [name, sum] : sums)
    report.mean[name] = sum / static_cast<double>(report.steps);
  return report;
}

std::vector<ReplicaReport> ReplicaProgram::run(std::int64_t steps) {
  std::vector<ReplicaReport> reports(static_cast<std::size_t>(replicator_.size()));
  replicator_.threads_.call([&](ReplicaContext& context) {
    reports[static_cast<std::size_t>(context.local_id())] = run_steps(context, steps);
  });
  return reports;
}

} // namespace troupe::learner
