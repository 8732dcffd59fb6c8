#pragma once

#include <stdexcept>
#include <string>

#include "experiments/config/config.hpp"

namespace troupe::python {

/// Throws all complaints, one per line, as an exception that becomes Python's ValueError.
[[noreturn]] inline void throw_all(const experiments::ConfigError& error) {
  std::string all;
  for (const std::string& complaint : error.complaints())
    all += (all.empty() ? "" : "\n") + complaint;
  throw std::invalid_argument(all);
}

} // namespace troupe::python
