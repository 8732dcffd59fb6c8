#include "experiments/run_folder/metrics_file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Removes the incomplete last row that a killed process left. `text` is the content of the file;
/// its lines may end with LF alone, because another program may have rewritten it.
void drop_partial_row(const fs::path& path, const std::string& text) {
  const std::size_t end = text.rfind('\n');
  const std::size_t keep = end == std::string::npos ? 0 : end + 1;
  if (keep < text.size()) {
    fs::resize_file(path, keep);
  }
}

/// Reads the quoted field at `at`. Returns the position of the ',' or '\n' behind it, or npos.
std::size_t unquote(std::string_view text, std::size_t at, std::string& field) {
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] != '"') {
      field += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '"') {
      field += text[++i];
    } else {
      const std::size_t end = text.find_first_of(",\n", i + 1);
      field += text.substr(i + 1, std::min(end, text.size()) - i - 1);
      return end;
    }
  }
  return std::string_view::npos;
}

/// Joins up to 10 of the names, quoted where necessary.
std::string names_of(std::vector<std::string> names) {
  constexpr std::size_t kMost = 10;
  const std::size_t all = names.size();
  names.resize(std::min(all, kMost));
  std::string text = csv_record(names);
  text.resize(text.size() - 2);
  return all > kMost ? text + " and " + std::to_string(all - kMost) + " more" : text;
}

/// Returns the header of a file without an incomplete last row. The header must contain each name
/// once and start with "kind", by which readers tell rows apart; each row must have as many fields.
std::vector<std::string> checked_header(const fs::path& path, const std::string& text) {
  const auto refuse = [&](const std::string& what) {
    throw std::runtime_error(path.string() + ": is damaged: " + what
                             + "; repair it, or move it away");
  };
  std::vector<std::string> names;
  std::size_t rows = 0;
  scan_csv(text, [&](const std::vector<std::string_view>& fields) {
    if (rows++ == 0) {
      names.assign(fields.begin(), fields.end());
    } else if (fields.size() != names.size()) {
      refuse("record " + std::to_string(rows) + " has " + std::to_string(fields.size())
             + " fields and its header " + std::to_string(names.size()));
    }
  });
  if (names.empty() || names.front() != "kind") {
    refuse("its first line is not a header that begins with kind");
  }
  if (std::set<std::string>(names.begin(), names.end()).size() < names.size()) {
    refuse("its header has a column twice");
  }
  return names;
}

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace

std::string csv_number(double value) {
  if (!std::isfinite(value)) {
    return "";
  }
  char text[64];
  const auto result = std::to_chars(text, text + sizeof text, value);
  return {text, result.ptr};
}

std::string csv_record(const std::vector<std::string>& fields) {
  std::string out;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    out += i == 0 ? "" : ",";
    if (fields[i].find_first_of(",\"\r\n") == std::string::npos) {
      out += fields[i];
      continue;
    }
    out += '"';
    for (const char c : fields[i]) {
      out += c == '"' ? "\"\"" : std::string(1, c);
    }
    out += '"';
  }
  return out + "\r\n";
}

std::size_t scan_csv(std::string_view text, const CsvRecord& record) {
  std::vector<std::string_view> fields;
  std::deque<std::string> unquoted; // a deque, because views of its elements stay valid as it grows
  std::size_t begin = 0;
  while (true) {
    fields.clear();
    unquoted.clear();
    std::size_t at = begin;
    for (bool more = true; more;) {
      std::size_t end;
      if (at < text.size() && text[at] == '"') {
        std::string& field = unquoted.emplace_back();
        end = unquote(text, at, field);
        fields.emplace_back(field);
      } else {
        end = text.find_first_of(",\n", at);
        fields.push_back(text.substr(at, end == std::string_view::npos ? end : end - at));
      }
      if (end == std::string_view::npos) {
        return begin; // this record is incomplete
      }
      more = text[end] == ',';
      at = end + 1;
    }
    if (fields.back().ends_with('\r')) {
      fields.back().remove_suffix(1);
    }
    begin = at;
    record(fields);
  }
}

std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> records;
  const std::size_t end = scan_csv(text, [&](const std::vector<std::string_view>& fields) {
    records.emplace_back(fields.begin(), fields.end());
  });
  if (std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '"') % 2 != 0) {
    throw std::runtime_error("a quoted field does not end");
  }
  return records;
}

std::vector<std::string> MetricsFile::columns(const std::vector<std::string>& of_learner) {
  std::vector<std::string> names = {"kind",
                                    "environment_steps",
                                    "agent_steps",
                                    "episodes",
                                    "updates",
                                    "inserts",
                                    "samples",
                                    "frames",
                                    "replay_items",
                                    "replay_bytes",
                                    "replay_failed_spills",
                                    "failed_copies",
                                    "parameter_version",
                                    "parameter_lag",
                                    "training_seconds",
                                    "processor_seconds",
                                    "environment_steps_per_second",
                                    "updates_per_second",
                                    "frames_per_second",
                                    "episode_return",
                                    "evaluation_return",
                                    "evaluation_return_min",
                                    "evaluation_return_max",
                                    "evaluation_episodes"};
  names.insert(names.end(), of_learner.begin(), of_learner.end());
  names.insert(names.end(),
               {"staleness_mean", "staleness_max", "dropped_gradients", "learning_rate_scale"});
  return names;
}

MetricsFile::MetricsFile(const fs::path& path, std::vector<std::string> its_columns)
    : path_(path), columns_(std::move(its_columns)) {
  bool has_header = false;
  std::error_code none;
  if (fs::is_regular_file(path, none) && fs::file_size(path, none) > 0) {
    const std::string text = read_all(path);
    const std::string header = csv_record(columns_);
    has_header = text.size() >= header.size() || !header.starts_with(text); // else only part of it
    if (has_header) {
      take_columns(checked_header(path, text));
      drop_partial_row(path, text);
    } else {
      fs::resize_file(path, 0);
    }
  }
  file_.emplace(path);
  if (!has_header) {
    file_->append(csv_record(columns_));
  }
  if (const std::string& problem = file_->flush(); !problem.empty()) {
    throw std::runtime_error(problem);
  }
  const fs::path lines = fs::path(path).replace_extension(".jsonl");
  if (fs::is_regular_file(lines, none)) {
    drop_partial_row(lines, read_all(lines));
  }
  lines_.emplace(lines);
}

void MetricsFile::take_columns(std::vector<std::string> of_file) {
  const auto without = [](const std::vector<std::string>& all,
                          const std::vector<std::string>& some) {
    std::vector<std::string> rest;
    std::copy_if(all.begin(), all.end(), std::back_inserter(rest), [&](const std::string& name) {
      return std::find(some.begin(), some.end(), name) == some.end();
    });
    return rest;
  };
  if (const auto unknown = without(of_file, columns_); !unknown.empty()) {
    throw std::runtime_error(path_.string() + ": has columns that this version does not write ("
                             + names_of(unknown)
                             + "); resume with the version that wrote it, or "
                               "move the file away");
  }
  left_out_ = without(columns_, of_file);
  columns_ = std::move(of_file);
}

std::string MetricsFile::left_out() const {
  return left_out_.empty() ? "" : names_of(left_out_);
}

void MetricsFile::write(const std::map<std::string, std::string>& values) {
  std::vector<std::string> fields;
  std::string line;
  const auto value_of = [&](const std::string& name) {
    const auto found = values.find(name);
    const std::string value = found == values.end() ? "" : found->second;
    if (!value.empty()) {
      line += (line.empty() ? "{" : ",") + json_text(name) + ":"
              + (name == "kind" ? json_text(value) : value);
    }
    return value;
  };
  for (const std::string& name : columns_) {
    fields.push_back(value_of(name));
  }
  for (const std::string& name : left_out_) {
    value_of(name);
  }
  file_->append(csv_record(fields));
  lines_->append(line + "}\n");
}

void MetricsFile::progress(const actors::Progress& p) {
  std::map<std::string, std::string> values = {
      {"kind", "progress"},
      {"environment_steps", std::to_string(p.environment_steps)},
      {"agent_steps", std::to_string(p.agent_steps)},
      {"episodes", std::to_string(p.episodes)},
      {"updates", std::to_string(p.updates)},
      {"inserts", std::to_string(p.inserts)},
      {"samples", std::to_string(p.samples)},
      {"frames", std::to_string(p.frames)},
      {"replay_items", std::to_string(p.replay_items)},
      {"replay_bytes", std::to_string(p.replay_bytes)},
      {"replay_failed_spills", std::to_string(p.replay_failed_spills)},
      {"failed_copies", std::to_string(p.failed_copies)},
      {"parameter_version", std::to_string(p.parameter_version)},
      {"parameter_lag", csv_number(p.parameter_lag)},
      {"training_seconds", csv_number(p.training_seconds)},
      {"processor_seconds", csv_number(p.processor_seconds)},
      {"environment_steps_per_second", csv_number(p.environment_steps_per_second)},
      {"updates_per_second", csv_number(p.updates_per_second)},
      {"frames_per_second", csv_number(p.frames_per_second)},
      {"samples_per_second", csv_number(p.samples_per_second)},
      {"episode_return", csv_number(p.episode_return)}};
  for (const auto& [name, value] : p.learner) {
    values.emplace(name, csv_number(value));
  }
  write(values);
}

void MetricsFile::evaluation(const actors::Evaluated& e) {
  std::map<std::string, std::string> values = {
      {"kind", e.final ? "final" : "evaluation"},
      {"environment_steps", std::to_string(e.environment_steps)},
      {"updates", std::to_string(e.updates)},
      {"training_seconds", csv_number(e.training_seconds)},
      {"processor_seconds", csv_number(e.processor_seconds)},
      {"evaluation_episodes", std::to_string(e.returns.size())}};
  for (const auto& [name, value] : e.metrics) {
    values[(e.returns.empty() ? "validation_" : "evaluation_") + name] = csv_number(value);
  }
  if (!e.returns.empty()) {
    const double sum = std::accumulate(e.returns.begin(), e.returns.end(), 0.0);
    const auto [least, most] = std::minmax_element(e.returns.begin(), e.returns.end());
    values["evaluation_return"] = csv_number(sum / static_cast<double>(e.returns.size()));
    values["evaluation_return_min"] = csv_number(*least);
    values["evaluation_return_max"] = csv_number(*most);
  }
  write(values);
}

} // namespace troupe::experiments
