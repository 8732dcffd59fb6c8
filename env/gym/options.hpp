#pragma once

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
  count,         // 1 to 1000
  episode_steps, // 1 to 1e9, or -1 for no limit
  flag,          // true or false
  range,         // two numbers, the first not above the second; either may be infinite
  text           // a name or a file, at most 4096 characters
};

const char* rule_text(GymOptionKind kind); // "a finite number"

/// A row of a task's table of options.
struct GymOptionRule {
  const char* name;
  GymOptionKind kind;
  const char* default_value;
  const char* help;
};

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
  const std::string& text(const std::string& name) const { return get<std::string>(name); }

private:
  using Value = std::variant<double, bool, GymRange, std::string>;
  template <typename T>
  const T& get(const std::string& name) const;

  std::map<std::string, Value> values_;
};

} // namespace troupe::env::gym
