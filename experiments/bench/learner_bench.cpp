// Updates per second of D4PG, DrQ-v2, MR.Q, TD3 and SAC on prepared batches: preparation, losses
// and their gradients, optimizers, target networks; without replay or environment. Also the latency
// of the acting policy. If there is a GPU, also updates on it, from pinned memory.
#include <algorithm>
#include <ctime>
#include <stdexcept>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/types.h>

#include "collectives/communicator.hpp"
#include "experiments/bench/bench.hpp"
#include "learner/agents/d4pg/d4pg.hpp"
#include "learner/agents/drqv2/drqv2.hpp"
#include "learner/agents/learners/saved_replica.hpp"
#include "learner/agents/mrq/mrq.hpp"
#include "learner/agents/sac/sac.hpp"
#include "learner/agents/td3/td3.hpp"
#include "learner/replicas/replica_threads.hpp"
#include "learner/replicas/thread_choice.hpp"
#include "learner/tensor_type.hpp"

namespace troupe::experiments {
namespace {

using learner::D4pgConfig;
using learner::TensorMap;
using replay::TransitionSpec;

struct Problem {
  std::string name;
  D4pgConfig config;
  TransitionSpec spec;
  std::int64_t batch = 256;
  learner::AgentPtr other = nullptr; // instead of D4PG
  std::string agent = "D4PG";
};

learner::AgentPtr agent_of(const Problem& problem) {
  return problem.other ? problem.other : learner::make_d4pg_agent(problem.config);
}

std::string metric(const Problem& problem) {
  return problem.agent + " updates";
}

TransitionSpec states(std::int64_t observation, int action) {
  return {.frame = {"state", env::ElementType::float32, {observation}}, .action_size = action};
}

std::vector<Problem> problems(const std::string& precision) {
  const auto in_precision = [&](auto config) {
    config.precision = precision.empty() ? config.precision : precision;
    return config;
  };
  Problem peer{"24 states, 6 actions, critic 400-300, policy 300-200", in_precision(D4pgConfig()),
               states(24, 6)};
  peer.config.critic_layers = {400, 300};
  peer.config.policy_layers = {300, 200};
  peer.config.target_update = 1;
  peer.config.target_period = 100;
  Problem cheetah{"17 states, 6 actions, critic and policy 256-256", in_precision(D4pgConfig()),
                  states(17, 6)};
  cheetah.config.critic_layers = cheetah.config.policy_layers = {256, 256};
  Problem deep{"17 states, 6 actions, critic and policy 256-256-256", in_precision(D4pgConfig()),
               states(17, 6)};
  Problem pixels{
      "64x64 grey pixels, stack 3, encoder stride4, 256-256", in_precision(D4pgConfig()), {}, 128};
  pixels.config.critic_layers = pixels.config.policy_layers = {256, 256};
  pixels.spec = {
      .frame = {"pixels", env::ElementType::uint8, {1, 64, 64}}, .stack = 3, .action_size = 1};
  Problem drq = pixels;
  drq.name = "84x84 colour pixels, stack 3, encoder drq, 1024-1024";
  drq.config.encoder = "drq";
  drq.config.critic_layers = drq.config.policy_layers = {1024, 1024};
  drq.spec.frame.shape = {3, 84, 84};
  drq.spec.action_size = 6;
  drq.batch = 64;
  Problem drqv2 = drq;
  drqv2.name = "84x84 colour pixels, stack 3, DrQ-v2 as in the paper";
  drqv2.batch = 256;
  drqv2.other = learner::make_drqv2_agent(in_precision(learner::Drqv2Config()));
  drqv2.agent = "DrQ-v2";
  Problem small = pixels;
  small.name = "64x64 grey pixels, stack 3, DrQ-v2 with encoder stride4, 256-256";
  small.other = learner::make_drqv2_agent(in_precision(learner::Drqv2Config{
      .policy_layers = {256, 256}, .critic_layers = {256, 256}, .encoder = "stride4"}));
  small.agent = "DrQ-v2";
  Problem mrq{"17 states, 6 actions, MR.Q of its own sizes", {}, states(17, 6)};
  mrq.other = learner::make_mrq_agent(in_precision(learner::MrqConfig()));
  mrq.agent = "MR.Q";
  mrq.spec = learner::stored_by(*mrq.other, mrq.spec);
  Problem narrow = mrq; // the sizes of Fujimoto et al.; our defaults are DR.Q's
  narrow.name = "24 states, 6 actions, MR.Q 512 wide";
  narrow.spec = states(24, 6);
  narrow.other = learner::make_mrq_agent(in_precision(
      learner::MrqConfig{.features = {.encoder_layers = {512, 512}, .pair_layers = {512, 512}}}));
  narrow.spec = learner::stored_by(*narrow.other, narrow.spec);
  Problem td3 = cheetah;
  td3.name = "17 states, 6 actions, TD3 256-256";
  td3.other = learner::make_td3_agent(
      in_precision(learner::Td3Config{.policy_layers = {256, 256}, .critic_layers = {256, 256}}));
  td3.agent = "TD3";
  Problem sac = cheetah;
  sac.name = "17 states, 6 actions, SAC 256-256";
  sac.other = learner::make_sac_agent(
      in_precision(learner::SacConfig{.policy_layers = {256, 256}, .critic_layers = {256, 256}}));
  sac.agent = "SAC";
  Problem small_td3 = td3; // RLtools' sizes for Pendulum-v1
  small_td3.name = "3 states, 1 action, TD3 64-64";
  small_td3.spec = states(3, 1);
  small_td3.batch = 100;
  small_td3.other = learner::make_td3_agent(
      in_precision(learner::Td3Config{.policy_layers = {64, 64}, .critic_layers = {64, 64}}));
  Problem small_sac = small_td3;
  small_sac.name = "3 states, 1 action, SAC 64-64";
  small_sac.other = learner::make_sac_agent(
      in_precision(learner::SacConfig{.policy_layers = {64, 64}, .critic_layers = {64, 64}}));
  small_sac.agent = "SAC";
  Problem spherical = cheetah;
  spherical.name = "17 states, 6 actions, SimbaV2";
  spherical.other = learner::make_sac_agent(in_precision(learner::SacConfig{
      .policy_layers = {128},
      .critic_layers = {512},
      .blocks = {.policy_blocks = 1, .critic_blocks = 2, .normalise_observations = true},
      .spherical = true}));
  spherical.spec = learner::stored_by(*spherical.other, spherical.spec);
  spherical.agent = "SimbaV2";
  return {peer, cheetah, deep, pixels, drq,       drqv2,     small,
          mrq,  narrow,  td3,  sac,    small_td3, small_sac, spherical};
}

/// The entries whose name contains one of options.tasks; all if options.tasks is empty.
std::vector<Problem> wanted_problems(const BenchOptions& options) {
  auto all = problems(options.precision);
  std::string names;
  for (const Problem& problem : all)
    names += "\n  " + problem.name;
  std::erase_if(all, [&](const Problem& problem) {
    return !options.tasks.empty()
           && std::none_of(options.tasks.begin(), options.tasks.end(),
                           [&](const std::string& part) {
                             return part == "all" || problem.name.find(part) != std::string::npos;
                           });
  });
  if (all.empty())
    throw std::invalid_argument("--task \"" + options.tasks.front()
                                + "\" matches no networks; choose from" + names);
  return all;
}

std::vector<TensorMap> sequences(const Problem& problem) {
  const std::int64_t steps = problem.spec.sequence_steps;
  std::vector<std::int64_t> shape = problem.spec.observation().shape;
  shape.insert(shape.begin(), {problem.batch, steps + 1});
  std::vector<TensorMap> made(16);
  for (TensorMap& batch : made) {
    batch = {{"observation", at::randn(shape)},
             {"first", at::zeros({problem.batch, steps + 1}, at::kByte)},
             {"action", at::rand({problem.batch, steps, problem.spec.action_size}) * 2 - 1},
             {"reward", at::rand({problem.batch, steps})},
             {"discount", at::ones({problem.batch, steps})}};
    for (const env::ArraySpec& extra : problem.spec.extras)
      batch[extra.name] = at::zeros({problem.batch, steps}, learner::tensor_type(extra.type));
  }
  return made;
}

std::vector<TensorMap> batches(const Problem& problem) {
  if (problem.spec.is_sequence())
    return sequences(problem);
  std::vector<std::int64_t> shape = problem.spec.observation().shape;
  shape.insert(shape.begin(), problem.batch);
  const bool pixels = problem.spec.frame.type == env::ElementType::uint8;
  const auto observation = [&] {
    return pixels ? (at::rand(shape) * 255).to(at::kByte) : at::randn(shape);
  };
  std::vector<TensorMap> made(pixels ? 4 : 16);
  for (TensorMap& batch : made) {
    batch = {{"observation", observation()},
             {"next_observation", observation()},
             {"action", at::rand({problem.batch, problem.spec.action_size}) * 2 - 1},
             {"reward", at::rand({problem.batch})},
             {"discount", at::full({problem.batch}, 0.95)}};
    if (problem.spec.running_return)
      batch["running_return"] = at::rand({problem.batch}) * 20;
  }
  return made;
}

FigureConfig described(const Problem& problem, int threads) {
  return {{"networks", problem.name},
          {"batch", std::to_string(problem.batch)},
          {"atoms", problem.other ? "none" : std::to_string(problem.config.atoms)},
          {"threads", std::to_string(threads)}};
}

/// Measures updates by a replica on `context`'s device, from batches as in a run.
void bench_updates(const BenchOptions& options, const Report& report, const Problem& problem,
                   int threads, learner::Replica& replica, learner::ReplicaContext& context,
                   const FigureConfig& config) {
  learner::prepare_compute_thread(threads, learner::Products::fastest); // as the learner does
  replica.build(context);
  std::vector<TensorMap> ready = batches(problem);
  for (TensorMap& batch : ready)
    for (auto& [name, tensor] : batch)
      if (context.device().is_cuda())
        tensor = tensor.pin_memory();
  learner::ThreadChoice choice(threads);
  std::size_t next = 0;
  std::clock_t used = 0;
  const auto rates = measure_rates(options, [&] {
    const std::clock_t before = std::clock();
    for (int i = 0; i < 4; ++i)
      choice.run([&] { replica.step_fn(context, ready[next++ % ready.size()]); });
    used += std::clock() - before;
    return 4.0;
  });
  report_values(report, "learner", metric(problem), "updates/s", rates, config);
  // Comparable under other load.
  report_values(report, "learner", metric(problem) + " per processor second", "updates/s",
                {static_cast<double>(next) * CLOCKS_PER_SEC / static_cast<double>(used)}, config);
}

void bench_processor(const BenchOptions& options, const Report& report, const Problem& problem,
                     int threads) {
  learner::ReplicaContext context(nullptr, 1);
  const auto replica = agent_of(problem)->make_replica(problem.spec);
  bench_updates(options, report, problem, threads, *replica, context, described(problem, threads));
}

/// Measures on the first GPU, once with CUDA graphs where the agent's updates are captured and once
/// with separate kernels.
void bench_gpu(const BenchOptions& options, const Report& report, const Problem& problem) {
  using enum learner::UpdateCapture;
  for (const auto capture : {where_it_pays, never}) {
    learner::ReplicaContext context(nullptr, 1, at::Device(at::kCUDA, 0));
    const auto replica = agent_of(problem)->make_replica(problem.spec);
    dynamic_cast<learner::SavedReplica&>(*replica).set_capture(capture);
    auto config = described(problem, 1);
    config["device"] = "cuda";
    config["captured"] = capture == never ? "no" : "as a CUDA graph";
    bench_updates(options, report, problem, 1, *replica, context, config);
  }
}

void bench_acting(const BenchOptions& options, const Report& report, const Problem& problem,
                  std::int64_t batch) {
  at::set_num_threads(1);
  const auto policy = agent_of(problem)->make_policy(problem.spec);
  const std::vector<float> parameters(static_cast<std::size_t>(policy->parameter_count()), 0.01f);
  policy->load(parameters);
  const std::vector<std::byte> observations(static_cast<std::size_t>(batch)
                                            * problem.spec.observation().bytes());
  std::vector<float> actions(static_cast<std::size_t>(batch)
                             * static_cast<std::size_t>(problem.spec.action_size));
  const auto rates = measure_rates(options, [&] {
    for (int i = 0; i < 64; ++i)
      policy->act(observations, batch, actions);
    return 64.0;
  });
  auto config = described(problem, 1);
  config["batch"] = std::to_string(batch);
  report_values(report, "learner", "policy inference", "calls/s", rates, config);
}

} // namespace

bool wants_gpu(const BenchOptions& options) {
  if (options.device == "cpu")
    return false;
  const bool found = collectives::cuda_device_count() > 0;
  if (options.device == "cuda" && !found)
    throw std::runtime_error("--device cuda: " + collectives::nccl_unavailable_reason());
  return found;
}

void bench_learner(const BenchOptions& options, const Report& report) {
  at::NoGradGuard no_gradient;
  at::globalContext().setFlushDenormal(true);
  const auto wanted = wanted_problems(options);
  const bool gpu = wants_gpu(options);
  for (const Problem& problem : wanted) {
    for (const int threads : {1, 2})
      if (options.device != "cuda")
        bench_processor(options, report, problem, threads);
    if (gpu)
      bench_gpu(options, report, problem);
  }
  for (const Problem& problem : wanted)
    for (const std::int64_t batch : {1, 16})
      if (options.device != "cuda")
        bench_acting(options, report, problem, batch);
  at::set_num_threads(1);
}

} // namespace troupe::experiments
