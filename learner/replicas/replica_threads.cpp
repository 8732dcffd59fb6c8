#include "learner/replicas/replica_threads.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "env/split_mix.hpp"
#include "learner/device/cpu_tensor_cache.hpp"
#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {

std::uint64_t replica_seed(std::uint64_t run_seed, int replica_id) {
  return env::mix_bits(run_seed
                       + (static_cast<std::uint64_t>(replica_id) + 1) * env::kSplitMixStep);
}

void prepare_compute_thread(int threads, Products products) {
  if (threads < 1)
    throw std::invalid_argument("threads " + std::to_string(threads) + " must be at least 1");
#ifndef __SANITIZE_ADDRESS__ // ASan checks only memory from malloc
  keep_tensor_memory();
#endif
  at::set_num_threads(threads);
  at::globalContext().setFlushDenormal(true);
  use_products(products == Products::fastest ? &measured_products() : nullptr);
}

struct ReplicaThreads::State {
  State(std::unique_ptr<Strategy> given, const Options& wanted)
      : strategy(std::move(given)),
        options(wanted),
        timelines(static_cast<std::size_t>(strategy->num_local_replicas())) {}

  void work(const std::stop_token& stop, int id);
  void sit_down(int id, std::unique_ptr<ReplicaContext>& context);
  void fail(int replica_id, std::exception_ptr cause);
  void order(std::function<void(ReplicaContext&)> wanted);

  std::unique_ptr<Strategy> strategy;
  const Options options;
  std::vector<std::unique_ptr<collectives::Timeline>> timelines; // [local id]
  std::mutex mutex;
  std::condition_variable_any changed;
  std::uint64_t orders = 0;                  // issued so far; the first one sets up the thread
  std::function<void(ReplicaContext&)> body; // of the latest order
  std::size_t busy = 0;                      // threads that have not completed it
  std::exception_ptr error;                  // the first error, with its replica's id
  std::atomic<bool> ending{false};           // set together with `error`
  std::vector<std::jthread> threads;         // last, so they end before the members that they use
};

void ReplicaThreads::State::fail(int replica_id, std::exception_ptr cause) {
  std::string message = "an unknown exception";
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& error_) {
    message = error_.what();
  } catch (...) { // not derived from std::exception, so it has no message
  }
  const std::lock_guard lock(mutex);
  if (error)
    return;
  ending = true;
  const auto text = "replica " + std::to_string(replica_id) + " of "
                    + std::to_string(strategy->num_replicas()) + ": " + message;
  try {
    try {
      std::rethrow_exception(cause);
    } catch (...) {
      std::throw_with_nested(ReplicaError(replica_id, text));
    }
  } catch (...) {
    error = std::current_exception();
  }
  strategy->abort(message);
}

void ReplicaThreads::State::sit_down(int id, std::unique_ptr<ReplicaContext>& context) {
  prepare_compute_thread(options.threads);
  auto assignment = strategy->assignment(id);
  if (options.timeline > 0) {
    auto& timeline = timelines[static_cast<std::size_t>(id)];
    timeline = std::make_unique<collectives::Timeline>(assignment.replica_id, options.timeline);
    assignment.timeline = timeline.get();
  }
  const auto seed = replica_seed(options.seed, assignment.replica_id);
  context = std::make_unique<ReplicaContext>(std::move(assignment), seed);
}

void ReplicaThreads::State::work(const std::stop_token& stop, int id) {
  std::unique_ptr<ReplicaContext> context;
  std::uint64_t done = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex);
      if (!changed.wait(lock, stop, [&] { return orders > done; }))
        break;
    }
    try {
      if (done == 0)
        sit_down(id, context);
      else {
        body(*context);
        context->suspend_participation();
      }
    } catch (...) {
      fail(context ? context->replica_id() : id, std::current_exception());
    }
    ++done;
    const std::lock_guard lock(mutex);
    if (--busy == 0)
      changed.notify_all();
  }
}

void ReplicaThreads::State::order(std::function<void(ReplicaContext&)> wanted) {
  std::unique_lock lock(mutex);
  if (error)
    std::rethrow_exception(error);
  body = std::move(wanted);
  busy = threads.size();
  ++orders;
  changed.notify_all();
  // This wait needs no deadline: collectives and inputs have deadlines, and the threads are joined.
  changed.wait(lock, [&] { return busy == 0; });
  body = nullptr;
  if (error)
    std::rethrow_exception(error);
}

ReplicaThreads::ReplicaThreads(std::unique_ptr<Strategy> strategy, const Options& options) {
  if (!strategy)
    throw std::invalid_argument("ReplicaThreads: there is no strategy");
  state_ = std::make_unique<State>(std::move(strategy), options);
  for (int id = 0; id < state_->strategy->num_local_replicas(); ++id)
    state_->threads.emplace_back(
        [state = state_.get(), id](const std::stop_token& stop) { state->work(stop, id); });
  state_->order({});
}

ReplicaThreads::~ReplicaThreads() = default;

int ReplicaThreads::size() const {
  return static_cast<int>(state_->threads.size());
}

Strategy& ReplicaThreads::strategy() const {
  return *state_->strategy;
}

void ReplicaThreads::call(const std::function<void(ReplicaContext&)>& body) {
  state_->order(body);
}

bool ReplicaThreads::ending() const {
  return state_->ending;
}

std::vector<const collectives::Timeline*> ReplicaThreads::timelines() const {
  std::vector<const collectives::Timeline*> result;
  for (const auto& timeline : state_->timelines)
    if (timeline)
      result.push_back(timeline.get());
  return result;
}

} // namespace troupe::learner
