#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/folders.hpp"

namespace troupe::env {

/// Recordings of the real dm_control that are part of the repository.
inline const std::string kRecordings = in_source("tests/golden/control_suite");

/// Folder of longer recordings in the same format, which may exist beside the repository. Prints a
/// message and returns "" if there is none.
inline std::string longer_recordings() {
  if (std::filesystem::exists(in_source("../shared/golden/index.json")))
    return in_source("../shared/golden");
  MESSAGE("skipped: no longer recordings of dm_control in " << in_source("../shared/golden"));
  return {};
}

} // namespace troupe::env
