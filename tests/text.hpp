#pragma once

#include <exception>
#include <functional>
#include <string>

namespace troupe {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Returns the message of the `Error` that a call throws; "" if it throws nothing. Any other
/// exception fails the test.
template <class Error = std::exception>
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

} // namespace troupe
