#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "env/amx.hpp"
#include "experiments/commands/running/resumption.hpp"
#include "experiments/commands/running/run_experiment.hpp"
#include "experiments/commands/running/stored_run.hpp"
#include "experiments/python/config_mistakes.hpp"
#include "experiments/python/native.hpp"
#include "experiments/python/python_agent.hpp"
#include "experiments/python/released_lock.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "learner/nn/encoder.hpp"

namespace py = pybind11;

namespace troupe::python {
namespace {

using namespace experiments;

constexpr std::chrono::milliseconds kInterruptLook{100}; // between checks for Ctrl-C

/// Calls Python callbacks from the run's threads, one at a time. The first exception ends the run.
class Reports {
public:
  explicit Reports(py::dict callbacks) : callbacks_(std::move(callbacks)) {}

  template <typename... Values>
  void call(const char* name, const Values&... values) {
    const std::lock_guard one(mutex_); // needed in free-threaded Python, too
    const py::gil_scoped_acquire lock;
    if (failure || !callbacks_.contains(name))
      return;
    try {
      callbacks_[name](py::cast(values)...);
    } catch (...) {
      failure = std::current_exception();
      stop = true;
    }
  }

  actors::RunCallbacks callbacks() {
    return {
        .progress = [this](const actors::Progress& p) { call("progress", numbers(p)); },
        .evaluated =
            [this](const actors::Evaluated& e) {
              call("evaluated", e.environment_steps, e.updates, e.returns, e.metrics, e.final);
            },
        .log = [this](const std::string& level,
                      const std::string& text) { call("log", level, text); },
        .episode = [this](std::int64_t steps, double episode_return,
                          std::int64_t length) { call("episode", steps, episode_return, length); }};
  }

  std::atomic<bool> stop = false;
  std::exception_ptr failure; // raised by a callback; other threads read it after the run

private:
  static std::map<std::string, double> numbers(const actors::Progress& p) {
    std::map<std::string, double> out{
        {"environment_steps", static_cast<double>(p.environment_steps)},
        {"agent_steps", static_cast<double>(p.agent_steps)},
        {"episodes", static_cast<double>(p.episodes)},
        {"updates", static_cast<double>(p.updates)},
        {"replay_items", static_cast<double>(p.replay_items)},
        {"replay_bytes", static_cast<double>(p.replay_bytes)},
        {"parameter_lag", p.parameter_lag},
        {"training_seconds", p.training_seconds},
        {"processor_seconds", p.processor_seconds},
        {"environment_steps_per_second", p.environment_steps_per_second},
        {"updates_per_second", p.updates_per_second},
        {"episode_return", p.episode_return}};
    out.insert(p.learner.begin(), p.learner.end());
    return out;
  }

  std::recursive_mutex mutex_; // a callback may cause another report
  py::dict callbacks_;         // used and destroyed with the interpreter's lock
};

/// Runs on a separate thread, so that this one notices Ctrl-C, after which the run makes a
/// checkpoint and ends.
void run_and_watch(Reports& reports, const std::function<void()>& run) {
  std::exception_ptr failure;
  std::exception_ptr interrupt;
  {
    const ReleasedLock released;
    std::mutex mutex;
    std::condition_variable ended;
    bool over = false;
    std::jthread runner([&] {
      try {
        run();
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      over = true;
      ended.notify_one();
    });
    for (std::unique_lock lock(mutex);
         !ended.wait_for(lock, kInterruptLook, [&] { return over; });) {
      lock.unlock();
      if (ReleasedLock::exit_begun()) {
        reports.stop = true;
      } else {
        const py::gil_scoped_acquire interpreter;
        if (PyErr_CheckSignals() != 0) {
          interrupt = std::make_exception_ptr(py::error_already_set());
          reports.stop = true;
        }
      }
      lock.lock();
    }
  }
  for (const std::exception_ptr& first : {reports.failure, interrupt, failure})
    if (first)
      std::rethrow_exception(first);
}

std::string train(const std::string& experiment_file, const std::vector<std::string>& overrides,
                  const std::string& runs, const std::vector<std::string>& folders,
                  const py::dict& callbacks) {
  env::avoid_broken_amx();
  Reports reports(callbacks);
  std::string folder_path;
  try {
    const std::vector<std::filesystem::path> places(folders.begin(), folders.end());
    const auto file = find_config(experiment_file, places);
    const Experiment experiment = load_experiment(file, overrides);
    run_and_watch(reports, [&] {
      const auto config = commands::prepare_run(experiment);
      actors::check_run(config, false);
      const RunFolder folder = RunFolder::create(
          runs, experiment.name(), std::chrono::system_clock::now(), resolved_text(experiment));
      folder_path = folder.path().string();
      reports.call("started", folder_path);
      commands::run_experiment(
          experiment, config, folder, {},
          {.embedding = commands::Embedding{reports.stop, reports.callbacks()}});
    });
  } catch (const ConfigError& error) {
    throw_all(error);
  }
  return folder_path;
}

void resume(const std::string& run, const std::vector<std::string>& overrides,
            const py::dict& callbacks) {
  env::avoid_broken_amx();
  Reports reports(callbacks);
  try {
    check_is_run(run);
    const auto file = std::filesystem::path(run) / "config.textproto";
    const Experiment before = load_experiment(file);
    const Experiment experiment = load_experiment(file, overrides);
    commands::check_changes(before, experiment);
    run_and_watch(reports, [&] {
      const auto config = commands::prepare_run(experiment);
      actors::check_run(config, false);
      const RunFolder folder = RunFolder::open(run);
      const commands::Resumption resumption =
          commands::prepare_resumption(folder, before, experiment, config);
      reports.call("started", run);
      commands::run_experiment(
          experiment, config, folder, resumption.checkpoint,
          {.notes = resumption.notes,
           .embedding = commands::Embedding{reports.stop, reports.callbacks()}});
    });
  } catch (const ConfigError& error) {
    throw_all(error);
  }
}

std::string curve(const std::string& run) {
  try {
    check_is_run(run);
    return commands::run_curve(load_experiment(std::filesystem::path(run) / "config.textproto"),
                               run);
  } catch (const ConfigError& error) {
    throw_all(error);
  }
}

/// Returns the encoder's activation and the sizes and strides of its kernels.
std::pair<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>>
encoder(const std::string& kind, const std::string& key) {
  const learner::EncoderKind found = learner::encoder_kind(kind, key);
  std::vector<std::pair<std::int64_t, std::int64_t>> kernels;
  for (const auto& [size, stride] : found.kernels)
    kernels.emplace_back(size, stride);
  return {found.activation == learner::Activation::elu ? "elu" : "relu", kernels};
}

} // namespace

void add_training(py::module_& module) {
  module.def("add_agent", &add_python_agent, py::arg("factory"));
  module.def("encoder", &encoder, py::arg("kind"), py::arg("key"));
  module.def("train", &train, py::arg("experiment"), py::arg("overrides"), py::kw_only(),
             py::arg("runs"), py::arg("folders"), py::arg("callbacks"));
  module.def("resume", &resume, py::arg("run"), py::arg("overrides"), py::kw_only(),
             py::arg("callbacks"));
  module.def(
      "local_run",
      [](const std::string& run, const std::string& runs) {
        return commands::local_run(run, runs).string();
      },
      py::arg("run"), py::arg("runs"), py::call_guard<py::gil_scoped_release>());
  module.def("run_curve", &curve, py::arg("run"));
}

} // namespace troupe::python
