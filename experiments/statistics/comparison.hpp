#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/report/curve.hpp"
#include "experiments/statistics/statistics.hpp"

namespace troupe::experiments {

/// A run that is compared.
struct ComparedRun {
  std::filesystem::path folder;
  std::string method;
  std::string task;
  std::uint64_t seed = 0;
  std::vector<CurvePoint> curve; // its evaluations, at least one
  double final_score = 0;        // of the last evaluation
};

/// Published or agreed scores of a task, by who reached them. "low" and "high" set its scale.
using References = std::map<std::string, std::map<std::string, double>>;

/// The runs below folders: "folder" or "method=folder", a run's own, a sweep's or one above them.
/// Without a method its name is the agent's. A run without an evaluation is named in `without`.
/// Throws std::invalid_argument naming a folder without runs, a run on data, or a damaged file.
std::vector<ComparedRun> find_compared(const std::vector<std::string>& places,
                                       std::vector<std::string>& without);

/// Reads "task,name,score" lines, with this head. Throws std::invalid_argument naming file and
/// line.
References read_references(const std::filesystem::path& csv);

/// Runs by method and task, their scores between a task's low (0) and high (1).
class Comparison {
public:
  static constexpr int kRepetitions = 2000; // of every bootstrap

  /// `runs`: at least one. A task's scale is that of the references, 0 to 1000 of the control
  /// suite, else from the least to the greatest final score.
  Comparison(std::vector<ComparedRun> runs, References references);

  const std::vector<ComparedRun>& runs() const { return runs_; }
  const std::vector<std::string>& methods() const { return methods_; }
  const std::vector<std::string>& tasks() const { return tasks_; }
  const References& references() const { return references_; }
  /// "0 to 1000", for a reader.
  std::string scale_text(const std::string& task) const;

  /// Final scores as they are; empty: there is no such run.
  std::vector<double> finals(const std::string& method, const std::string& task) const;
  /// On all tasks that the method has, on the scale from 0 to 1.
  Scores scores(const std::string& method) const;
  Estimate estimate(const std::string& method, double (*statistic)(const Scores&)) const;
  /// Of the mean final score on a task, as it is.
  Estimate task_mean(const std::string& method, const std::string& task) const;
  /// On the tasks that both have; NaN if they have none.
  Estimate improvement(const std::string& method, const std::string& other) const;

  /// The mean of a method's runs on a task over environment steps, with its bootstrap interval, at
  /// most 200 points; up to the steps that all of them reached.
  std::vector<CurvePoint> mean_curve(const std::string& method, const std::string& task) const;

private:
  double scaled(const std::string& task, double score) const;

  std::vector<ComparedRun> runs_;
  std::vector<std::string> methods_, tasks_;
  References references_;
  std::map<std::string, Interval> scales_;
};

} // namespace troupe::experiments
