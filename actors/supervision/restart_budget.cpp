#include "actors/supervision/restart_budget.hpp"

#include <algorithm>

#include "actors/supervision/process_table.hpp"

namespace troupe::actors {

namespace {
constexpr double kFirstDelay = 0.2; // seconds; doubles with each death after the first
} // namespace

bool RestartBudget::die(double now, const Limits& limits) {
  std::erase_if(deaths_, [&](double death) { return death < now - 60 * limits.minutes; });
  deaths_.push_back(now);
  return std::ssize(deaths_) <= limits.restarts;
}

double RestartBudget::delay_seconds(double longest) const {
  longest = std::min(longest, kLongestDelay);
  double delay = deaths_.size() < 2 ? 0 : kFirstDelay;
  for (std::size_t i = 1; i < deaths_.size() && delay < longest; ++i)
    delay *= 2;
  return std::min(delay, longest);
}

std::string RestartBudget::words(const Limits& limits) const {
  return "death " + std::to_string(deaths_.size()) + " within " + number(limits.minutes)
         + " minutes, actors.restarts allows " + std::to_string(limits.restarts);
}

int RestartBudget::recent(double now, double minutes) const {
  return static_cast<int>(
      std::ranges::count_if(deaths_, [&](double death) { return death >= now - 60 * minutes; }));
}

} // namespace troupe::actors
