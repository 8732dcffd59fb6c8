#include "experiments/commands/tools/dataset_render.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>

#include <ATen/ops/empty.h>

#include "env/make/make.hpp"
#include "env/nearest_names.hpp"
#include "env/plugin/rollout.hpp"
#include "env/render/renderer.hpp"
#include "env/split_mix.hpp"
#include "env/wrappers/pixels.hpp"
#include "env/wrappers/randomize.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/tools/dataset_layout.hpp"
#include "learner/data/prefetcher.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr std::int64_t kRenderedRowsAtOnce = 32;

/// The width of a camera's view at a distance of 1.
double width_of_view(const env::Physics& physics, std::size_t camera, double angle) {
  return physics.model().cam_projection[camera] == mjPROJ_ORTHOGRAPHIC
             ? angle
             : std::min(2 * std::tan(angle * 3.14159265358979 / 360), 1.0);
}

/// Moves every camera along each axis by up to ±`amount` of its view's width, and scales its angle
/// of view by 1 ± `amount`.
env::Randomization random_views(double amount) {
  return {"views",
          {"cam_pos", "cam_poscom0", "cam_pos0", "cam_fovy"},
          {},
          [amount](env::Physics& physics, env::Random& random) {
            const auto angles = physics.own_array("cam_fovy");
            const auto positions = physics.own_array("cam_pos");
            for (std::size_t i = 0; i < angles.size(); ++i) {
              const double width = width_of_view(physics, i, angles[i]);
              angles[i] = std::min(angles[i] * random.uniform(1 - amount, 1 + amount), 150.0);
              const double distance =
                  std::hypot(positions[3 * i], positions[3 * i + 1], positions[3 * i + 2]);
              for (std::size_t axis = 0; axis < 3; ++axis) {
                const double offset = distance * width * random.uniform(-amount, amount);
                for (const char* field : {"cam_pos", "cam_poscom0", "cam_pos0"}) {
                  physics.own_array(field)[3 * i + axis] += offset;
                }
              }
            }
          }};
}

/// No two rows of the two splits share a seed: the numbers differ, and the mixing is one-to-one.
std::uint64_t seed_of(const SceneOptions& options, std::size_t label, std::int64_t number) {
  const std::uint64_t split = options.split == "train" ? 0 : 1;
  return env::mix_bits(
      env::mix_bits(options.seed)
      + (split << 62 | std::uint64_t{label} << 40 | static_cast<std::uint64_t>(number)));
}

/// A task to render. Use from one thread at a time.
class Scene {
public:
  Scene(const SceneOptions& options, const std::string& task) : options_(options) {
    env::EnvironmentConfig config;
    config.task = task;
    config.models = options.models;
    env::PixelOptions pixels;
    pixels.height = pixels.width = options.size;
    pixels.effects = options.effects;
    pixels.renderer = env::RendererKind::caster;
    auto bare = env::make_bare(config);
    env::check_can_be_drawn(*bare, pixels);
    environment_ = std::make_unique<env::Randomize>(
        std::move(bare), std::vector<env::Randomization>{env::random_colours(options.colours),
                                                         env::random_lights(options.lights),
                                                         random_views(options.views)});
    renderer_ =
        env::make_renderer(*environment_->physics(), pixels, env::PixelLayout::channels_last);
  }

  std::vector<std::uint8_t> draw(std::uint64_t seed) {
    const auto& spec = environment_->spec();
    std::vector<std::byte> observation(spec.observation_bytes());
    environment_->reset(seed, observation);
    const auto steps = static_cast<std::int64_t>(env::mix_bits(seed + env::kSplitMixStep)
                                                 % static_cast<std::uint64_t>(options_.steps + 1));
    for (std::int64_t step = 0; step < steps; ++step) {
      const auto taken =
          environment_->step(env::action_for(spec, seed, step, env::Acting::random), observation);
      if (taken.step_type == env::StepType::last) {
        break;
      }
    }
    std::vector<std::uint8_t> rgb(renderer_->bytes());
    renderer_->draw(rgb);
    return rgb;
  }

private:
  const SceneOptions& options_;
  std::unique_ptr<env::Environment> environment_;
  std::unique_ptr<env::Renderer> renderer_;
};

/// The scenes that no thread is using. A task has as many scenes as threads have drawn it at the
/// same time.
class Scenes {
public:
  explicit Scenes(const SceneOptions& options) : options_(options) {}

  std::unique_ptr<Scene> take(const std::string& task) {
    {
      const std::lock_guard lock(mutex_);
      auto& free = free_[task];
      if (!free.empty()) {
        auto scene = std::move(free.back());
        free.pop_back();
        return scene;
      }
    }
    return std::make_unique<Scene>(options_, task);
  }
  void give_back(const std::string& task, std::unique_ptr<Scene> scene) {
    const std::lock_guard lock(mutex_);
    free_[task].push_back(std::move(scene));
  }

private:
  const SceneOptions& options_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::unique_ptr<Scene>>> free_;
};

at::Tensor tensor_of(const std::vector<std::byte>& bytes) {
  auto tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

void check(const SceneOptions& options) {
  if (options.classes.size() > 10'000) {
    throw std::invalid_argument("--classes: at most 10000 are drawn");
  }
  std::set<std::string> seen;
  for (const std::string& name : options.classes) {
    if (!seen.insert(name).second) {
      throw std::invalid_argument("--classes: " + name + " is given twice");
    }
    if (!env::is_environment(name)) {
      std::string message = "--classes: \"" + name + "\" is not a task; nearest:";
      for (const std::string& other : env::nearest_names(name, env::task_names())) {
        message += " " + other;
      }
      throw std::invalid_argument(message);
    }
  }
}

} // namespace

const std::vector<std::string>& default_scene_classes() {
  static const std::vector<std::string> names = {
      "acrobot_swingup",  "ball_in_cup_catch", "cartpole_balance",  "cartpole_two_poles",
      "cheetah_run",      "dog_stand",         "finger_spin",       "fish_swim",
      "hopper_stand",     "humanoid_stand",    "lqr_lqr_6_2",       "manipulator_bring_ball",
      "pendulum_swingup", "point_mass_easy",   "quadruped_walk",    "reacher_easy",
      "stacker_stack_4",  "swimmer_swimmer6",  "swimmer_swimmer15", "walker_walk"};
  return names;
}

void render_scenes(const SceneOptions& given) {
  SceneOptions options = given;
  if (options.classes.empty()) {
    options.classes = default_scene_classes();
  }
  check(options);
  const auto layout = make_scene_layout(options);
  Scenes scenes(options);
  const auto classes = static_cast<std::int64_t>(options.classes.size());
  const std::int64_t rows = options.rows * classes;
  // Rows of all classes alternate, so that a reader that takes them in order also sees every class.
  learner::Prefetcher ahead(0, (rows + kRenderedRowsAtOnce - 1) / kRenderedRowsAtOnce,
                            [&](std::int64_t block) {
                              learner::TensorMap pictures;
                              const auto end = std::min((block + 1) * kRenderedRowsAtOnce, rows);
                              for (auto row = block * kRenderedRowsAtOnce; row < end; ++row) {
                                const auto label = static_cast<std::size_t>(row % classes);
                                auto scene = scenes.take(options.classes[label]);
                                auto rgb = scene->draw(seed_of(options, label, row / classes));
                                scenes.give_back(options.classes[label], std::move(scene));
                                pictures[std::to_string(row)] =
                                    tensor_of(layout->stored(std::move(rgb)));
                              }
                              return pictures;
                            },
                            {.threads = options.threads, .ahead = options.threads + 1});
  for (std::int64_t first = 0; first < rows; first += kRenderedRowsAtOnce) {
    const auto pictures = ahead.next();
    for (auto row = first; row < std::min(first + kRenderedRowsAtOnce, rows); ++row) {
      const auto& bytes = pictures.at(std::to_string(row));
      layout->add(static_cast<std::size_t>(row % classes), row / classes,
                  {static_cast<const std::byte*>(bytes.const_data_ptr()), bytes.nbytes()});
    }
  }
  layout->finish();
}

void add_dataset_render(CLI::App& dataset) {
  CLI::App* command = dataset.add_subcommand(
      "render", "Draws a data set: scenes of the control suite, a class for each task");
  std::string names;
  for (const std::string& name : default_scene_classes()) {
    names += (names.empty() ? "" : " ") + name;
  }
  command->footer("Example: troupe dataset render scenes --rows 500 --size 64\n"
                  "         troupe dataset render scenes --rows 100 --size 64 --split validation\n"
                  "         troupe dataset render cifar --layout cifar100 --size 32\n"
                  "States, cameras, colours and lights are random and depend only on the seed; the "
                  "splits share none. Complete output is renamed into place: <out>/train, "
                  "<out>/validation, or CIFAR's and MNIST's files in <out>.\nDefault classes: "
                  + names);
  auto options = std::make_shared<SceneOptions>();
  command->add_option("OUT", options->out, "output folder")->required();
  command->add_option("--classes", options->classes, "task names, separated by commas")
      ->delimiter(',');
  command->add_option("--rows", options->rows, "rows per class")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command->add_option("--size", options->size, "height and width, in pixels")
      ->check(CLI::Range(8, 1024))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "seed of all random choices")->capture_default_str();
  command->add_option("--split", options->split, "train, or validation with other seeds")
      ->check(CLI::IsMember({"train", "validation"}))
      ->capture_default_str();
  command
      ->add_option(
          "--layout", options->layout,
          "folder, tar, cifar10, cifar100; in grey: idx (MNIST), csv (one column per pixel)")
      ->check(CLI::IsMember({"folder", "tar", "cifar10", "cifar100", "idx", "csv"}))
      ->capture_default_str();
  command->add_option("--quality", options->quality, "JPEG quality, 1 to 100; 0: PNG")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  command->add_option("--shard-rows", options->shard_rows, "rows per tar file")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command
      ->add_option("--colours", options->colours,
                   "how far joints move, as a fraction of their range")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--lights", options->lights, "variation of brightness and position of lights")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option("--views", options->views, "how far cameras move, as a fraction of their view")
      ->check(CLI::Range(0.0, 0.5))
      ->capture_default_str();
  command->add_option("--steps", options->steps, "maximum random actions before the picture")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command->add_flag("!--no-effects", options->effects,
                    "without shadows, reflections and anti-aliasing");
  command->add_option("--threads", options->threads, "threads that draw")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--models", options->models, "folder of the suite's XML files");
  command->callback([options] {
    render_scenes(*options);
    const auto classes =
        options->classes.empty() ? default_scene_classes().size() : options->classes.size();
    std::printf("%s: %lld rows of %zu classes\n", options->out.c_str(),
                static_cast<long long>(options->rows) * static_cast<long long>(classes), classes);
  });
}

} // namespace troupe::experiments::commands
