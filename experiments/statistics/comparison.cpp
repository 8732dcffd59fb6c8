#include "experiments/statistics/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "env/suite/task_names.hpp"
#include "env/text/number_in.hpp"
#include "experiments/config/agent_choice.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/on_data.hpp"
#include "experiments/run_folder/metrics_file.hpp"
#include "experiments/sweeps/sweep.hpp"

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 4; // levels of folders searched below the given one
constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kCurvePoints = 200;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr Estimate kNoEstimate{kNan, {kNan, kNan}};

/// Finds folders with a config.textproto, sorted. Adds a line to `left_out` for each that a later
/// attempt of the same run in a sweep has replaced.
void find_runs(const fs::path& folder, int depth, std::vector<fs::path>& found,
               std::vector<std::string>& left_out) {
  std::error_code ignored;
  if (fs::exists(folder / "config.textproto", ignored)) {
    found.push_back(folder);
    return;
  }
  std::vector<fs::path> inside;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored))
      inside.push_back(entry.path());
  std::sort(inside.begin(), inside.end());
  const fs::path latest = has_attempts(folder) ? latest_run(folder) : fs::path();
  for (const fs::path& one : inside)
    if (latest.empty() || one == latest) {
      if (depth > 0)
        find_runs(one, depth - 1, found, left_out);
    } else if (fs::exists(one / "config.textproto", ignored)) {
      left_out.push_back(one.string() + ": is left out; a later attempt is " + latest.string());
    }
}

/// The value of a curve at a step within it, interpolated between its points.
double value_at(const std::vector<CurvePoint>& curve, double step) {
  const auto behind = std::find_if(curve.begin(), curve.end(), [&](const CurvePoint& point) {
    return point.environment_steps >= step;
  });
  if (behind == curve.begin())
    return behind->value;
  const CurvePoint& before = *(behind - 1);
  const double part =
      (step - before.environment_steps) / (behind->environment_steps - before.environment_steps);
  return before.value + part * (behind->value - before.value);
}

template <class T>
void add_once(std::vector<T>& to, const T& value) {
  if (std::find(to.begin(), to.end(), value) == to.end())
    to.push_back(value);
}

std::optional<double> finite_number(const std::string& text) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return env::number_in<double>(text, -kMost, kMost);
}

/// The environment steps that all runs on a task have reached. Runs on recordings do not count.
std::map<std::string, double> reached_steps(const std::vector<ComparedRun>& runs) {
  std::map<std::string, double> steps;
  for (const ComparedRun& run : runs) {
    if (run.unit == "updates")
      continue;
    const double last = run.curve.back().environment_steps;
    const auto at = steps.try_emplace(run.task, last).first;
    at->second = std::min(at->second, last);
  }
  return steps;
}

References read_published(const fs::path& csv, const std::vector<std::vector<std::string>>& records,
                          const std::vector<ComparedRun>& runs) {
  const auto reached = reached_steps(runs);
  const auto& head = records[0];
  References made;
  for (std::size_t i = 1; i < records.size(); ++i) {
    const auto& record = records[i];
    const auto refuse = [&](const std::string& what) {
      throw std::invalid_argument(csv.string() + ":" + std::to_string(i + 1) + ": " + what);
    };
    if (record.size() != head.size())
      refuse("has " + std::to_string(record.size()) + " fields and the first line "
             + std::to_string(head.size()));
    const auto task = reached.find(record[1]);
    double most = 0;
    double score = 0;
    std::string steps_text; // as in the header
    for (std::size_t column = 3; column < head.size(); ++column) {
      if (!head[column].starts_with("at_") || record[column].empty())
        continue;
      const auto steps = finite_number(head[column].substr(3));
      const auto value = finite_number(record[column]);
      if (!steps || !value)
        refuse("column " + head[column] + " is \"" + record[column]
               + "\"; it must be a number, and its name at_<environment steps>");
      if (task != reached.end() && *steps > most && *steps <= task->second) {
        most = *steps;
        score = *value;
        steps_text = head[column].substr(3);
      }
    }
    if (most > 0)
      made[record[1]][record[0] + " at " + steps_text] = score;
  }
  return made;
}

} // namespace

std::vector<ComparedRun> find_compared(const std::vector<std::string>& places,
                                       std::vector<std::string>& left_out) {
  std::vector<ComparedRun> made;
  for (const std::string& place : places) {
    const auto equals = place.find('=');
    const bool named = equals != std::string::npos && !fs::exists(place);
    const fs::path folder = named ? place.substr(equals + 1) : place;
    std::vector<fs::path> found;
    find_runs(folder, kDeepest, found, left_out);
    if (found.empty())
      throw std::invalid_argument(folder.string()
                                  + ": no run in it or below; name folders of "
                                    "runs, or method=folder");
    for (const fs::path& run : found) {
      const Experiment experiment = load_experiment(run / "config.textproto");
      if (is_on_data(experiment))
        throw std::invalid_argument(run.string()
                                    + ": a run on data has no returns to compare; "
                                      "leave it out");
      ComparedRun one{.folder = run,
                      .method =
                          named ? place.substr(0, equals) : chosen_agent(experiment).kind->name,
                      .task = experiment.environment().task(),
                      .seed = experiment.seed(),
                      .unit = plays(experiment) ? "environment steps" : "updates",
                      .curve = {}};
      try {
        one.curve = read_curve(run / "metrics.csv", "evaluation_return",
                               plays(experiment) ? "environment_steps" : "updates");
      } catch (const std::runtime_error& error) {
        throw std::invalid_argument(error.what());
      }
      if (one.curve.empty()) {
        left_out.push_back(run.string() + ": has no evaluation yet and is left out");
        continue;
      }
      one.final_score = one.curve.back().value;
      made.push_back(std::move(one));
    }
  }
  if (made.empty())
    throw std::invalid_argument("none of the runs has an evaluation yet; evaluation.period says "
                                "how often there is one");
  return made;
}

References read_references(const fs::path& csv, const std::vector<ComparedRun>& runs) {
  const auto records = read_csv(read_config_file(csv));
  const auto begins_with = [&](const std::vector<std::string>& names) {
    return !records.empty() && records[0].size() >= names.size()
           && std::equal(names.begin(), names.end(), records[0].begin());
  };
  if (begins_with({"method", "task", "seeds"}))
    return read_published(csv, records, runs);
  if (!begins_with({"task", "name", "score"}) || records[0].size() != 3)
    throw std::invalid_argument(csv.string()
                                + ":1: the first line must be task,name,score, or begin with "
                                  "method,task,seeds as in configs/published");
  References made;
  for (std::size_t i = 1; i < records.size(); ++i) {
    const auto& record = records[i];
    const auto score = record.size() == 3 ? finite_number(record[2]) : std::nullopt;
    if (!score)
      throw std::invalid_argument(csv.string() + ":" + std::to_string(i + 1)
                                  + ": must be a task, a name and a number");
    made[record[0]][record[1]] = *score;
  }
  return made;
}

Comparison::Comparison(std::vector<ComparedRun> runs, References references)
    : runs_(std::move(runs)), references_(std::move(references)) {
  const auto suite = env::task_names();
  for (const ComparedRun& run : runs_) {
    add_once(methods_, run.method);
    add_once(tasks_, run.task);
  }
  std::sort(tasks_.begin(), tasks_.end());
  std::copy_if(tasks_.begin(), tasks_.end(), std::back_inserter(left_out_tasks_),
               [&](const std::string& task) {
                 return std::any_of(
                     methods_.begin(), methods_.end(),
                     [&](const std::string& method) { return finals(method, task).empty(); });
               });
  for (const std::string& task : tasks_) {
    Interval scale{std::numeric_limits<double>::infinity(),
                   -std::numeric_limits<double>::infinity()};
    for (const ComparedRun& run : runs_)
      if (run.task == task)
        scale = {std::min(scale.low, run.final_score), std::max(scale.high, run.final_score)};
    if (std::find(suite.begin(), suite.end(), task) != suite.end())
      scale = {0, 1000};
    const auto& known = references_[task];
    if (known.contains("low"))
      scale.low = known.at("low");
    if (known.contains("high"))
      scale.high = known.at("high");
    if (!(scale.high > scale.low))
      scale.high = scale.low + 1;
    scales_[task] = scale;
  }
}

std::string Comparison::scale_text(const std::string& task) const {
  std::ostringstream text;
  text << scales_.at(task).low << " to " << scales_.at(task).high;
  return text.str();
}

double Comparison::scaled(const std::string& task, double score) const {
  const Interval& scale = scales_.at(task);
  return (score - scale.low) / (scale.high - scale.low);
}

std::vector<double> Comparison::finals(const std::string& method, const std::string& task) const {
  std::vector<double> made;
  for (const ComparedRun& run : runs_)
    if (run.method == method && run.task == task)
      made.push_back(run.final_score);
  return made;
}

Scores Comparison::scores(const std::string& method) const {
  Scores made;
  for (const std::string& task : tasks_) {
    if (std::binary_search(left_out_tasks_.begin(), left_out_tasks_.end(), task))
      continue;
    std::vector<double> values = finals(method, task);
    for (double& value : values)
      value = scaled(task, value);
    made.push_back(std::move(values));
  }
  return made;
}

Estimate Comparison::estimate(const std::string& method, double (*statistic)(const Scores&)) const {
  const Scores all = scores(method);
  if (all.empty())
    return kNoEstimate;
  return {statistic(all), bootstrap(all, statistic, kRepetitions, kSeed)};
}

Estimate Comparison::task_mean(const std::string& method, const std::string& task) const {
  const Scores one = {finals(method, task)};
  return {mean_score(one), bootstrap(one, mean_score, kRepetitions, kSeed)};
}

Estimate Comparison::improvement(const std::string& method, const std::string& other) const {
  Scores x, y;
  for (const std::string& task : tasks_) {
    const auto ours = finals(method, task);
    const auto theirs = finals(other, task);
    if (ours.empty() || theirs.empty())
      continue;
    x.push_back(ours);
    y.push_back(theirs);
  }
  if (x.empty())
    return kNoEstimate;
  return {probability_of_improvement(x, y),
          bootstrap(x, y, probability_of_improvement, kRepetitions, kSeed)};
}

std::vector<CurvePoint> Comparison::mean_curve(const std::string& method, const std::string& task,
                                               const std::string& unit) const {
  std::vector<const ComparedRun*> chosen;
  double first = -std::numeric_limits<double>::infinity();
  double last = std::numeric_limits<double>::infinity();
  std::vector<double> steps;
  for (const ComparedRun& run : runs_)
    if (run.method == method && run.task == task && run.unit == unit) {
      chosen.push_back(&run);
      first = std::max(first, run.curve.front().environment_steps);
      last = std::min(last, run.curve.back().environment_steps);
      for (const CurvePoint& point : run.curve)
        steps.push_back(point.environment_steps);
    }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  std::erase_if(steps, [&](double step) { return step < first || step > last; });
  std::vector<CurvePoint> made;
  const std::size_t every = (steps.size() + kCurvePoints - 1) / kCurvePoints;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i % every != 0 && i + 1 != steps.size())
      continue;
    Scores values(1);
    for (const ComparedRun* run : chosen)
      values[0].push_back(value_at(run->curve, steps[i]));
    const double mean = mean_score(values);
    const Interval interval = chosen.size() < 2
                                  ? Interval{mean, mean}
                                  : bootstrap(values, mean_score, kRepetitions / 10, kSeed);
    made.push_back({steps[i], mean, interval.low, interval.high});
  }
  return made;
}

} // namespace troupe::experiments
