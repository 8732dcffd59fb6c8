#include "experiments/statistics/comparison_page.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include <openssl/evp.h>

#include "env/text/joined.hpp"
#include "experiments/config/config.hpp"
#include "experiments/report/text_table.hpp"
#include "experiments/run_folder/origin.hpp"

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;
using Row = TextRow;

constexpr std::uintmax_t kMostVideoBytes = 8 << 20; // larger videos are not embedded
constexpr int kProfilePoints = 101;

std::string text_of(const Estimate& estimate, const char* format) {
  if (!std::isfinite(estimate.interval.low))
    return shown_number(estimate.value, format);
  return shown_number(estimate.value, format) + " [" + shown_number(estimate.interval.low, format)
         + ", " + shown_number(estimate.interval.high, format) + "]";
}

double gap_to_one(const Scores& scores) {
  return optimality_gap(scores, 1);
}

std::vector<Row> aggregate_rows(const Comparison& comparison) {
  std::vector<Row> rows = {
      {"method", "tasks", "runs", "interquartile mean", "mean", "median", "optimality gap"}};
  const std::size_t known = comparison.tasks().size();
  const std::size_t left_out = comparison.left_out_tasks().size();
  const std::string tasks =
      std::to_string(known - left_out) + (left_out == 0 ? "" : " of " + std::to_string(known));
  for (const std::string& method : comparison.methods()) {
    std::size_t runs = 0;
    for (const auto& task : comparison.scores(method))
      runs += task.size();
    rows.push_back({method, tasks, std::to_string(runs),
                    text_of(comparison.estimate(method, interquartile_mean), "%.3f"),
                    text_of(comparison.estimate(method, mean_score), "%.3f"),
                    text_of(comparison.estimate(method, median_score), "%.3f"),
                    text_of(comparison.estimate(method, gap_to_one), "%.3f")});
  }
  return rows;
}

std::string aggregate_caption(const Comparison& comparison) {
  if (comparison.left_out_tasks().empty())
    return "All tasks, on their scales from 0 to 1";
  return "Tasks that all methods have, on their scales from 0 to 1; without "
         + env::joined(comparison.left_out_tasks(), " and ");
}

std::vector<Row> task_rows(const Comparison& comparison) {
  std::set<std::string> published;
  for (const auto& [task, names] : comparison.references())
    for (const auto& [name, score] : names)
      if (name != "low" && name != "high")
        published.insert(name);
  std::vector<Row> rows = {{"task", "scale"}};
  rows[0].insert(rows[0].end(), comparison.methods().begin(), comparison.methods().end());
  rows[0].insert(rows[0].end(), published.begin(), published.end());
  for (const std::string& task : comparison.tasks()) {
    Row row = {task, comparison.scale_text(task)};
    for (const std::string& method : comparison.methods()) {
      const std::size_t runs = comparison.finals(method, task).size();
      row.push_back(runs == 0 ? "-"
                              : text_of(comparison.task_mean(method, task), "%.1f") + ", "
                                    + std::to_string(runs) + (runs == 1 ? " run" : " runs"));
    }
    const auto known = comparison.references().find(task);
    for (const std::string& name : published) {
      const bool has = known != comparison.references().end() && known->second.contains(name);
      row.push_back(has ? shown_number(known->second.at(name)) : "-");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> improvement_rows(const Comparison& comparison) {
  std::vector<Row> rows = {{"better than"}};
  const auto& methods = comparison.methods();
  rows[0].insert(rows[0].end(), methods.begin(), methods.end());
  for (const std::string& method : methods) {
    Row row = {method};
    for (const std::string& other : methods)
      row.push_back(method == other ? "" : text_of(comparison.improvement(method, other), "%.2f"));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string markdown(const std::vector<Row>& rows) {
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out += "|";
    for (std::string cell : rows[i]) {
      for (std::size_t at = cell.find('|'); at != std::string::npos; at = cell.find('|', at + 2))
        cell.insert(at, "\\");
      out += " " + cell + " |";
    }
    out += "\n";
    if (i == 0) {
      out += "|";
      for (std::size_t k = 0; k < rows[0].size(); ++k)
        out += " --- |";
      out += "\n";
    }
  }
  return out;
}

std::string latex_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\textbackslash{}";
    else if (c == '~' || c == '^')
      out += std::string("\\") + c + "{}";
    else
      out += (std::string("_%&#${}").find(c) != std::string::npos ? "\\" : "") + std::string(1, c);
  }
  return out;
}

std::string latex(const std::vector<Row>& rows) {
  std::string out = "\\begin{tabular}{l" + std::string(rows[0].size() - 1, 'r') + "}\n\\toprule\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < rows[i].size(); ++k)
      out += (k == 0 ? "" : " & ") + latex_text(rows[i][k]);
    out += i == 0 ? " \\\\\n\\midrule\n" : " \\\\\n";
  }
  return out + "\\bottomrule\n\\end{tabular}\n";
}

std::string html(const std::vector<Row>& rows, const std::string& caption) {
  std::string out = "<table tabindex=\"0\"><caption>" + escaped(caption) + "</caption>\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out += "<tr>";
    for (std::size_t k = 0; k < rows[i].size(); ++k) {
      const std::string tag = i == 0 ? "th scope=\"col\"" : k == 0 ? "th scope=\"row\"" : "td";
      out += "<" + tag + ">" + escaped(rows[i][k]) + "</" + tag.substr(0, 2) + ">";
    }
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::string profiles(const Comparison& comparison) {
  if (comparison.left_out_tasks() == comparison.tasks())
    return {};
  std::vector<double> thresholds;
  for (int i = 0; i < kProfilePoints; ++i)
    thresholds.push_back(i / static_cast<double>(kProfilePoints - 1));
  std::vector<CurveLine> lines;
  for (const std::string& method : comparison.methods()) {
    CurveLine line{method, {}};
    const auto profile = performance_profile(comparison.scores(method), thresholds);
    for (std::size_t i = 0; i < thresholds.size(); ++i)
      line.points.push_back({thresholds[i], profile[i], profile[i], profile[i]});
    lines.push_back(std::move(line));
  }
  return curves_svg(lines, "performance profiles: fraction of runs with a higher score",
                    "score on the task's scale");
}

std::string base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  text.resize(static_cast<std::size_t>(EVP_EncodeBlock(
      reinterpret_cast<unsigned char*>(text.data()),
      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()))));
  return text;
}

/// The newest video of a run, embedded in the page; empty if none is small enough.
std::string video(const ComparedRun& run) {
  std::error_code ignored;
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(run.folder / "videos", ignored))
    if (entry.path().extension() == ".mp4"
        && (newest.empty()
            || entry.last_write_time(ignored) > fs::last_write_time(newest, ignored)))
      newest = entry.path();
  if (newest.empty() || fs::file_size(newest, ignored) > kMostVideoBytes)
    return {};
  std::ifstream in(newest, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return "<video controls src=\"data:video/mp4;base64," + base64(bytes.str()) + "\"></video>\n";
}

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.insert(line);
  return lines;
}

/// For each task, the video and the configuration of the method's first run.
std::string method_part(const Comparison& comparison, const std::string& method) {
  std::string out;
  std::set<std::string> shown;
  for (const ComparedRun& run : comparison.runs()) {
    if (run.method != method || !shown.insert(run.task).second)
      continue;
    const std::string text = resolved_text(load_experiment(run.folder / "config.textproto"));
    const auto first =
        std::find_if(comparison.runs().begin(), comparison.runs().end(),
                     [&](const ComparedRun& other) { return other.task == run.task; });
    const auto known = lines_of(resolved_text(load_experiment(first->folder / "config.textproto")));
    std::string marked;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
      marked +=
          known.contains(line) ? escaped(line) + "\n" : "<mark>" + escaped(line) + "</mark>\n";
    out += video(run);
    out += "<details><summary>configuration of " + escaped(method) + " on " + escaped(run.task)
           + " (" + escaped(run.folder.string()) + "); marked: what differs from "
           + escaped(first->method) + "</summary><pre tabindex=\"0\">" + marked
           + "</pre></details>\n";
  }
  return out;
}

} // namespace

std::string comparison_markdown(const Comparison& comparison) {
  return markdown(aggregate_rows(comparison)) + "\n" + markdown(task_rows(comparison)) + "\n"
         + markdown(improvement_rows(comparison));
}

std::string comparison_latex(const Comparison& comparison) {
  return latex(aggregate_rows(comparison)) + "\n" + latex(task_rows(comparison)) + "\n"
         + latex(improvement_rows(comparison));
}

std::string comparison_page(const Comparison& comparison, const std::string& machine) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>Comparison of runs</title>\n<style>";
  out += kCurveStyle;
  out +=
      ":root{color-scheme:light dark;background:Canvas;color:CanvasText}"
      "body{font-family:sans-serif;max-width:72em;margin:2em auto;"
      "padding:0 1em}table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}"
      "caption{text-align:left;font-weight:bold;padding:.4em 0}td,th{padding:.3em 1em .3em 0;"
      "text-align:left;border-bottom:1px solid #8884}svg,video{max-width:100%;height:auto}"
      "pre{overflow:auto}</style></head><body><main>\n<h1>Comparison of runs</h1>\n<p>Values are "
      "estimates with 95 % intervals of the stratified bootstrap. Final scores are those of each "
      "run's last evaluation; aggregates are on each task's scale.</p>\n";
  out += html(aggregate_rows(comparison), aggregate_caption(comparison));
  out += html(task_rows(comparison), "Mean final score of each task, and published references");
  out += html(improvement_rows(comparison),
              "Probability that a run of the row's method beats one of the column's");
  out += profiles(comparison);
  for (const std::string& task : comparison.tasks())
    for (const char* unit : {"environment steps", "updates"}) {
      std::vector<CurveLine> lines;
      for (const std::string& method : comparison.methods())
        if (auto curve = comparison.mean_curve(method, task, unit); !curve.empty())
          lines.push_back({method, std::move(curve)});
      if (!lines.empty())
        out +=
            curves_svg(lines, task + ": mean evaluation return and its interval over runs", unit);
    }
  std::vector<Row> runs = {
      {"run", "method", "task", "seed", "length", "final score", "machine", "Troupe, git"}};
  for (const ComparedRun& run : comparison.runs()) {
    const Origin origin = read_origin(run.folder).value_or(Origin{});
    runs.push_back({run.folder.string(), run.method, run.task, std::to_string(run.seed),
                    shown_number(run.curve.back().environment_steps, "%.0f") + " " + run.unit,
                    shown_number(run.final_score), origin.processor,
                    origin.version + (origin.commit.empty() ? "" : ", " + origin.commit_text())});
  }
  out += html(runs, "Runs");
  for (const std::string& method : comparison.methods())
    out += method_part(comparison, method);
  return out + "<p>" + escaped(machine) + "</p>\n</main></body></html>\n";
}

} // namespace troupe::experiments
