#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/folders.hpp"

namespace troupe::env {

/// Recordings of the real dm_control that every clone has.
inline const std::string kRecordings = in_source("tests/golden/control_suite");

/// Longer recordings in the same format, which may lie beside the repository; empty after a message
/// where they do not.
inline std::string longer_recordings() {
  if (std::filesystem::exists(in_source("../shared/golden/index.json")))
    return in_source("../shared/golden");
  MESSAGE("skipped: no longer recordings of dm_control in " << in_source("../shared/golden"));
  return {};
}

} // namespace troupe::env
