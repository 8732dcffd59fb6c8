#pragma once

#include <sstream>
#include <stdexcept>

namespace troupe::replay {

/// Throws std::invalid_argument "replay.<key> is <value> but must be <rule>" unless it is fine.
template <typename T>
void need(bool fine, const char* key, T value, const char* rule) {
  if (fine)
    return;
  std::ostringstream text;
  text << "replay." << key << " is " << value << " but must be " << rule;
  throw std::invalid_argument(text.str());
}

} // namespace troupe::replay
