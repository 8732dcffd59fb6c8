#include "experiments/yaml.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <nlohmann/json.hpp>

namespace troupe::experiments {
namespace {

using Json = nlohmann::ordered_json;

std::string key_text(const std::string& key) {
  const bool plain =
      !key.empty() && std::isalpha(static_cast<unsigned char>(key[0])) != 0
      && std::all_of(key.begin(), key.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '/' || c == '-' || c == '_';
         });
  static constexpr const char* kOthers[] = {"y",   "n",    "yes",   "no",  "on",
                                            "off", "true", "false", "null"}; // in YAML 1.1
  std::string lower = key;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool other = std::find(std::begin(kOthers), std::end(kOthers), lower) != std::end(kOthers);
  return plain && !other ? key : Json(key).dump();
}

void write(const Json& value, std::size_t indent, std::string& out) {
  const std::string pad(indent, ' ');
  if (value.is_object() && !value.empty()) {
    bool first = true;
    for (const auto& [key, item] : value.items()) {
      out.append(first ? "" : pad).append(key_text(key)).append(":");
      first = false;
      const bool block = (item.is_object() || item.is_array()) && !item.empty();
      if (block) {
        const std::size_t deeper = indent + (item.is_object() ? 2 : 0);
        out.append("\n").append(deeper, ' ');
        write(item, deeper, out);
      } else {
        out += " ";
        write(item, indent, out);
      }
    }
  } else if (value.is_array() && !value.empty()) {
    bool first = true;
    for (const Json& item : value) {
      out.append(first ? "" : pad).append("- ");
      first = false;
      write(item, indent + 2, out);
    }
  } else {
    out += value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
}

} // namespace

std::string yaml_text(const Json& value) {
  std::string out;
  write(value, 0, out);
  return out;
}

} // namespace troupe::experiments
