#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "env/gym/gym.hpp"

namespace troupe::env::gym {

/// What an option's text must be.
enum class GymOptionKind : std::uint8_t {
  number,        // finite
  scale,         // finite, not negative
  probability,   // 0 to 1
  count,         // 1 to 1000
  episode_steps, // 1 to 1e9, or -1 for no limit
  flag,          // true or false
  range,         // two numbers, the first not above the second; either may be infinite
  triple,        // three finite numbers
  choice,        // one of GymOptionRule::choices
  text           // a name or a file, at most 4096 characters
};

/// A row of a task's table of options.
struct GymOptionRule {
  const char* name;
  GymOptionKind kind;
  const char* default_value;
  const char* help;
  std::vector<std::string> choices = {}; // of a choice
};

std::string rule_text(const GymOptionRule& rule); // "a finite number"

struct GymRange {
  double low = 0;
  double high = 0;
};

/// Every option of a task with its value, given or default. Built once, checked as a whole; the
/// accessors throw std::logic_error for an option that is not in the task's table.
class GymOptionValues {
public:
  /// Throws std::invalid_argument naming task, option, value, rule and default.
  GymOptionValues(const std::string& task, const std::vector<GymOptionRule>& rules,
                  const std::map<std::string, std::string>& given);

  double number(const std::string& name) const { return get<double>(name); }
  int count(const std::string& name) const { return static_cast<int>(get<double>(name)); }
  bool flag(const std::string& name) const { return get<bool>(name); }
  GymRange range(const std::string& name) const { return get<GymRange>(name); }
  const std::array<double, 3>& triple(const std::string& name) const { return get<Triple>(name); }
  /// Of a text or a choice.
  const std::string& text(const std::string& name) const { return get<std::string>(name); }

private:
  using Triple = std::array<double, 3>;
  using Value = std::variant<double, bool, GymRange, Triple, std::string>;
  template <typename T>
  const T& get(const std::string& name) const;

  std::map<std::string, Value> values_;
};

} // namespace troupe::env::gym
