#include <string>
#include <vector>

#include "env/make.hpp"
#include "env/render/gl_context.hpp"
#include "experiments/bench/bench.hpp"

namespace troupe::experiments {

namespace {

/// Control steps with a picture each: what dm_control's pixel wrapper does.
void bench_picture(const BenchOptions& options, const Report& report, const std::string& task,
                   int side, bool effects) {
  const auto environment = env::make_environment(
      {.task = task,
       .pixels = env::PixelOptions{.height = side, .width = side, .effects = effects},
       .models = options.models});
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  const std::vector<double> action(environment->spec().action.size(), .3);
  std::uint64_t seed = 1;
  environment->reset(seed, observation);
  const std::string size = std::to_string(side) + "x" + std::to_string(side);
  Figure figure = measure_rate(
      options, "render",
      task + ", step and picture, " + size + (effects ? ", all effects" : ", no effects"),
      "frames/s", [&] {
        constexpr int kFrames = 5;
        for (int i = 0; i < kFrames; ++i)
          if (environment->step(action, observation).step_type == env::StepType::last)
            environment->reset(++seed, observation);
        return static_cast<double>(kFrames);
      });
  const env::GlInfo& gl = env::gl_of_this_thread(env::GlBackend::automatic)->info();
  figure.config = {{"task", task},
                   {"size", size},
                   {"effects", effects ? "true" : "false"},
                   {"gl", gl.backend + ", " + gl.renderer}};
  report(figure);
}

} // namespace

void bench_render(const BenchOptions& options, const Report& report) {
  for (const char* task : {"cheetah_run", "walker_walk", "cartpole_swingup"})
    for (const bool effects : {true, false})
      for (const int side : {84, 64})
        bench_picture(options, report, task, side, effects);
}

} // namespace troupe::experiments
