#include "env/gym/options.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "env/nearest_names.hpp"
#include "env/text/number_in.hpp"

namespace troupe::env::gym {

namespace {

constexpr std::size_t kLongestValue = 4096; // in characters

// Arguments of Gymnasium's constructors about rendering, for which the Pixels wrapper has options.
constexpr const char* kDrawing[] = {"render_mode", "width",         "height",
                                    "camera_id",   "camera_name",   "default_camera_config",
                                    "max_geom",    "visual_options"};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos)
    return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<double> parse_number(const std::string& padded) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return number_in<double>(trimmed(padded), -kInfinity, kInfinity);
}

std::optional<double> parse_bounded(const GymOptionRule& rule, const std::string& text) {
  const std::optional<double> value = parse_number(text);
  if (!value || !std::isfinite(*value))
    return {};
  const bool whole = *value == std::floor(*value);
  switch (rule.kind) {
  case GymOptionKind::scale:
    return *value >= 0 ? value : std::nullopt;
  case GymOptionKind::probability:
    return *value >= 0 && *value <= 1 ? value : std::nullopt;
  case GymOptionKind::count:
    return whole && *value >= rule.least && *value <= rule.most ? value : std::nullopt;
  case GymOptionKind::episode_steps:
    return whole && (*value == -1 || (*value >= 1 && *value <= 1e9)) ? value : std::nullopt;
  default:
    return value;
  }
}

std::optional<bool> parse_flag(const std::string& padded) {
  const std::string text = trimmed(padded);
  if (text == "true" || text == "True" || text == "1")
    return true;
  if (text == "false" || text == "False" || text == "0")
    return false;
  return {};
}

/// Parses "0.2,inf", or the same as Python prints it: "(0.2, inf)".
template <std::size_t kCount>
std::optional<std::array<double, kCount>> parse_numbers(const std::string& padded) {
  std::string text = trimmed(padded);
  if (text.size() >= 2
      && ((text.front() == '(' && text.back() == ')')
          || (text.front() == '[' && text.back() == ']')))
    text = text.substr(1, text.size() - 2);
  if (static_cast<std::size_t>(std::ranges::count(text, ',')) + 1 != kCount)
    return {};
  std::array<double, kCount> numbers{};
  std::size_t begin = 0;
  for (double& number : numbers) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::optional<double> value = parse_number(text.substr(begin, end - begin));
    if (!value)
      return {};
    number = *value;
    begin = end + 1;
  }
  return numbers;
}

std::optional<GymRange> parse_range(const std::string& text) {
  const auto ends = parse_numbers<2>(text);
  if (!ends || (*ends)[0] > (*ends)[1])
    return {};
  return GymRange{(*ends)[0], (*ends)[1]};
}

std::optional<std::array<double, 3>> parse_triple(const std::string& text) {
  const auto numbers = parse_numbers<3>(text);
  const auto finite = [](double number) { return std::isfinite(number); };
  return numbers && std::ranges::all_of(*numbers, finite) ? numbers : std::nullopt;
}

std::string shown(const std::string& value) {
  return value.size() <= 80 ? value : value.substr(0, 80) + "…";
}

std::string rule_text(const GymOptionRule& rule) {
  switch (rule.kind) {
  case GymOptionKind::number:
    return "a finite number";
  case GymOptionKind::scale:
    return "a finite number, 0 or greater";
  case GymOptionKind::probability:
    return "a number from 0 to 1";
  case GymOptionKind::count:
    return "a whole number from " + std::to_string(rule.least) + " to " + std::to_string(rule.most);
  case GymOptionKind::episode_steps:
    return "a whole number from 1 to 1000000000, or -1 for no limit";
  case GymOptionKind::flag:
    return "true or false";
  case GymOptionKind::range:
    return "two numbers '<low>,<high>' with low <= high; -inf and inf are allowed";
  case GymOptionKind::triple:
    return "three finite numbers '<a>,<b>,<c>'";
  case GymOptionKind::choice: {
    std::string names;
    for (const std::string& choice : rule.choices)
      names += (names.empty() ? "'" : " or '") + choice + "'";
    return names;
  }
  case GymOptionKind::text:
    return "text of 1 to 4096 characters";
  }
  return "";
}

} // namespace

std::string unknown_option_text(const std::string& task, const std::vector<std::string>& names,
                                const std::string& name) {
  std::string message = task + ": there is no option '" + shown(name) + "'";
  if (std::find(std::begin(kDrawing), std::end(kDrawing), name) != std::end(kDrawing))
    return message + "; the environment's pixel options set the size and camera of pictures";
  message += "; nearest:";
  for (const std::string& near : nearest_names(name, names))
    message += " '" + near + "'";
  return message;
}

std::vector<GymOption> describe(const std::vector<GymOptionRule>& rules) {
  std::vector<GymOption> options;
  for (const GymOptionRule& rule : rules)
    options.push_back({rule.name, rule.default_value, rule_text(rule), rule.help});
  return options;
}

GymOptionValues::GymOptionValues(const std::string& task, const std::vector<GymOptionRule>& rules,
                                 const std::map<std::string, std::string>& given) {
  const auto parse = [](const GymOptionRule& rule,
                        const std::string& text) -> std::optional<Value> {
    if (text.size() > kLongestValue)
      return {};
    switch (rule.kind) {
    case GymOptionKind::flag:
      return parse_flag(text);
    case GymOptionKind::range:
      return parse_range(text);
    case GymOptionKind::triple:
      return parse_triple(text);
    case GymOptionKind::choice:
      return std::ranges::count(rule.choices, trimmed(text)) == 0
                 ? std::nullopt
                 : std::optional<Value>(trimmed(text));
    case GymOptionKind::text:
      return trimmed(text).empty() ? std::nullopt : std::optional<Value>(trimmed(text));
    default:
      return parse_bounded(rule, text);
    }
  };
  for (const GymOptionRule& rule : rules)
    values_[rule.name] = parse(rule, rule.default_value).value();
  for (const auto& [name, text] : given) {
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&key = name](const GymOptionRule& r) { return r.name == key; });
    if (rule == rules.end()) {
      std::vector<std::string> names;
      for (const GymOptionRule& known : rules)
        names.emplace_back(known.name);
      throw std::invalid_argument(unknown_option_text(task, names, name));
    }
    const std::optional<Value> value = parse(*rule, text);
    if (!value)
      throw std::invalid_argument(task + ": option " + name + " is '" + shown(text)
                                  + "'; it must be " + rule_text(*rule)
                                  + " (default: " + rule->default_value + ")");
    values_[name] = *value;
  }
}

template <typename T>
const T& GymOptionValues::get(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || !std::holds_alternative<T>(found->second))
    throw std::logic_error("option " + name + " is not in the task's table with this type");
  return std::get<T>(found->second);
}

template const double& GymOptionValues::get(const std::string&) const;
template const bool& GymOptionValues::get(const std::string&) const;
template const GymRange& GymOptionValues::get(const std::string&) const;
template const std::array<double, 3>& GymOptionValues::get(const std::string&) const;
template const std::string& GymOptionValues::get(const std::string&) const;

} // namespace troupe::env::gym
