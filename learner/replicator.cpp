#include "learner/replicator.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>

#include "env/split_mix.hpp"

namespace troupe::learner {

std::uint64_t replica_seed(std::uint64_t run_seed, int replica_id) {
  return env::mix_bits(run_seed
                       + (static_cast<std::uint64_t>(replica_id) + 1) * env::kSplitMixStep);
}

void prepare_compute_thread(int threads) {
  if (threads < 1)
    throw std::invalid_argument("threads " + std::to_string(threads) + " must be at least 1");
  at::set_num_threads(threads);
  at::globalContext().setFlushDenormal(true);
}

ReplicaRunner::ReplicaRunner(std::unique_ptr<Replica> replica,
                             collectives::Communicator* communicator,
                             const ReplicaRunnerOptions& options)
    : context_(communicator, replica_seed(options.seed, communicator ? communicator->rank() : 0),
               options.device),
      finite_input_(options.finite_input),
      replica_(std::move(replica)) {
  if (!replica_)
    throw std::invalid_argument("ReplicaRunner: the factory made no replica");
  prepare_compute_thread(options.threads);
  replica_->build(context_);
}

std::optional<Metrics> ReplicaRunner::step() {
  if (!input_)
    input_ = replica_->input_fn({.num_replicas_in_sync = context_.num_replicas_in_sync(),
                                 .input_pipeline_id = context_.replica_id(),
                                 .num_input_pipelines = context_.num_replicas_in_sync()});
  const auto batch = input_();
  if (finite_input_ && !all_have(!batch.empty()))
    return std::nullopt;
  if (batch.empty())
    throw std::runtime_error("the input of replica " + std::to_string(context_.replica_id())
                             + " ended after " + std::to_string(steps_)
                             + " steps; set finite_input where inputs end");
  return step(batch);
}

Metrics ReplicaRunner::step(const TensorMap& batch) {
  auto metrics = replica_->step_fn(context_, batch);
  ++steps_;
  return metrics;
}

bool ReplicaRunner::all_have(bool mine) {
  auto flag = at::full({1}, mine ? 1 : 0, at::TensorOptions(at::kLong).device(context_.device()));
  context_.all_reduce_(flag, collectives::ReduceOp::min);
  return flag.item<std::int64_t>() == 1;
}

struct Replicator::State {
  struct Worker {
    std::unique_ptr<ReplicaRunner> runner; // made and destroyed by its thread
    ReplicaReport report;
    std::jthread thread;
  };

  explicit State(int size) : workers(static_cast<std::size_t>(size)) {}

  void work(const std::stop_token& stop, int id, const ReplicaFactory& factory,
            const ReplicaRunnerOptions& options);
  void run_steps(Worker& worker, std::int64_t steps);
  void fail(int id, std::exception_ptr error);
  void order(std::int64_t steps);
  void wait_idle();
  void rethrow() const;

  std::vector<std::unique_ptr<collectives::Communicator>> communicators;
  std::mutex mutex;
  std::condition_variable_any changed;
  std::uint64_t orders = 0;        // given so far; the build is the first
  std::int64_t steps = 0;          // of the last order
  std::size_t busy = 0;            // workers that have not carried it out
  std::exception_ptr error;        // the first, with its replica's id
  std::atomic<bool> ending{false}; // set with it: replicas without collectives stop as well
  std::vector<Worker> workers;     // last: their threads end before what they use
};

void Replicator::State::fail(int id, std::exception_ptr cause) {
  std::string message = "an unknown exception";
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& error_) {
    message = error_.what();
  } catch (...) { // not derived from std::exception: there is no text to keep
  }
  const std::lock_guard lock(mutex);
  if (error)
    return;
  ending = true;
  const auto text =
      "replica " + std::to_string(id) + " of " + std::to_string(workers.size()) + ": " + message;
  try {
    try {
      std::rethrow_exception(cause);
    } catch (...) {
      std::throw_with_nested(ReplicaError(id, text));
    }
  } catch (...) {
    error = std::current_exception();
  }
  communicators[static_cast<std::size_t>(id)]->abort(message);
}

void Replicator::State::run_steps(Worker& worker, std::int64_t wanted) {
  worker.report = {};
  Metrics sums;
  for (std::int64_t i = 0; i < wanted && !ending; ++i) {
    auto metrics = worker.runner->step();
    if (!metrics)
      break;
    ++worker.report.steps;
    for (const auto& [name, value] : *metrics)
      sums[name] += value;
    worker.report.last = std::move(*metrics);
  }
  for (const auto& [name, sum] : sums)
    worker.report.mean[name] = sum / static_cast<double>(worker.report.steps);
}

void Replicator::State::work(const std::stop_token& stop, int id, const ReplicaFactory& factory,
                             const ReplicaRunnerOptions& options) {
  auto& worker = workers[static_cast<std::size_t>(id)];
  std::uint64_t done = 0;
  for (;;) {
    std::int64_t wanted = 0;
    {
      std::unique_lock lock(mutex);
      if (!changed.wait(lock, stop, [&] { return orders > done; }))
        break;
      wanted = steps;
    }
    try {
      if (done == 0)
        worker.runner = std::make_unique<ReplicaRunner>(
            factory(), communicators[static_cast<std::size_t>(id)].get(), options);
      else
        run_steps(worker, wanted);
    } catch (...) {
      fail(id, std::current_exception());
    }
    ++done;
    const std::lock_guard lock(mutex);
    if (--busy == 0)
      changed.notify_all();
  }
  worker.runner.reset();
}

void Replicator::State::order(std::int64_t wanted) {
  const std::lock_guard lock(mutex);
  steps = wanted;
  busy = workers.size();
  ++orders;
  changed.notify_all();
}

void Replicator::State::wait_idle() {
  // Without a deadline of its own: collectives and inputs have theirs, and the threads are joined.
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return busy == 0; });
}

void Replicator::State::rethrow() const {
  if (error)
    std::rethrow_exception(error);
}

Replicator::Replicator(ReplicaFactory factory, const ReplicatorOptions& options) {
  if (options.replicas < 1)
    throw std::invalid_argument("replicas " + std::to_string(options.replicas)
                                + " must be at least 1");
  state_ = std::make_unique<State>(options.replicas);
  state_->communicators =
      collectives::make_thread_communicators(options.replicas, options.communicator);
  for (int id = 0; id < options.replicas; ++id)
    state_->workers[static_cast<std::size_t>(id)].thread =
        std::jthread([state = state_.get(), id, factory, runner = options.runner](
                         const std::stop_token& stop) { state->work(stop, id, factory, runner); });
  state_->order(0);
  state_->wait_idle();
  state_->rethrow();
}

Replicator::~Replicator() = default;

std::vector<ReplicaReport> Replicator::run(std::int64_t steps) {
  state_->rethrow();
  state_->order(steps);
  state_->wait_idle();
  state_->rethrow();
  std::vector<ReplicaReport> reports;
  for (auto& worker : state_->workers)
    reports.push_back(worker.report);
  return reports;
}

int Replicator::size() const {
  return static_cast<int>(state_->workers.size());
}

Replica& Replicator::replica(int replica_id) {
  return state_->workers.at(static_cast<std::size_t>(replica_id)).runner->replica();
}

} // namespace troupe::learner
