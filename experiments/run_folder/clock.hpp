#pragma once

#include <chrono>
#include <string>

namespace troupe::experiments {

using UtcTime = std::chrono::system_clock::time_point;

/// "2026-11-21T10-00-00", as folders are named; "2026-11-21T10:00:00Z" for logs.
std::string folder_time(UtcTime time);
std::string log_time(UtcTime time);

/// "3 s", "4 min 05 s", "2 h 07 min"; "?" when not finite or negative.
std::string duration_text(double seconds);

} // namespace troupe::experiments
