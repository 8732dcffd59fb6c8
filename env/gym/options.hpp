#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "env/gym/gym.hpp"

namespace troupe::env::gym {

/// The valid texts of an option.
enum class GymOptionKind : std::uint8_t {
  number,        // finite
  scale,         // finite, not negative
  probability,   // 0 to 1
  count,         // integer, GymOptionRule::least to most
  episode_steps, // integer, 1 to 1e9, or -1 for no limit
  flag,          // true or false
  range,         // two numbers, the first not above the second; either may be infinite
  triple,        // three finite numbers
  choice,        // one of GymOptionRule::choices
  text           // a name or a path, at most 4096 characters
};

/// A row of a task's table of options.
struct GymOptionRule {
  const char* name;
  GymOptionKind kind;
  const char* default_value;
  const char* help;
  std::vector<std::string> choices = {}; // for GymOptionKind::choice
  int least = 1;                         // for GymOptionKind::count
  int most = 1000;
};

/// The documentation of the options, in the order of their rules.
std::vector<GymOption> describe(const std::vector<GymOptionRule>& rules);

/// The complaint about an option `name` that is not among the `names` of the task's options, with
/// the nearest of them.
std::string unknown_option_text(const std::string& task, const std::vector<std::string>& names,
                                const std::string& name);

struct GymRange {
  double low = 0;
  double high = 0;
};

/// The value of every option of a task, given or default. The constructor checks all values. The
/// accessors throw std::logic_error for an option that is not in the task's table or has another
/// type.
class GymOptionValues {
public:
  /// Throws std::invalid_argument that names the task, option, value, rule and default.
  GymOptionValues(const std::string& task, const std::vector<GymOptionRule>& rules,
                  const std::map<std::string, std::string>& given);

  double number(const std::string& name) const { return get<double>(name); }
  int count(const std::string& name) const { return static_cast<int>(get<double>(name)); }
  bool flag(const std::string& name) const { return get<bool>(name); }
  GymRange range(const std::string& name) const { return get<GymRange>(name); }
  const std::array<double, 3>& triple(const std::string& name) const { return get<Triple>(name); }
  /// The value of a text or choice option.
  const std::string& text(const std::string& name) const { return get<std::string>(name); }

private:
  using Triple = std::array<double, 3>;
  using Value = std::variant<double, bool, GymRange, Triple, std::string>;
  template <typename T>
  const T& get(const std::string& name) const;

  std::map<std::string, Value> values_;
};

} // namespace troupe::env::gym
