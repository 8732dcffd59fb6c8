#include "experiments/commands/tools/recording_info.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "env/text/joined.hpp"
#include "experiments/commands/json.hpp"
#include "replay/recordings/recording.hpp"

namespace troupe::experiments::commands {
namespace {

struct Range {
  double least = 0, mean = 0, most = 0;
};

Range range(const std::vector<double>& values) {
  if (values.empty()) {
    return {};
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return {*least, sum / static_cast<double>(values.size()), *most};
}

Json json_of(const Range& range) {
  return {{"least", range.least}, {"mean", range.mean}, {"most", range.most}};
}

std::string numbers_text(const std::vector<std::int64_t>& shape) {
  return "[" + env::joined(shape) + "]";
}

} // namespace

std::filesystem::path new_folder(const std::filesystem::path& out) {
  std::filesystem::path folder = (out / "").parent_path();
  std::error_code ignored;
  if (std::filesystem::exists(folder, ignored)) {
    throw std::invalid_argument("--out " + folder.string() + " exists; name a new folder");
  }
  return folder;
}

void show_recording(const std::filesystem::path& folder, bool json) {
  const replay::Recording recording(folder);
  const replay::RecordingSpec& spec = recording.spec();
  std::vector<double> returns;
  std::vector<double> lengths;
  std::int64_t terminated = 0;
  for (const replay::EpisodeSummary& episode : recording.episodes()) {
    returns.push_back(episode.total_reward);
    lengths.push_back(static_cast<double>(episode.steps));
    terminated += episode.terminated ? 1 : 0;
  }
  if (json) {
    Json vectors = Json::array();
    for (const env::ArraySpec& vector : spec.vectors) {
      vectors.push_back({{"name", vector.name}, {"shape", vector.shape}});
    }
    print_json({{"recording", folder.string()},
                {"episodes", recording.episodes().size()},
                {"steps", recording.steps()},
                {"terminated", terminated},
                {"mean_return", range(returns).mean},
                {"returns", json_of(range(returns))},
                {"lengths", json_of(range(lengths))},
                {"frame",
                 {{"name", spec.frame.name},
                  {"type", env::element_name(spec.frame.type)},
                  {"shape", spec.frame.shape}}},
                {"vectors", vectors},
                {"stack", spec.stack},
                {"action_size", spec.action_size},
                {"action_choices", spec.action_choices},
                {"log_probability", spec.log_probability},
                {"about", spec.about}});
    return;
  }
  std::printf("%s: %zu episodes, %lld steps\n", folder.c_str(), recording.episodes().size(),
              static_cast<long long>(recording.steps()));
  for (const auto& [key, value] : spec.about) {
    std::printf("  %-14s %s\n", key.c_str(), value.c_str());
  }
  std::printf("  %-14s %s, %s %s\n", "frame", spec.frame.name.c_str(),
              env::element_name(spec.frame.type), numbers_text(spec.frame.shape).c_str());
  for (const env::ArraySpec& vector : spec.vectors) {
    std::printf("  %-14s %s, %s %s\n", "beside it", vector.name.c_str(),
                env::element_name(vector.type), numbers_text(vector.shape).c_str());
  }
  std::printf("  %-14s %d numbers%s\n", "action", spec.action_size,
              spec.action_choices.empty()
                  ? ""
                  : (", choices of " + numbers_text(spec.action_choices)).c_str());
  std::printf("  %-14s %s\n", "probabilities", spec.log_probability ? "of the actions" : "none");
  const Range of_returns = range(returns);
  const Range of_lengths = range(lengths);
  std::printf("  %-14s %.1f (%.1f to %.1f)\n", "mean return", of_returns.mean, of_returns.least,
              of_returns.most);
  std::printf("  %-14s %.1f (%.0f to %.0f), %lld terminated\n", "mean length", of_lengths.mean,
              of_lengths.least, of_lengths.most, static_cast<long long>(terminated));
}

void check_recording(const std::filesystem::path& folder, bool json) {
  const replay::Recording recording(folder);
  recording.verify();
  if (json) {
    print_json({{"episodes", recording.episodes().size()}, {"steps", recording.steps()}});
    return;
  }
  std::printf("%zu episodes, %lld steps: all are good\n", recording.episodes().size(),
              static_cast<long long>(recording.steps()));
}

} // namespace troupe::experiments::commands
