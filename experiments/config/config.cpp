#include "experiments/config/config.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include "env/make/make.hpp"
#include "env/nearest_names.hpp"
#include "env/text/joined.hpp"
#include "experiments/config/agent_choice.hpp"
#include "experiments/config/base.hpp"
#include "experiments/config/keys.hpp"
#include "experiments/config/on_data.hpp"
#include "experiments/config/parse.hpp"

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestFileBytes = 1 << 20;
constexpr const char* kSuffix = ".textproto";

/// Replaces the precision "auto" with "float32", because the result of "auto" depends on a
/// measurement or on the processor.
void make_precision_certain(Experiment& experiment) {
  const auto& view = *experiment.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> present;
  view.ListFields(experiment, &present);
  for (const auto* block : present) {
    const auto* type = block->message_type();
    const auto* key = type == nullptr ? nullptr : type->FindFieldByName("precision");
    if (key == nullptr) {
      continue;
    }
    auto& message = *view.MutableMessage(&experiment, block);
    if (message.GetReflection()->GetString(message, key) == "auto") {
      message.GetReflection()->SetString(&message, key, "float32");
    }
  }
}

} // namespace

ConfigError::ConfigError(std::vector<std::string> complaints)
    : std::invalid_argument(complaints.empty() ? "bad experiment" : complaints.front()),
      complaints_(std::move(complaints)) {}

Experiment parse_experiment(const std::string& text, const std::string& source,
                            const std::vector<std::string>& overrides) {
  Experiment experiment;
  Origins origins;
  if (const std::string complaint = parse_with_base(text, source, experiment, origins);
      !complaint.empty()) {
    throw ConfigError({complaint});
  }
  std::vector<std::string> complaints;
  for (const std::string& assignment : overrides) {
    if (assignment.starts_with("base=")) {
      complaints.push_back("--set " + assignment
                           + ": only a file can name a base; start from that file instead");
    } else if (std::string complaint = apply_override(assignment, experiment, origins);
               !complaint.empty()) {
      complaints.push_back(std::move(complaint));
    }
  }
  settle_plugins(experiment); // of the overrides
  if (complaints.empty()) {
    complaints = check_blocks(experiment, origins, source);
  }
  if (!complaints.empty()) {
    throw ConfigError(complaints);
  }
  if (is_on_data(experiment)) {
    experiment.mutable_data();
  } else {
    settle_agent(experiment);
  }
  fill_defaults(experiment);
  experiment.clear_base();
  drop_unused(experiment);
  if (experiment.name().empty()) {
    experiment.set_name(fs::path(source).stem().string());
  }
  if (experiment.deterministic()) {
    make_precision_certain(experiment);
  }
  check_rules(experiment, "", origins, source, complaints);
  if (complaints.empty()) { // comparing invalid values with each other is useless
    for (std::string& complaint : check_relations(experiment, origins)) {
      const bool placed = complaint.starts_with(source) || complaint.starts_with("--set ");
      complaints.push_back(placed ? std::move(complaint) : source + ": " + complaint);
    }
  }
  if (!complaints.empty()) {
    throw ConfigError(complaints);
  }
  return experiment;
}

std::string read_config_file(const fs::path& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) {
    throw ConfigError({file.string() + ": is a folder; name a file"});
  }
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    throw ConfigError({file.string() + ": cannot be read: " + std::strerror(errno)});
  }
  std::string text(kLargestFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kLargestFileBytes) {
    throw ConfigError(
        {file.string() + ": is larger than 1 MiB, which is too large for such a file"});
  }
  return text;
}

Experiment load_experiment(const fs::path& file, const std::vector<std::string>& overrides) {
  return parse_experiment(read_config_file(file), file.string(), overrides);
}

std::string resolved_text(const Experiment& experiment) {
  google::protobuf::TextFormat::Printer printer;
  std::string text;
  printer.PrintToString(experiment, &text);
  return "# The complete configuration of this run: every key with its value.\n" + text;
}

std::vector<std::string> config_names(const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().extension() == kSuffix) {
        names.push_back(entry.path().stem().string());
      }
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

fs::path find_config(const std::string& name_or_path, const std::vector<fs::path>& folders,
                     const std::vector<std::string>& kinds) {
  std::error_code ignored;
  if (fs::is_regular_file(name_or_path, ignored)) {
    return name_or_path;
  }
  const fs::path name = name_or_path; // may name a subfolder: games/dqn_cartpole
  const bool is_name =
      name.is_relative() && std::find(name.begin(), name.end(), "..") == name.end();
  for (const fs::path& folder : folders) {
    for (const std::string& suffix : {std::string(), std::string(kSuffix)}) {
      if (is_name && fs::is_regular_file(folder / (name_or_path + suffix), ignored)) {
        return folder / (name_or_path + suffix);
      }
    }
  }
  const auto near =
      env::nearest_names(fs::path(name_or_path).stem().string(), config_names(folders), 3);
  std::vector<std::string> lists;
  for (const std::string& kind : kinds) {
    lists.push_back("`troupe list " + kind + "s`");
  }
  throw ConfigError({name_or_path + ": there is no such file and no " + env::joined(kinds, " or ")
                     + " of this name"
                     + (near.empty() ? "" : "; did you mean " + env::joined(near, " or ") + "?")
                     + " (" + env::joined(lists, " and ") + (lists.size() == 1 ? " names" : " name")
                     + " them all)"});
}

} // namespace troupe::experiments
