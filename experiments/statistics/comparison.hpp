#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/report/curve.hpp"
#include "experiments/statistics/statistics.hpp"

namespace troupe::experiments {

/// A run in a comparison.
struct ComparedRun {
  std::filesystem::path folder;
  std::string method;
  std::string task;
  std::uint64_t seed = 0;
  std::string unit = "environment steps"; // of the curve; "updates" if no environment was played
  std::vector<CurvePoint> curve;          // its evaluations, at least one
  double final_score = 0;                 // of the last evaluation
};

/// Published or agreed scores by task and by name of their source. "low" and "high" define the
/// task's scale.
using References = std::map<std::string, std::map<std::string, double>>;

/// Finds the runs below folders, each given as "folder" or "method=folder": a run's folder, a
/// sweep's, or one above them. The default method name is the agent's. Adds a line to `left_out`
/// for each run without an evaluation, and for each earlier attempt of a sweep's run. Throws
/// std::invalid_argument naming a folder without runs, a run on data, or a damaged file.
std::vector<ComparedRun> find_compared(const std::vector<std::string>& places,
                                       std::vector<std::string>& left_out);

/// Reads a CSV file with the header "task,name,score", or a table as in configs/published, whose
/// header begins with "method,task,seeds" and has columns "at_<environment steps>". Of such a
/// table, a method's score on a task is the one after the most steps that all `runs` on the task
/// have reached (runs on recordings do not count); its name is "<method> at <steps>". Throws
/// std::invalid_argument naming file and line.
References read_references(const std::filesystem::path& csv, const std::vector<ComparedRun>& runs);

/// Runs by method and task. Scores are scaled to 0 at a task's low and 1 at its high.
class Comparison {
public:
  static constexpr int kRepetitions = 2000; // of each bootstrap

  /// `runs`: at least one. A task's scale comes from the references; without them it is 0 to 1000
  /// for the control suite, otherwise the range of the final scores.
  Comparison(std::vector<ComparedRun> runs, References references);

  const std::vector<ComparedRun>& runs() const { return runs_; }
  const std::vector<std::string>& methods() const { return methods_; }
  const std::vector<std::string>& tasks() const { return tasks_; }
  /// The tasks that not all methods have. Methods are aggregated over the others.
  const std::vector<std::string>& left_out_tasks() const { return left_out_tasks_; }
  const References& references() const { return references_; }
  /// The scale as text for a reader, "0 to 1000".
  std::string scale_text(const std::string& task) const;

  /// Unscaled final scores; empty if there is no such run.
  std::vector<double> finals(const std::string& method, const std::string& task) const;
  /// Scaled final scores on the tasks that all methods have.
  Scores scores(const std::string& method) const;
  /// NaN if the methods have no task in common.
  Estimate estimate(const std::string& method, double (*statistic)(const Scores&)) const;
  /// The mean final score on a task, unscaled.
  Estimate task_mean(const std::string& method, const std::string& task) const;
  /// The probability of improvement on the tasks that both methods have; NaN if there are none.
  Estimate improvement(const std::string& method, const std::string& other) const;

  /// The mean of a method's runs on a task whose curves have this unit, with its bootstrap
  /// interval, which is the mean itself for one run. It has at most 200 points, and covers the
  /// steps that the evaluations of all these runs cover. Empty if there are none.
  std::vector<CurvePoint> mean_curve(const std::string& method, const std::string& task,
                                     const std::string& unit = "environment steps") const;

private:
  double scaled(const std::string& task, double score) const;

  std::vector<ComparedRun> runs_;
  std::vector<std::string> methods_, tasks_, left_out_tasks_;
  References references_;
  std::map<std::string, Interval> scales_;
};

} // namespace troupe::experiments
