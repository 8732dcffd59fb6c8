#include <cstdio>
#include <memory>
#include <stdexcept>

#include "experiments/commands/bench_stages.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"

namespace troupe::experiments::commands {
namespace {

void print_figure(const Figure& figure, bool json) {
  if (json) {
    print_json({{"bench", figure.bench},
                {"metric", figure.metric},
                {"value", figure.value},
                {"unit", figure.unit},
                {"minimum", figure.minimum},
                {"maximum", figure.maximum},
                {"config", figure.config}});
  } else {
    std::string config;
    for (const auto& [key, value] : figure.config) {
      config += (config.empty() ? " [" : " ") + key + "=" + value;
    }
    std::printf("%s: %s: %.6g %s (%.6g to %.6g)%s%s\n", figure.bench.c_str(), figure.metric.c_str(),
                figure.value, figure.unit.c_str(), figure.minimum, figure.maximum, config.c_str(),
                config.empty() ? "" : "]");
  }
  std::fflush(stdout);
}

} // namespace

std::vector<BenchStage> bench_stages() {
  std::vector<BenchStage> stages;
#ifdef TROUPE_HAS_BENCH_ENVIRONMENT
  stages.push_back({"environment", bench_environment});
#endif
#ifdef TROUPE_HAS_BENCH_POOL
  stages.push_back({"pool", bench_pool});
#endif
#ifdef TROUPE_HAS_BENCH_REMOTE
  stages.push_back({"remote", bench_remote});
#endif
#ifdef TROUPE_HAS_BENCH_RENDER
  stages.push_back({"render", bench_render});
#endif
#ifdef TROUPE_HAS_BENCH_WIRE
  stages.push_back({"wire", bench_wire});
#endif
#ifdef TROUPE_HAS_BENCH_REPLAY
  stages.push_back({"replay", bench_replay});
#endif
#ifdef TROUPE_HAS_BENCH_REPLAY_WRITER
  stages.push_back({"replay_writer", bench_replay_writer});
#endif
#ifdef TROUPE_HAS_BENCH_REPLAY_SCALE
  stages.push_back({"replay_scale", bench_replay_scale});
#endif
#ifdef TROUPE_HAS_BENCH_REPLAY_SHARDS
  stages.push_back({"replay_shards", bench_replay_shards});
#endif
#ifdef TROUPE_HAS_BENCH_REPLAY_SOAK
  stages.push_back({"replay_soak", bench_replay_soak});
#endif
#ifdef TROUPE_HAS_BENCH_STORAGE
  stages.push_back({"storage", bench_storage});
#endif
#ifdef TROUPE_HAS_BENCH_REPLAY_DISK
  stages.push_back({"replay_disk", bench_replay_disk});
#endif
#ifdef TROUPE_HAS_BENCH_CODEC
  stages.push_back({"codec", bench_codec});
#endif
#ifdef TROUPE_HAS_BENCH_COLLECTIVES
  stages.push_back({"collectives", bench_collectives});
#endif
#ifdef TROUPE_HAS_BENCH_COLLECTIVE_FAULTS
  stages.push_back({"collective_faults", bench_collective_faults});
#endif
#ifdef TROUPE_HAS_BENCH_DDP
  stages.push_back({"ddp", bench_ddp});
#endif
#ifdef TROUPE_HAS_BENCH_DATA
  stages.push_back({"data", bench_data});
#endif
#ifdef TROUPE_HAS_BENCH_LEARNER
  stages.push_back({"learner", bench_learner});
#endif
#ifdef TROUPE_HAS_BENCH_CLASSIFIER
  stages.push_back({"classifier", bench_classifier});
#endif
#ifdef TROUPE_HAS_BENCH_STRATEGIES
  stages.push_back({"strategies", bench_strategies});
#endif
#ifdef TROUPE_HAS_BENCH_AGENT
  stages.push_back({"agent", bench_agent});
#endif
  return stages;
}

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("bench", "Measures one stage: median, least and greatest");
  command->footer("Example: troupe bench replay --json\n"
                  "         troupe bench render --task all --vectors AVX2\n"
                  "`troupe list benches` names the stages. The stage render measures the caster on "
                  "one and two threads and OpenGL, in turns; with --vectors the caster alone; "
                  "without --task five tasks, and pictures along control steps, too. The stage ddp "
                  "starts processes of its own; under torchrun, mpirun or srun it measures those "
                  "that it runs in.");
  auto options = std::make_shared<BenchOptions>();
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("stage", *name, "which one, or \"all\"")->required();
  command->add_flag("--json", *json, "one JSON object per line");
  command->add_option("--seconds", options->seconds, "per repetition")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  command->add_option("--repetitions", options->repetitions, "the median is reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--models", options->models, "folder of the control suite's XML files");
  command
      ->add_option(
          "--task", options->tasks,
          "of the stages render and codec, may be given again; \"all\": the control suite; of "
          "the stage learner: networks with this in their name, as \"drq\"")
      ->allow_extra_args(false);
  command
      ->add_option("--size", options->sizes,
                   "of the stage render's pictures, in pixels; may be given again")
      ->allow_extra_args(false)
      ->check(CLI::Range(8, 4096));
  command->add_option("--join", options->join, "the seat of a process that a stage started")
      ->group(""); // not for people
  command->add_option("--data", options->data,
                      "of the stage data: a folder of JPEGs; some are made otherwise");
  command->add_option("--vectors", options->vectors,
                      "of the stage render: the caster's processor instructions, e.g. AVX2; the "
                      "best otherwise");
  command->add_option("--timeline", options->timeline,
                      "of the stage ddp: where its Chrome trace over all processes is written");
  command
      ->add_option("--soak", options->soak_minutes,
                   "of the stage replay_soak: minutes of load, after which it says whether memory "
                   "grew; without it the stage does nothing")
      ->check(CLI::Range(0.05, 10'000.0));
  command->callback([options, name, json, &exit_code] {
    bool found = false;
    std::string names;
    for (const BenchStage& stage : bench_stages()) {
      names += (names.empty() ? "" : ", ") + stage.name;
      if (*name == "all" || *name == stage.name) {
        found = true;
        stage.run(*options, [&](const Figure& figure) { print_figure(figure, *json); });
      }
    }
    if (!found) {
      throw std::invalid_argument("stage is \"" + *name + "\"; it must be one of " + names
                                  + (names.empty() ? "all" : ", all"));
    }
    exit_code = kDone;
  });
}

} // namespace troupe::experiments::commands
