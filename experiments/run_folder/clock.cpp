#include "experiments/run_folder/clock.hpp"

#include <cmath>
#include <cstdio>
#include <ctime>

namespace troupe::experiments {
namespace {

std::string formatted(UtcTime time, const char* format) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

} // namespace

std::string folder_time(UtcTime time) {
  return formatted(time, "%Y-%m-%dT%H-%M-%S");
}
std::string log_time(UtcTime time) {
  return formatted(time, "%Y-%m-%dT%H:%M:%SZ");
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e12) {
    return "?";
  }
  const auto whole = static_cast<long long>(seconds + 0.5);
  char text[64];
  if (whole < 60) {
    std::snprintf(text, sizeof text, "%lld s", whole);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%lld min %02lld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld h %02lld min", whole / 3600, whole / 60 % 60);
  }
  return text;
}

} // namespace troupe::experiments
