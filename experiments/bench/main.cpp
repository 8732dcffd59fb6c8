#include <CLI/CLI.hpp>
#include <google/protobuf/stubs/logging.h>

#include <cstdio>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "env/amx.hpp"
#include "env/render/gl_context.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/commands/help_format.hpp"

namespace troupe::experiments {
namespace {

struct Stage {
  const char* name;
  void (*run)(const BenchOptions&, const Report&);
};

/// The stages, in the order of the data flow.
constexpr Stage kStages[] = {
    {"environment", bench_environment},
    {"pool", bench_pool},
    {"games", bench_games},
    {"remote", bench_remote},
    {"render", bench_render},
    {"wire", bench_wire},
    {"replay", bench_replay},
    {"replay_disk", bench_replay_disk},
    {"collectives", bench_collectives},
    {"collective_faults", bench_collective_faults},
    {"ddp", bench_ddp},
    {"data", bench_data},
    {"learner", bench_learner},
    {"classifier", bench_classifier},
    {"strategies", bench_strategies},
    {"agent", bench_agent},
    {"off_policy", bench_off_policy},
};

void print_figure(const Figure& figure, bool json) {
  if (json) {
    const nlohmann::ordered_json line{{"bench", figure.bench},     {"metric", figure.metric},
                                      {"value", figure.value},     {"unit", figure.unit},
                                      {"minimum", figure.minimum}, {"maximum", figure.maximum},
                                      {"config", figure.config}};
    std::printf("%s\n", line.dump().c_str());
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

int run(int argc, char** argv) {
  CLI::App app("Runs the benchmarks of one stage: median, minimum and maximum");
  app.name("troupe bench");
  app.formatter(commands::help_format());
  BenchOptions options;
  std::string name;
  bool json = false;
  bool list = false;
  app.footer("Example: troupe bench replay --json\n"
             "         troupe bench render --task all --vectors AVX2\n"
             "`troupe list benches` lists the stages. render measures the caster on one and two "
             "threads, alternating with OpenGL, or only the caster with --vectors; without --task "
             "it draws five tasks, and also pictures along control steps. ddp starts its own "
             "processes; under torchrun, mpirun or srun it measures the processes it runs in.");
  app.add_option("STAGE", name, "the stage to measure, or \"all\"");
  app.add_flag("--json", json, "print one JSON object per line");
  app.add_option("--seconds", options.seconds, "seconds per repetition")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  app.add_option("--repetitions", options.repetitions,
                 "number of repetitions; the median is reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--models", options.models, "folder with the control suite's XML files");
  app.add_option("--task", options.tasks,
                 "for the stages pool, render and replay_disk; may be repeated; \"all\" (not for "
                 "pool): the control suite; for the stage learner: networks with this in their "
                 "name, such as \"drq\"")
      ->allow_extra_args(false);
  app.add_option("--pool", options.pool,
                 "for the stage pool: only this one, ENVIRONMENTS/BATCH/THREADS, e.g. 256/128/2");
  app.add_option("--size", options.sizes,
                 "for the stage render: size of the pictures in pixels; may be repeated")
      ->allow_extra_args(false)
      ->check(CLI::Range(8, 4096));
  app.add_option("--join", options.join, "the rank assignment of a process that a stage started")
      ->group(""); // internal
  app.add_option("--data", options.data,
                 "for the stage data: a folder of JPEGs (default: generated ones)");
  app.add_option(
      "--vectors", options.vectors,
      "for the stage render: the caster's processor instructions, e.g. AVX2; default: the best");
  app.add_option("--precision", options.precision,
                 "for the stage learner: number type of products, in place of each agent's default")
      ->check(CLI::IsMember({"float32", "bfloat16", "bfloat16x3"}))
      ->type_name("float32|bfloat16|bfloat16x3");
  app.add_option("--device", options.device,
                 "for the stages learner and classifier: only \"cpu\" or \"cuda\"; default: both "
                 "if there is a GPU")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--timeline", options.timeline,
                 "for the stage ddp: file for a Chrome trace of all processes");
  app.add_flag("--list", list, "list the stages");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for) { // --help
    return app.exit(asked_for);
  } catch (const CLI::ParseError& mistake) {
    throw std::invalid_argument(std::string(mistake.what()) + " (`troupe bench --help` shows how)");
  }
  if (list) {
    auto names = nlohmann::json::array();
    for (const Stage& stage : kStages) {
      names.push_back(stage.name);
      if (!json)
        std::printf("%s\n", stage.name);
    }
    if (json)
      std::printf("%s\n", names.dump().c_str());
    return 0;
  }
  bool found = false;
  std::string names;
  for (const Stage& stage : kStages) {
    names += std::string(stage.name) + ", ";
    if (name == "all" || name == stage.name) {
      found = true;
      stage.run(options, [&](const Figure& figure) { print_figure(figure, json); });
    }
  }
  if (!found)
    throw std::invalid_argument("stage is \"" + name + "\"; it must be one of " + names + "all");
  return 0;
}

} // namespace
} // namespace troupe::experiments

// The exit codes are those of `troupe`, which starts this program for `troupe bench`.
int main(int argc, char** argv) {
  troupe::env::avoid_broken_amx();
  troupe::env::draw_on_calling_thread();
  google::protobuf::SetLogHandler(nullptr);
  const auto fail = [](const char* cause, int code) {
    std::fflush(stdout);
    std::fprintf(stderr, "troupe: %s\n", cause);
    return code;
  };
  try {
    return troupe::experiments::run(argc, argv);
  } catch (const std::invalid_argument& mistake) {
    return fail(mistake.what(), 2);
  } catch (const std::exception& failure) {
    return fail(failure.what(), 1);
  }
}
