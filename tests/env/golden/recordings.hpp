#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

namespace troupe::env {

/// Recordings of the real dm_control that every clone has.
inline const std::string kRecordings = TROUPE_SOURCE_DIR "/tests/golden/control_suite";

/// Longer recordings in the same format, which may lie beside the repository; empty after a message
/// where they do not.
inline std::string longer_recordings() {
  if (std::filesystem::exists(TROUPE_GOLDEN_DIR "/index.json"))
    return TROUPE_GOLDEN_DIR;
  MESSAGE("skipped: no longer recordings of dm_control in " TROUPE_GOLDEN_DIR);
  return {};
}

} // namespace troupe::env
