#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "env/npz.hpp"
#include "env/suite/suite_environment.hpp"

namespace troupe::env {

/// An array of a recording, as rows of doubles.
struct RecordedTable {
  std::vector<double> values;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::span<const double> row(std::size_t i) const {
    return std::span(values).subspan(i * columns, columns);
  }
};

using RecordedArrays = std::map<std::string, NpyArray>;

/// Throws std::runtime_error naming `source` if the array is missing or if its size is not a
/// multiple of `columns`.
RecordedTable recorded_table(const RecordedArrays& arrays, const std::string& name,
                             std::size_t columns, const std::string& source);

/// The recording of one task and our simulation of it. Throws std::runtime_error if the recording
/// does not fit our model.
class GoldenReplay {
public:
  GoldenReplay(const std::string& folder, const std::string& task, const std::string& models);

  Physics& physics() const { return physics_; }
  const EnvironmentSpec& spec() const { return environment_.spec(); }
  std::span<const double> observation() const { return observation_; } // the present one
  RecordedTable get(const std::string& name, std::size_t columns) const {
    return recorded_table(arrays_, name, columns, source_);
  }

  /// Restores the recorded state after reset: model, options and data.
  void begin();
  TimeStep step(std::span<const double> action);

  /// Restores the model of the episode in which the probes were taken.
  void begin_probes();
  /// Sets one random state and returns its reward. The state of the actuators is recorded only in
  /// `observation`, for tasks that observe it.
  double probe(std::span<const double> qpos, std::span<const double> qvel,
               std::span<const double> ctrl, std::span<const double> observation);

private:
  void set_data(double* values, std::size_t count, const std::string& name);
  void set_model(const std::string& prefix);
  void set_model_array(const std::string& field, const std::string& name, const NpyArray& array);
  void begin_episode(const std::string& model_prefix);
  bool has_any(const std::string& prefix) const;

  std::string folder_;
  std::string task_;
  std::string source_; // path of the recording
  RecordedArrays arrays_;
  SuiteEnvironment environment_;
  Physics& physics_;
  std::vector<double> observation_;
};

} // namespace troupe::env
