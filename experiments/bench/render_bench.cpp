#include <time.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "env/caster/cuda/batch_caster.hpp"
#include "env/make/make.hpp"
#include "env/plugin/rollout.hpp"
#include "env/render/cast_renderer.hpp"
#include "experiments/bench/bench.hpp"

// Pictures per second by the ray caster and by OpenGL. "picture alone": per second of processor
// time that the thread spends in draw(), including software OpenGL, so that other programs on the
// machine have little influence. The states differ, and each is forwarded just before (not timed).
// With several threads, each has a simulation and a renderer, and the rates are added. "batch on a
// GPU" (if there is one): draw() of a batch caster, which builds the frames, sends them and draws;
// the pictures stay on the GPU. "step and picture": control steps with one picture each, resets
// included, as with dm_control's pixel wrapper; only for the five tasks that are measured by
// default.

namespace troupe::experiments {

namespace {

using SteadyClock = std::chrono::steady_clock;

struct RenderSetting {
  std::string task;
  int side = 84;
  bool effects = true;
  env::RendererKind renderer = env::RendererKind::caster;
  int threads = 1;

  env::PixelOptions pixels() const {
    return {.height = side, .width = side, .effects = effects, .renderer = renderer};
  }
  std::string size() const { return std::to_string(side) + "x" + std::to_string(side); }
  std::string metric(const std::string& what) const {
    return task + ", " + what + ", " + size() + (effects ? ", all effects" : ", no effects");
  }
};

FigureConfig described(const RenderSetting& setting) {
  return {{"task", setting.task},
          {"size", setting.size()},
          {"effects", setting.effects ? "true" : "false"},
          {"renderer", setting.renderer == env::RendererKind::caster ? "caster" : "opengl"},
          {"threads", std::to_string(setting.threads)},
          {"by", env::renderer_info(setting.pixels()).description}};
}

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

/// The processor time of this thread in seconds.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The simulation of one thread, its renderer, and states along an episode.
class Drawer {
public:
  Drawer(const RenderSetting& setting, const std::string& models, std::uint64_t seed)
      : environment_(env::make_task(setting.task, models)), physics_(*environment_->physics()) {
    std::vector<std::byte> observation(environment_->spec().observation_bytes());
    environment_->reset(seed, observation);
    for (int i = 0; i < kStates; ++i) {
      for (int step = 0; step < 5; ++step)
        environment_->step(
            env::action_for(environment_->spec(), seed, 5 * i + step, env::Acting::random),
            observation);
      const mjData& data = physics_.data();
      positions_.emplace_back(data.qpos, data.qpos + physics_.model().nq);
    }
    renderer_ = env::make_renderer(physics_, setting.pixels());
    picture_.resize(renderer_->bytes());
    draw_next();
  }

  /// Pictures per second of processor time in draw(), measured over `seconds` of wall-clock time.
  double rate(double seconds) {
    const auto begin = SteadyClock::now();
    double drawing = 0;
    int count = 0;
    do {
      drawing += draw_next();
      ++count;
    } while (seconds_since(begin) < seconds);
    return count / drawing;
  }

private:
  static constexpr int kStates = 8;

  double draw_next() {
    const auto& position = positions_[next_++ % kStates];
    std::copy(position.begin(), position.end(), physics_.data().qpos);
    physics_.forward();
    const double begin = processor_seconds();
    renderer_->draw(picture_);
    return processor_seconds() - begin;
  }

  std::unique_ptr<env::Environment> environment_;
  env::Physics& physics_;
  std::vector<std::vector<double>> positions_;
  std::unique_ptr<env::Renderer> renderer_;
  std::vector<std::uint8_t> picture_;
  std::size_t next_ = 0;
};

void bench_alone(const BenchOptions& options, const Report& report, const RenderSetting& setting) {
  std::vector<double> rates;
  for (int i = 0; i < options.repetitions; ++i) {
    std::vector<std::future<double>> threads;
    for (int t = 0; t < setting.threads; ++t)
      threads.push_back(std::async(std::launch::async, [&, t] {
        return Drawer(setting, options.models, static_cast<std::uint64_t>(t) + 1)
            .rate(options.seconds);
      }));
    double sum = 0;
    for (auto& thread : threads)
      sum += thread.get();
    rates.push_back(sum);
  }
  report_values(report, "render", setting.metric("picture alone"), "frames/s", rates,
                described(setting));
}

void bench_stepping(const BenchOptions& options, const Report& report,
                    const RenderSetting& setting) {
  const auto environment = env::make_environment(
      {.task = setting.task, .pixels = setting.pixels(), .models = options.models});
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  const std::vector<double> action(environment->spec().action.size(), .3);
  std::uint64_t seed = 1;
  environment->reset(seed, observation);
  const auto rates = measure_rates(options, [&] {
    constexpr int kFrames = 5;
    for (int i = 0; i < kFrames; ++i)
      if (environment->step(action, observation).step_type == env::StepType::last)
        environment->reset(++seed, observation);
    return static_cast<double>(kFrames);
  });
  report_values(report, "render", setting.metric("step and picture"), "frames/s", rates,
                described(setting));
}

/// Measures pictures per second of batches on the first GPU; does nothing without a GPU.
void bench_batches(const BenchOptions& options, const Report& report, const RenderSetting& setting,
                   int environments, int threads) {
  if (!env::BatchCaster::unavailable().empty())
    return;
  std::vector<std::unique_ptr<env::Environment>> simulations;
  std::vector<const mjModel*> models;
  std::vector<const mjData*> states;
  for (int i = 0; i < environments; ++i) {
    auto environment = env::make_task(setting.task, options.models);
    std::vector<std::byte> observation(environment->spec().observation_bytes());
    environment->reset(static_cast<std::uint64_t>(i) + 1, observation);
    models.push_back(&environment->physics()->model());
    states.push_back(&environment->physics()->data());
    simulations.push_back(std::move(environment));
  }
  env::BatchCaster caster(
      env::caster_model(simulations[0]->physics()->compiled()), environments,
      {.height = setting.side, .width = setting.side, .effects = setting.effects}, threads);
  const auto rates = measure_rates(options, [&] {
    caster.draw(models, states);
    return static_cast<double>(environments);
  });
  report_values(report, "render", setting.metric("batch on a GPU"), "frames/s", rates,
                {{"task", setting.task},
                 {"size", setting.size()},
                 {"effects", setting.effects ? "true" : "false"},
                 {"renderer", "batch caster"},
                 {"environments", std::to_string(environments)},
                 {"threads", std::to_string(threads)}});
}

/// Batches of 64 by one thread, and of 1,024 by as many threads as there are processors.
void bench_batches(const BenchOptions& options, const Report& report,
                   const RenderSetting& setting) {
  bench_batches(options, report, setting, 64, 1);
  const auto processors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  bench_batches(options, report, setting, 1024, processors);
}

std::vector<std::string> tasks_of(const BenchOptions& options) {
  if (options.tasks.empty())
    return {"cheetah_run", "walker_walk", "cartpole_swingup", "humanoid_run", "quadruped_walk"};
  if (options.tasks == std::vector<std::string>{"all"})
    return env::task_names();
  return options.tasks;
}

} // namespace

void bench_render(const BenchOptions& options, const Report& report) {
  using enum env::RendererKind;
  if (!options.vectors.empty())
    env::draw_with_vectors(options.vectors);
  const bool brief = options.tasks.empty();
  for (const std::string& task : tasks_of(options))
    for (const int side : options.sizes.empty() ? std::vector<int>{84} : options.sizes) {
      for (const int threads : {1, 2})
        bench_alone(options, report, {.task = task, .side = side, .threads = threads});
      if (!options.vectors.empty())
        continue; // OpenGL chooses its own instruction set
      bench_batches(options, report, {.task = task, .side = side});
      bench_alone(options, report, {.task = task, .side = side, .renderer = opengl});
      if (!brief)
        continue;
      for (const bool effects : {true, false})
        for (const auto renderer : {caster, opengl})
          bench_stepping(options, report,
                         {.task = task, .side = side, .effects = effects, .renderer = renderer});
    }
}

} // namespace troupe::experiments
