#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::experiments::dashboard {

/// What operates one live run. One thread at a time. Everything throws std::invalid_argument with
/// the reason if the run refuses, std::runtime_error if it is gone or late.
class RunOperator {
public:
  RunOperator() = default;
  RunOperator(const RunOperator&) = delete;
  RunOperator& operator=(const RunOperator&) = delete;
  virtual ~RunOperator() = default;

  /// The names of the functions below that it can do: "stop", "scale", "restart", "checkpoint",
  /// "pause", "timeline", "limit", "picture"; those of the last status().
  virtual std::vector<std::string> actions() const = 0;

  /// As `troupe status --json`; "" if there is no more than what the run's folder says.
  virtual std::string status() = 0;

  /// These give what was done, in a sentence.
  virtual std::string stop() = 0;
  virtual std::string scale(const std::string& role, int count) = 0;
  virtual std::string restart(const std::string& role, const std::string& node) = 0;
  virtual std::string checkpoint() = 0;
  virtual std::string pause(bool paused) = 0; // false: train on
  virtual std::string timeline(std::int64_t updates) = 0;
  virtual std::string limit(double samples_per_insert, double error_buffer) = 0;

  /// JPEG of what an environment of an actor looks like now, or, if `observed`, of what its agent
  /// sees.
  struct Picture {
    std::string jpeg = {};
    bool observed = false;
    std::int64_t agent_steps = 0;
    int environments = 0; // of the actor
  };
  virtual Picture picture(int actor, int environment, bool observed) = 0;
};

/// Connects to a live run. Throws std::invalid_argument with the reason if it cannot be operated.
using Connect = std::function<std::unique_ptr<RunOperator>(const std::filesystem::path& run)>;

} // namespace troupe::experiments::dashboard
