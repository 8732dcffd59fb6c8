#pragma once

#include <cstddef>
#include <sstream>
#include <stdexcept>
#include <string>

#include "env/text/joined.hpp"

namespace troupe::replay {

/// Throws std::invalid_argument "replay.<key> is <value> but must be <rule>" unless `fine`.
template <typename T>
void need(bool fine, const char* key, T value, const char* rule) {
  if (fine)
    return;
  std::ostringstream text;
  text << "replay." << key << " is " << value << " but must be " << rule;
  throw std::invalid_argument(text.str());
}

/// Returns the name of an enumeration value; `names` lists the names in the order of the values.
/// Returns "unknown" for a value without a name.
template <typename Kind, std::size_t N>
const char* name_of(const char* const (&names)[N], Kind kind) {
  const auto at = static_cast<std::size_t>(kind);
  return at < N ? names[at] : "unknown";
}

/// Returns the enumeration value with this name. Throws std::invalid_argument "no <what> '<name>':
/// it must be one of …".
template <typename Kind, std::size_t N>
Kind value_named(const char* const (&names)[N], const std::string& name, const std::string& what) {
  for (std::size_t i = 0; i < N; ++i)
    if (name == names[i])
      return static_cast<Kind>(i);
  throw std::invalid_argument("no " + what + " '" + name + "': it must be one of "
                              + env::joined(names));
}

} // namespace troupe::replay
