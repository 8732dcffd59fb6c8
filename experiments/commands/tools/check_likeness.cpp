#include "env/golden/check_likeness.hpp"

#include <cstdio>
#include <memory>
#include <stdexcept>

#include "env/golden/golden.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"

namespace troupe::experiments::commands {
namespace {

struct CheckLikenessOptions {
  std::vector<std::string> tasks;
  std::string folder;
  env::LikenessOptions likeness{};
  int size = 84;
  bool no_shapes = false;
  bool json = false;
};

void print_report(const env::LikenessReport& report, bool json) {
  const env::ShapeLikeness& shapes = report.shapes;
  if (json) {
    Json line = {{"task", report.task},
                 {"passed", report.passed()},
                 {"pictures", report.pictures},
                 {"similarity", report.similarity},
                 {"worst_similarity", report.worst_similarity},
                 {"worst_seed", report.worst_seed},
                 {"mean_absolute_difference", report.difference},
                 {"worst_mean_absolute_difference", report.worst_difference}};
    if (shapes.inner_pixels > 0) {
      line["segmentation_share"] = shapes.agreement();
      line["depth_share"] = shapes.depth_share_within();
      line["depth_error_mean"] = shapes.depth_error_mean();
      line["depth_error_maximum"] = shapes.depth_error_maximum;
    }
    line["failures"] = report.failures;
    print_json(line);
  } else {
    std::printf("%-24s %s  similarity %.4f (worst %.4f, %llu)  difference %.2f (worst %.2f)",
                report.task.c_str(), report.passed() ? "passed" : "FAILED", report.similarity,
                report.worst_similarity, static_cast<unsigned long long>(report.worst_seed),
                report.difference, report.worst_difference);
    if (shapes.inner_pixels > 0) {
      std::printf("  segmentation %.4f  depth within .001 %.4f (mean %.1e)", shapes.agreement(),
                  shapes.depth_share_within(), shapes.depth_error_mean());
    }
    std::printf("\n");
    for (const std::string& failure : report.failures) {
      std::printf("    %s\n", failure.c_str());
    }
  }
  std::fflush(stdout);
}

std::vector<std::string> tasks_of(const CheckLikenessOptions& options) {
  if (!options.tasks.empty()) {
    return options.tasks;
  }
  return options.folder.empty() ? env::task_names() : env::read_golden_index(options.folder).tasks;
}

void check_one_likeness(CheckLikenessOptions options) {
  options.likeness.pixels.height = options.likeness.pixels.width = options.size;
  options.likeness.shapes = !options.no_shapes;
  std::string first_failure;
  int failed = 0;
  int compared = 0;
  double sum = 0;
  for (const std::string& task : tasks_of(options)) {
    const auto report = options.folder.empty()
                            ? env::check_likeness(task, options.likeness)
                            : env::check_recorded_likeness(options.folder, task, options.likeness);
    if (report.pictures == 0) {
      continue; // a recording without frames
    }
    print_report(report, options.json);
    sum += report.similarity;
    ++compared;
    if (!report.passed() && failed++ == 0) {
      first_failure = task + ": " + report.failures.front();
    }
  }
  if (compared == 0) {
    throw std::runtime_error(options.folder + " has no frames of these tasks (frames_<task>.npz)");
  }
  const double mean = sum / compared;
  if (options.json) {
    print_json({{"tasks", compared}, {"failed", failed}, {"mean_similarity", mean}});
  } else {
    std::printf("%d of %d tasks passed; mean structural similarity %.4f\n", compared - failed,
                compared, mean);
  }
  std::fflush(stdout);
  if (failed > 0) {
    throw std::runtime_error(first_failure);
  }
  if (mean < env::kSimilarityMean) {
    throw std::runtime_error("the mean structural similarity of all tasks is "
                             + std::to_string(mean) + ", below "
                             + std::to_string(env::kSimilarityMean));
  }
}

} // namespace

void add_check_likeness(CLI::App& check_command) {
  CLI::App* command = check_command.add_subcommand(
      "likeness", "Compares the ray caster's pictures with OpenGL's, over random states");
  command->footer("Example: troupe check likeness --task cheetah_run --states 20\n"
                  "Exit code 1 when a task's mean similarity is below .975 or its difference above "
                  "1.5 levels, when 1% of the depths or objects away from edges differ, or when "
                  "the mean similarity of all tasks is below .985.");
  auto options = std::make_shared<CheckLikenessOptions>();
  command->add_option(
      "FOLDER", options->folder,
      "recordings of dm_control (frames_<task>.npz) to compare with instead of OpenGL");
  command->add_option("--task", options->tasks, "only this task; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--states", options->likeness.states, "number of states of each task")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->add_option("--seed", options->likeness.seed, "seed of the first state")
      ->capture_default_str();
  command->add_option("--size", options->size, "height and width, in pixels")
      ->check(CLI::Range(8, 4096))
      ->capture_default_str();
  command->add_option("--camera", options->likeness.pixels.camera, "name or number of the camera")
      ->capture_default_str();
  command->add_flag("--no-shapes", options->no_shapes, "colours only: no depth, no segmentation");
  command->add_option("--models", options->likeness.models, "folder of the suite's XML files");
  command->add_flag("--json", options->json, "one JSON object per task and line");
  command->callback([options] { check_one_likeness(*options); });
}

} // namespace troupe::experiments::commands
