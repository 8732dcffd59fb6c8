#pragma once

#include <chrono>
#include <string>

namespace troupe::experiments {

using UtcTime = std::chrono::system_clock::time_point;

/// "2026-11-21T10-00-00" for names of folders, and "2026-11-21T10:00:00Z" for logs.
std::string folder_time(UtcTime time);
std::string log_time(UtcTime time);

/// "3 s", "4 min 05 s", "2 h 07 min"; "?" for negative or non-finite values.
std::string duration_text(double seconds);

} // namespace troupe::experiments
