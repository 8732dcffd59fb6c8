#include "experiments/config.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include "env/make.hpp"
#include "experiments/keys.hpp"
#include "experiments/parse.hpp"

namespace troupe::experiments {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
namespace fs = std::filesystem;

constexpr std::size_t kLargestFileBytes = 1 << 20;
constexpr const char* kSuffix = ".textproto";

/// Sets every field that is not, so that the text is complete.
void fill_defaults(Message& message) {
  const auto* type = message.GetDescriptor();
  const auto& view = *message.GetReflection();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->is_repeated()) {
      if (view.FieldSize(message, field) == 0) {
        std::stringstream values(rule_of(*field).when_empty());
        for (std::string value; std::getline(values, value, ',');) {
          google::protobuf::TextFormat::ParseFieldValueFromString(value, field, &message);
        }
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (view.HasField(message, field) || !rule_of(*field).optional_block()) {
        fill_defaults(*view.MutableMessage(&message, field));
      }
    } else if (!view.HasField(message, field)) {
      std::string text = default_text(*field);
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        view.SetString(&message, field, text);
      } else {
        google::protobuf::TextFormat::ParseFieldValueFromString(text, field, &message);
      }
    }
  }
}

void check_rules(const Message& message, const std::string& prefix, const Origins& origins,
                 const std::string& source, std::vector<std::string>& complaints) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string key = prefix + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      check_rules(message.GetReflection()->GetMessage(message, field), key + ".", origins, source,
                  complaints);
      continue;
    }
    const int count = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (const auto text = violation(message, *field, i)) {
        complaints.push_back(origin_of(origins, key, source) + key + " " + *text);
        break;
      }
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
  if (const std::string complaint = parse_text(text, source, experiment, origins);
      !complaint.empty()) {
    throw ConfigError({complaint});
  }
  std::vector<std::string> complaints;
  for (const std::string& assignment : overrides) {
    if (std::string complaint = apply_override(assignment, experiment, origins);
        !complaint.empty()) {
      complaints.push_back(std::move(complaint));
    }
  }
  if (!complaints.empty()) {
    throw ConfigError(complaints);
  }
  fill_defaults(experiment);
  if (experiment.name().empty()) {
    experiment.set_name(fs::path(source).stem().string());
  }
  if (experiment.deterministic() && experiment.d4pg().precision() == "auto") {
    experiment.mutable_d4pg()->set_precision("float32");
  }
  check_rules(experiment, "", origins, source, complaints);
  if (complaints.empty()) { // relations of bad values say nothing new
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

Experiment load_experiment(const fs::path& file, const std::vector<std::string>& overrides) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) {
    throw ConfigError({file.string() + ": is a folder; name an experiment file"});
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
    throw ConfigError({file.string() + ": is larger than 1 MiB; that is no experiment file"});
  }
  return parse_experiment(text, file.string(), overrides);
}

std::string resolved_text(const Experiment& experiment) {
  google::protobuf::TextFormat::Printer printer;
  std::string text;
  printer.PrintToString(experiment, &text);
  return "# The complete configuration of this run: every key with its value.\n" + text;
}

std::vector<std::string> experiment_names(const std::vector<fs::path>& folders) {
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

fs::path find_experiment(const std::string& name_or_path, const std::vector<fs::path>& folders) {
  std::error_code ignored;
  if (fs::is_regular_file(name_or_path, ignored)) {
    return name_or_path;
  }
  const bool is_name = name_or_path.find('/') == std::string::npos;
  for (const fs::path& folder : folders) {
    for (const std::string& suffix : {std::string(), std::string(kSuffix)}) {
      if (is_name && fs::is_regular_file(folder / (name_or_path + suffix), ignored)) {
        return folder / (name_or_path + suffix);
      }
    }
  }
  std::string text = name_or_path + ": there is no such file and no experiment of this name";
  const auto near =
      env::nearest_names(fs::path(name_or_path).stem().string(), experiment_names(folders), 3);
  for (std::size_t i = 0; i < near.size(); ++i) {
    text += (i == 0 ? "; did you mean " : " or ") + near[i];
  }
  throw ConfigError(
      {text + (near.empty() ? "" : "?") + " (`troupe list experiments` names them all)"});
}

} // namespace troupe::experiments
