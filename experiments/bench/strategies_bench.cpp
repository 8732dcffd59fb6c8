// Strategies of learner/. Two questions:
// 1. What does a slow replica cost? 5 replicas run as threads. A step is a wait of 20 ms on a timer
//    (so that it needs no core) and an exchange of 200,000 float32 parameters; one replica may wait
//    5 times as long. Step time: the median time between two versions that replica 0 receives.
// 2. What does staleness cost? Without threads, in a scripted order: a regression (a network of 20
//    inputs and 32 tanh units learns a fixed network of 8 units by SGD on batches of 16 with
//    noise), evaluated after a fixed number of updates. Its error is the mean squared error on 2048
//    other samples, over 3 seeds; an error that is not finite or above 10 counts as 10.
//    "staleness": every gradient is computed on the parameters of that many updates ago. "groups":
//    8 replicas with random step times (log-normal, mean about 1, one step in 20 five times as
//    long) in 1, 2, 4 or 8 sync groups, in virtual time.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <queue>
#include <random>
#include <thread>

#include <ATen/Parallel.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include "experiments/bench/bench.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/parameter_server/parameter_server_client.hpp"
#include "learner/parameter_server/parameter_server_host.hpp"
#include "learner/parameter_server/parameter_server_rule.hpp"
#include "learner/replicas/replica_context.hpp"

namespace troupe::experiments {
namespace {

using namespace learner;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// --- a slow replica ---

constexpr int kReplicas = 5;
constexpr Seconds kCompute{0.020};
constexpr int kGroupSteps = 40;

/// Waits for exactly this time without occupying a core.
void compute(Seconds time) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, Clock::now() + std::chrono::duration_cast<Clock::duration>(time),
                   [] { return false; });
}

/// The median duration in seconds of replica 0's steps; replica 4 is `slower` times as slow.
double step_time(const std::function<UpdateRuleFactory(int replica)>& rules, double slower) {
  std::vector<double> times;
  std::atomic<bool> over = false;
  std::vector<std::jthread> threads;
  for (int id = 0; id < kReplicas; ++id)
    threads.emplace_back([&, id] {
      at::set_num_threads(1);
      auto parameter = torch::zeros({200'000});
      ReplicaContext context(
          ReplicaAssignment{.replica_id = id, .num_replicas = kReplicas, .update_rule = rules(id)});
      const auto optimizer = context.wrap_optimizer(std::make_unique<torch::optim::SGD>(
          std::vector<at::Tensor>{parameter}, torch::optim::SGDOptions(0.1)));
      auto last = Clock::now();
      for (int step = 0; id == 0 ? step < kGroupSteps : !over; ++step) {
        compute(kCompute * (id == kReplicas - 1 ? slower : 1));
        parameter.mutable_grad() = torch::ones({200'000});
        optimizer->step();
        const auto now = Clock::now();
        if (id == 0 && step >= 5)
          times.push_back(Seconds(now - last).count());
        last = now;
      }
      over = true;
    });
  threads.clear();
  return median_of(times);
}

double step_time(const std::string& way, const ParameterServerOptions& server, double slower) {
  if (way == "threads") {
    LocalParameterServer local(server);
    return step_time([&](int id) { return local_parameter_server_rules(local, id); }, slower);
  }
  env::wire::Context context;
  ParameterServerHost host(context, {.server = server});
  return step_time(
      [&](int id) {
        return remote_parameter_server_rules(context,
                                             {.endpoints = {host.endpoint()}, .worker = id});
      },
      slower);
}

void bench_slow_replica(const BenchOptions& options, const Report& report) {
  ParameterServerOptions asynchronous{.workers = kReplicas};
  const std::pair<const char*, ParameterServerOptions> strategies[] = {
      {"all of 5", central_storage(kReplicas)},
      {"4 of 5 (1 backup)", with_backup_workers(kReplicas, 1)},
      {"asynchronous", asynchronous}};
  for (const char* way : {"threads", "ZeroMQ"})
    for (const auto& [name, server] : strategies) {
      std::vector<double> even;
      std::vector<double> slowed;
      for (int i = 0; i < options.repetitions; ++i) { // interleaved
        even.push_back(step_time(way, server, 1) * 1e3);
        slowed.push_back(step_time(way, server, 5) * 1e3);
      }
      for (const auto& [slower, values] : {std::pair{"1", even}, std::pair{"5", slowed}})
        report_values(report, "strategies", "step time", "ms", values,
                      {{"strategy", name}, {"through", way}, {"one_replica_slower", slower}});
    }
}

// --- staleness ---

constexpr int kInputs = 20;
constexpr int kUnits = 32;
constexpr std::int64_t kGroupElements = kInputs * kUnits + kUnits + kUnits;
constexpr int kUpdates = 1500;
constexpr double kRate = 0.15;
constexpr double kWorst = 10;
constexpr int kSeeds = 3;

class Regression {
public:
  explicit Regression(std::uint64_t seed)
      : generator_(at::make_generator<at::CPUGeneratorImpl>(seed)),
        inner_(torch::randn({kInputs, 8}, generator_) / 3),
        outer_(torch::randn({8, 1}, generator_)),
        test_(torch::randn({2048, kInputs}, generator_)),
        begin_(torch::randn({kGroupElements}, generator_) * 0.15) {}

  const at::Tensor& begin() const { return begin_; }
  /// The gradient on another random batch.
  at::Tensor gradient(const at::Tensor& parameters) {
    const auto x = torch::randn({16, kInputs}, generator_);
    const auto y = truth(x) + 0.1 * torch::randn({16, 1}, generator_);
    auto leaf = parameters.clone().requires_grad_();
    loss(leaf, x, y).backward();
    return leaf.grad().nan_to_num(0, 0, 0).clamp(-1e3, 1e3); // a server accepts finite gradients
                                                             // only
  }
  double error(const at::Tensor& parameters) const {
    const double value = loss(parameters, test_, truth(test_)).item<double>();
    return std::isfinite(value) ? std::min(value, kWorst) : kWorst;
  }

private:
  at::Tensor truth(const at::Tensor& x) const { return x.matmul(inner_).tanh().matmul(outer_); }
  static at::Tensor loss(const at::Tensor& flat, const at::Tensor& x, const at::Tensor& y) {
    const auto weight = flat.narrow(0, 0, kInputs * kUnits).view({kInputs, kUnits});
    const auto bias = flat.narrow(0, kInputs * kUnits, kUnits);
    const auto out = flat.narrow(0, kInputs * kUnits + kUnits, kUnits).view({kUnits, 1});
    return ((x.matmul(weight) + bias).tanh().matmul(out) - y).pow(2).mean();
  }

  at::Generator generator_;
  at::Tensor inner_;
  at::Tensor outer_;
  at::Tensor test_;
  at::Tensor begin_;
};

std::unique_ptr<ParameterServer> server_of(const ParameterServerOptions& options,
                                           const Regression& problem) {
  auto server = std::make_unique<ParameterServer>(options, Clock::time_point{});
  const torch::optim::SGD sgd({torch::zeros({1})}, torch::optim::SGDOptions(kRate));
  server->begin({.recipe = describe(sgd), .segments = {{.count = kGroupElements}}},
                problem.begin());
  for (int i = 0; i < options.workers; ++i)
    server->join(i, static_cast<std::uint64_t>(i) + 1, Clock::time_point{});
  return server;
}

Push push_of(int worker, std::int64_t step, std::int64_t version, const at::Tensor& gradient) {
  return {.worker = worker,
          .session = static_cast<std::uint64_t>(worker) + 1,
          .step = step,
          .version = version,
          .gradient = gradient,
          .present = {true}};
}

double error_with_staleness(std::int64_t staleness, StalenessRate rate, std::uint64_t seed) {
  Regression problem(seed);
  const auto server = server_of({.staleness_rate = rate}, problem);
  std::deque<at::Tensor> past{problem.begin()};
  for (std::int64_t update = 0; update < kUpdates; ++update) {
    // The first gradients have the greatest possible age.
    const std::int64_t version = std::max<std::int64_t>(0, update - staleness);
    server->push(push_of(0, update + 1, version, problem.gradient(past.front())), {});
    past.push_back(server->parameters().clone());
    if (std::ssize(past) > staleness + 1)
      past.pop_front();
  }
  return problem.error(server->parameters());
}

void bench_staleness(const Report& report) {
  const std::pair<const char*, StalenessRate> rates[] = {
      {"constant", StalenessRate::constant},
      {"lr / staleness", StalenessRate::inverse},
      {"lr / (1 + staleness)", StalenessRate::inverse_plus_one}};
  for (const auto& [name, rate] : rates)
    for (const int staleness : {0, 1, 2, 4, 8, 16, 32, 64}) {
      std::vector<double> errors;
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed)
        errors.push_back(error_with_staleness(staleness, rate, seed));
      report_values(report, "strategies", "error after 1500 updates", "mean squared", errors,
                    {{"staleness", std::to_string(staleness)}, {"learning_rate", name}});
    }
}

struct GroupsResult {
  double error = 0;
  double staleness = 0; // mean
  double time = 0;      // virtual time, in mean steps of a replica
};

GroupsResult run_groups(int groups, std::uint64_t seed) {
  constexpr int kAll = 8;
  Regression problem(seed);
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> ordinary(0, 0.2);
  const auto server = server_of({.workers = groups}, problem);
  struct PushGroup {
    double ready = 0;
    int number = 0;
    bool operator<(const PushGroup& other) const { return ready > other.ready; }
  };
  std::priority_queue<PushGroup> queue;
  std::vector<at::Tensor> has(static_cast<std::size_t>(groups), problem.begin());
  std::vector<std::int64_t> version(has.size());
  std::vector<std::int64_t> steps(has.size());
  const auto start = [&](int group, double now) {
    double longest = 0; // the group waits for its slowest replica
    for (int i = 0; i < kAll / groups; ++i)
      longest = std::max(longest, ordinary(random) * (random() % 20 == 0 ? 5 : 1));
    queue.push({now + longest, group});
  };
  for (int group = 0; group < groups; ++group)
    start(group, 0);
  GroupsResult result;
  while (server->version() < kUpdates) {
    const PushGroup group = queue.top();
    queue.pop();
    const auto at = static_cast<std::size_t>(group.number);
    auto gradient = problem.gradient(has[at]);
    for (int i = 1; i < kAll / groups; ++i)
      gradient.add_(problem.gradient(has[at]));
    gradient.div_(kAll / groups);
    server->push(push_of(group.number, ++steps[at], version[at], gradient), {});
    has[at] = server->parameters().clone();
    version[at] = server->version();
    result.time = group.ready;
    start(group.number, group.ready);
  }
  result.error = problem.error(server->parameters());
  result.staleness = static_cast<double>(server->counters().staleness_sum) / kUpdates;
  return result;
}

void bench_groups(const Report& report) {
  for (const int groups : {1, 2, 4, 8}) {
    std::vector<double> errors;
    std::vector<double> staleness;
    std::vector<double> times;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const GroupsResult result = run_groups(groups, seed);
      errors.push_back(result.error);
      staleness.push_back(result.staleness);
      times.push_back(result.time);
    }
    const FigureConfig config{{"replicas", "8"}, {"sync_groups", std::to_string(groups)}};
    report_values(report, "strategies", "error after 1500 updates", "mean squared", errors, config);
    report_values(report, "strategies", "mean staleness", "versions", staleness, config);
    report_values(report, "strategies", "virtual time of 1500 updates", "mean steps", times,
                  config);
  }
}

} // namespace

void bench_strategies(const BenchOptions& options, const Report& report) {
  at::set_num_threads(1);
  bench_slow_replica(options, report);
  bench_staleness(report);
  bench_groups(report);
}

} // namespace troupe::experiments
