#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "env/classic/classic.hpp"
#include "env/minatar/minatar.hpp"
#include "env/pool/environment_pool.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/bench_player.hpp"

// Steps of N environments on T threads, including the calling one. Figures in control steps count a
// reset as a step, with the time that it takes. "sync N": one step() for all environments. "async
// N/M": N are in flight, the first M are received and sent again. The floor is mj_step alone, with
// as many physics steps per control step, on as many threads and without a pool.

namespace troupe::experiments {

namespace {

using Clock = env::EnvironmentPool::Clock;

Clock::time_point pool_deadline() {
  return Clock::now() + std::chrono::minutes(2);
}

struct Setting {
  int environments;
  int batch; // if equal to environments: synchronous
  int threads;
  env::PoolThreads binding = env::PoolThreads::automatic;
};

std::string mode(const Setting& setting) {
  const std::string n = std::to_string(setting.environments);
  return setting.batch == setting.environments ? "sync " + n
                                               : "async " + n + "/" + std::to_string(setting.batch);
}

/// A pool and a caller's loop that plays it with prepared actions.
class PoolPlayer {
public:
  PoolPlayer(const Setting& setting, const env::EnvironmentPool::Make& make)
      : pool_({.environments = setting.environments,
               .threads = setting.threads,
               .binding = setting.binding},
              make),
        synchronous_(setting.batch == setting.environments),
        rows_(pool_.spec(), static_cast<std::size_t>(setting.batch)),
        size_(rows_.rewards.size() * pool_.spec().action.size()),
        actions_(random_actions(pool_.spec(), kActions * rows_.rewards.size(), 1)) {
    std::vector<std::int32_t> all;
    for (int i = 0; i < setting.environments; ++i)
      all.push_back(i);
    if (synchronous_)
      pool_.reset(all, rows_.batch(), pool_deadline());
    else
      pool_.send_reset(all);
  }

  double play_batch() {
    const auto actions = std::span(actions_).subspan(turn_++ % kActions * size_, size_);
    if (synchronous_) {
      pool_.step(actions, rows_.batch(), pool_deadline());
    } else {
      pool_.receive(rows_.batch(), pool_deadline());
      pool_.send(rows_.environments, actions);
    }
    return static_cast<double>(rows_.rewards.size());
  }

  double play(double steps) {
    double done = 0;
    while (done < steps)
      done += play_batch();
    return done;
  }

private:
  env::EnvironmentPool pool_;
  bool synchronous_;
  env::PoolRows rows_;
  static constexpr std::size_t kActions = 61; // number of prepared batches, which are used in turn
  std::size_t size_;                          // of a batch
  std::vector<double> actions_;
  std::size_t turn_ = 0;
};

/// Does nothing, so that only the cost of the pool remains.
class NoEnvironment final : public env::Environment {
public:
  NoEnvironment() {
    spec_.name = "nothing";
    spec_.observations = {{"state", env::ElementType::float32, {17}}};
    spec_.action = {std::vector<double>(6, -1), std::vector<double>(6, 1)};
    spec_.episode_steps = 1000;
  }
  const env::EnvironmentSpec& spec() const override { return spec_; }
  env::TimeStep reset(std::uint64_t, std::span<std::byte> observation) override {
    steps_ = 0;
    std::fill(observation.begin(), observation.end(), std::byte{1});
    return {};
  }
  env::TimeStep step(std::span<const double> action, std::span<std::byte> observation) override {
    std::memcpy(observation.data(), action.data(), action.size_bytes());
    return {++steps_ == 1000 ? env::StepType::last : env::StepType::mid, action[0], 1};
  }
  void save_state(std::vector<std::byte>&) const override {}
  std::span<const std::byte> load_state(std::span<const std::byte> in) override { return in; }

private:
  env::EnvironmentSpec spec_;
  std::int64_t steps_ = 0;
};

FigureConfig described(const std::string& task, const Setting& setting) {
  return {{"task", task},
          {"mode", mode(setting)},
          {"threads", std::to_string(setting.threads)},
          {"playing", setting.binding == env::PoolThreads::bound ? "bound" : "shared"}};
}

constexpr int kPoolChunk = 1000; // control steps

void bench_pool_setting(const BenchOptions& options, const Report& report, const std::string& task,
                        const Setting& setting) {
  PoolPlayer player(setting, [&](int) {
    return env::make_environment({.task = task, .models = options.models});
  });
  report_values(report, "pool", task + ", states, control steps (resets included)",
                "control steps/s", measure_rates(options, [&] { return player.play(kPoolChunk); }),
                described(task, setting));
}

void bench_floors(const BenchOptions& options, const Report& report, const std::string& task) {
  for (const int threads : {1, 2}) {
    BenchPlayers floors(task, options.models, threads);
    const auto rates = measure_rates(
        options, [&] { return floors.at_once(&BenchPlayer::play_plain, kPoolChunk); });
    report_values(report, "pool", task + ", mj_step alone, control steps", "control steps/s", rates,
                  {{"task", task}, {"threads", std::to_string(threads)}});
  }
}

/// The duration of the slowest step in two episodes divided by that of the median step: 1 if resets
/// cost no time.
void bench_stall(const BenchOptions& options, const Report& report, const Setting& setting) {
  const std::string task = "cheetah_run";
  std::vector<double> slowest;
  for (int repetition = 0; repetition < std::max(1, options.repetitions); ++repetition) {
    PoolPlayer player(setting, [&](int) {
      return env::make_environment({.task = task, .models = options.models});
    });
    std::vector<double> seconds;
    for (int step = 0; step < 2002; ++step) {
      const auto begin = Clock::now();
      player.play_batch();
      seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    slowest.push_back(*std::max_element(seconds.begin(), seconds.end()) / median_of(seconds));
  }
  report_values(report, "pool",
                task + ", states, slowest step of all environments over the median one", "times",
                slowest, described(task, setting));
}

/// Parses "256/128/2". Throws std::invalid_argument.
Setting setting_of(const std::string& text) {
  Setting setting{};
  int end = 0;
  const int read = std::sscanf(text.c_str(), "%d/%d/%d%n", &setting.environments, &setting.batch,
                               &setting.threads, &end);
  if (read != 3 || static_cast<std::size_t>(end) != text.size() || setting.batch < 1
      || setting.batch > setting.environments)
    throw std::invalid_argument(
        "--pool is \"" + text
        + "\"; it must be ENVIRONMENTS/BATCH/THREADS with a batch from 1 to "
          "all environments, e.g. 256/128/2");
  return setting;
}

} // namespace

void bench_pool(const BenchOptions& options, const Report& report) {
  std::vector<std::string> tasks = options.tasks;
  if (tasks.empty())
    tasks = {"cheetah_run", "walker_walk", "humanoid_run", "HalfCheetah-v5", "Ant-v5"};
  if (!options.pool.empty()) {
    const Setting setting = setting_of(options.pool);
    for (const std::string& task : tasks)
      bench_pool_setting(options, report, task, setting);
    return;
  }
  for (const Setting& setting : {Setting{16, 16, 1}, Setting{16, 16, 2}, Setting{16, 8, 2},
                                 Setting{256, 128, 2}, Setting{256, 256, 2}}) {
    PoolPlayer player(setting, [](int) { return std::make_unique<NoEnvironment>(); });
    report_values(report, "pool", "an environment that does nothing, steps", "steps/s",
                  measure_rates(options, [&] { return player.play(10'000); }),
                  described("nothing", setting));
  }
  for (const std::string& task : tasks) {
    bench_floors(options, report, task);
    for (const Setting& setting :
         {Setting{1, 1, 1}, Setting{16, 16, 1}, Setting{16, 8, 1}, Setting{16, 16, 2},
          Setting{16, 8, 2}, Setting{16, 8, 2, env::PoolThreads::bound}, Setting{256, 128, 2},
          Setting{256, 128, 2, env::PoolThreads::bound}, Setting{256, 256, 2}})
      bench_pool_setting(options, report, task, setting);
  }
  for (const Setting& setting : {Setting{16, 16, 1}, Setting{16, 16, 2}, Setting{256, 256, 2}})
    bench_stall(options, report, setting);
}

void bench_games(const BenchOptions& options, const Report& report) {
  std::vector<std::string> tasks = env::classic_names();
  std::ranges::copy(env::minatar_names(), std::back_inserter(tasks));
  for (const std::string& task : tasks)
    for (const Setting& setting :
         {Setting{16, 16, 1}, Setting{256, 256, 1}, Setting{256, 256, 2}}) {
      PoolPlayer player(setting, [&](int) { return env::make_environment({.task = task}); });
      report_values(report, "games", task + ", steps (resets included)", "steps/s",
                    measure_rates(options, [&] { return player.play(10'000); }),
                    described(task, setting));
    }
}

} // namespace troupe::experiments
