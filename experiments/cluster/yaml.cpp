#include "experiments/cluster/yaml.hpp"

#include <cctype>

#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

namespace troupe::experiments {
namespace {

/// YAML 1.1 reads such a key as a number, a date or a boolean unless it is quoted.
bool needs_quotes(const std::string& key) {
  bool ignored = false;
  return key.empty() || std::isalpha(static_cast<unsigned char>(key[0])) == 0
         || YAML::convert<bool>::decode(YAML::Node(key), ignored);
}

void emit(const nlohmann::ordered_json& value, YAML::Emitter& out) {
  if (value.is_structured() && value.empty()) {
    out << YAML::Flow; // avoids a line break before {} or []
  }
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, item] : value.items()) {
      out << YAML::Key << (needs_quotes(key) ? YAML::DoubleQuoted : YAML::Auto) << key
          << YAML::Value;
      emit(item, out);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const auto& item : value) {
      emit(item, out);
    }
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    out << YAML::DoubleQuoted << value.get<std::string>();
  } else {
    out << value.dump();
  }
}

} // namespace

std::string yaml_text(const nlohmann::ordered_json& value) {
  YAML::Emitter out;
  emit(value, out);
  return out.c_str() + std::string("\n");
}

} // namespace troupe::experiments
