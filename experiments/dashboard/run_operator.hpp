#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::experiments::dashboard {

/// Operates one live run. Use from one thread at a time. All functions throw std::invalid_argument
/// with the reason if the run refuses, and std::runtime_error if it is gone or does not answer in
/// time.
class RunOperator {
public:
  RunOperator() = default;
  RunOperator(const RunOperator&) = delete;
  RunOperator& operator=(const RunOperator&) = delete;
  virtual ~RunOperator() = default;

  /// The names of the functions below that the run offers, as of the last status(): "stop",
  /// "scale", "restart", "checkpoint", "pause", "timeline", "limit", "picture".
  virtual std::vector<std::string> actions() const = 0;

  /// The output of `troupe status --json`; "" if it would add nothing to the run's folder.
  virtual std::string status() = 0;

  /// These functions return a sentence that says what was done.
  virtual std::string stop() = 0;
  virtual std::string scale(const std::string& role, int count) = 0;
  virtual std::string restart(const std::string& role, const std::string& node) = 0;
  virtual std::string checkpoint() = 0;
  virtual std::string pause(bool paused) = 0; // false: resume training
  virtual std::string timeline(std::int64_t updates) = 0;
  virtual std::string limit(double samples_per_insert, double error_buffer) = 0;

  /// A JPEG of the current state of one of an actor's environments or, with `observed`, of what its
  /// agent sees.
  struct Picture {
    std::string jpeg = {};
    bool observed = false;
    std::int64_t agent_steps = 0;
    int environments = 0; // number of the actor's environments
  };
  virtual Picture picture(int actor, int environment, bool observed) = 0;
};

/// Connects to a live run. Throws std::invalid_argument with the reason if it cannot be operated.
using Connect = std::function<std::unique_ptr<RunOperator>(const std::filesystem::path& run)>;

} // namespace troupe::experiments::dashboard
