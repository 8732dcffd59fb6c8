#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <google/protobuf/util/message_differencer.h>
#include <nlohmann/json.hpp>

#include "experiments/config/config.hpp"
#include "experiments/config/on_data.hpp"
#include "experiments/report/curve.hpp"
#include "experiments/report/text_table.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "experiments/sweeps/sweep.hpp"

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Kind = RunState::Kind;

const char* kind_text(Kind kind) {
  switch (kind) {
  case Kind::waiting:
    return "waiting";
  case Kind::begun:
    return "begun";
  case Kind::done:
    return "done";
  case Kind::failed:
    return "failed";
  }
  return "";
}

/// The first difference, "replay.n_step: 5 -> 3"; empty if there is none.
std::string difference(const Experiment& there, const Experiment& here) {
  google::protobuf::util::MessageDifferencer differencer;
  std::string text;
  differencer.ReportDifferencesToString(&text);
  if (differencer.Compare(there, here)) {
    return "";
  }
  return text.substr(0, text.find('\n'));
}

struct Group {
  std::string name;
  std::size_t runs = 0;
  std::vector<double> values = {}; // of finished runs
  std::optional<double> goal = {};
  std::string headline = {};
  bool less_is_better = false;
};

std::vector<Group> groups_of(const std::vector<SweepRun>& runs,
                             const std::vector<RunState>& states) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (groups.empty() || groups.back().name != runs[i].group) {
      groups.push_back({.name = runs[i].group,
                        .goal = runs[i].goal,
                        .headline = headline(runs[i].experiment),
                        .less_is_better = runs[i].experiment.has_sngan()});
    }
    ++groups.back().runs;
    if (states[i].kind == Kind::done) {
      groups.back().values.push_back(states[i].value);
    }
  }
  return groups;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  if (values.size() < 2) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) {
    sum += (value - mean) * (value - mean);
  }
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

/// The cells of the table, header first.
std::vector<TextRow> cells(const std::vector<SweepRun>& runs, const std::vector<RunState>& states) {
  std::vector<TextRow> rows = {
      {"experiment", "runs", "measure", "mean", "deviation", "least", "greatest", "goal"}};
  for (const Group& group : groups_of(runs, states)) {
    const auto& values = group.values;
    TextRow row = {group.name, std::to_string(values.size()) + " of " + std::to_string(group.runs),
                   group.headline};
    if (values.empty()) {
      row.insert(row.end(), {"-", "-", "-", "-"});
    } else {
      const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
      row.insert(row.end(),
                 {shown_number(mean_of(values), "%.5g"), shown_number(deviation_of(values), "%.5g"),
                  shown_number(*least, "%.5g"), shown_number(*greatest, "%.5g")});
    }
    std::string goal;
    if (group.goal) {
      goal = shown_number(*group.goal, "%.5g");
      if (!values.empty()) {
        const double mean = mean_of(values);
        const bool reached = group.less_is_better ? mean <= *group.goal : mean >= *group.goal;
        goal += reached ? " reached" : " missed";
      }
    }
    row.push_back(goal);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<CurvePoint> curve_of(const SweepRun& run, const RunState& state) {
  if (state.folder.empty()) {
    return {};
  }
  const std::string along = plays(run.experiment) ? "environment_steps" : "updates";
  return read_curve(state.folder / "metrics.csv", headline(run.experiment), along);
}

} // namespace

bool read_result(const std::string& text, const Experiment& experiment, RunState& state) try {
  const Json result = Json::parse(text);
  if (result.at("interrupted").get<bool>()) {
    return false;
  }
  const auto returns = result.at("returns").get<std::vector<double>>();
  const double none = std::numeric_limits<double>::quiet_NaN();
  const Json& metrics = result.at("metrics");
  state.value = is_on_data(experiment) ? metrics.value(headline(experiment), none)
                : returns.empty()      ? none
                                       : mean_of(returns);
  state.environment_steps = result.at("environment_steps").get<std::int64_t>();
  state.updates = result.at("updates").get<std::int64_t>();
  state.training_seconds = result.at("training_seconds").get<double>();
  state.kind = Kind::done;
  return true;
} catch (const Json::exception&) { // not JSON, or a key of another type
  return false;
}

fs::path latest_run(const fs::path& folder) {
  const auto runs = runs_in(folder);
  return runs.empty() ? fs::path() : runs.back();
}

bool has_attempts(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / ".." / ".." / "sweep.csv", ignored);
}

RunState find_state(const fs::path& part, const SweepRun& run) {
  RunState state;
  state.folder = latest_run(part / run.experiment.name());
  if (state.folder.empty()) {
    return state;
  }
  state.kind = Kind::begun;
  const fs::path config = state.folder / "config.textproto";
  const std::string other = difference(load_experiment(config), run.experiment);
  if (!other.empty()) {
    throw ConfigError({config.string() + ": the run there was started with other values (" + other
                       + "); give the sweep another --name, or remove " + part.string()});
  }
  const fs::path result = part / "result.json";
  std::error_code ignored;
  if (fs::exists(result, ignored)
      && !read_result(read_config_file(result), run.experiment, state)) {
    throw std::runtime_error(result.string()
                             + ": is not the result of a run; remove it to run again");
  }
  return state;
}

std::string sweep_table(const std::vector<SweepRun>& runs, const std::vector<RunState>& states) {
  return text_table(cells(runs, states), 3, 7); // numbers are aligned to the right
}

std::string sweep_csv(const std::vector<SweepRun>& runs, const std::vector<RunState>& states) {
  std::string out = "run,group,seed,state,headline,value,environment_steps,updates,"
                    "training_seconds\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunState& state = states[i];
    char numbers[128] = ",,,";
    if (state.kind == Kind::done) {
      std::snprintf(numbers, sizeof numbers, "%.6g,%lld,%lld,%.1f", state.value,
                    static_cast<long long>(state.environment_steps),
                    static_cast<long long>(state.updates), state.training_seconds);
    }
    out += runs[i].name + ',' + runs[i].group + ',' + std::to_string(runs[i].experiment.seed())
           + ',' + kind_text(state.kind) + ',' + headline(runs[i].experiment) + ',' + numbers
           + '\n';
  }
  return out;
}

std::string sweep_curves(const std::vector<SweepRun>& runs, const std::vector<RunState>& states) {
  std::string out = "run,steps,value,minimum,maximum\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const CurvePoint& point : curve_of(runs[i], states[i])) {
      char numbers[160];
      std::snprintf(numbers, sizeof numbers, ",%.0f,%.6g,%.6g,%.6g\n", point.environment_steps,
                    point.value, point.minimum, point.maximum);
      out += runs[i].name + numbers;
    }
  }
  return out;
}

std::string sweep_page(const std::string& name, const std::vector<SweepRun>& runs,
                       const std::vector<RunState>& states) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>"
                    + escaped(name)
                    + "</title>\n<style>body{font-family:sans-serif;max-width:72em;margin:2em auto;"
                      "padding:0 1em}td,th{padding:.2em 1em .2em 0;text-align:left}svg{width:48%;"
                      "height:auto}</style></head><body>\n<h1>"
                    + escaped(name) + "</h1>\n<table>\n";
  for (const auto& row : cells(runs, states)) {
    out += "<tr>";
    for (const std::string& cell : row) {
      out += "<td>" + escaped(cell) + "</td>";
    }
    out += "</tr>\n";
  }
  out += "</table>\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto curve = curve_of(runs[i], states[i]);
    if (!curve.empty()) {
      out += curve_svg(curve, runs[i].name,
                       plays(runs[i].experiment) ? "environment steps" : "updates");
    }
    if (!states[i].failure.empty()) {
      out += "<p>" + escaped(runs[i].name + ": " + states[i].failure) + "</p>\n";
    }
  }
  return out + "</body></html>\n";
}

} // namespace troupe::experiments
