#pragma once

#include <deque>
#include <string>

namespace troupe::actors {

/// Decides whether and when something that died is restarted: at most a number of times within a
/// period. The first restart in a period is immediate; later ones follow after 0.4, 0.8, … seconds,
/// at most 10.
class RestartBudget {
public:
  static constexpr double kLongestDelay = 10; // seconds
  struct Limits {
    int restarts = 0;
    double minutes = 0;
  };
  /// Counts a death at `now`, in seconds of any clock. Returns false if it exceeds the budget.
  bool die(double now, const Limits& limits);
  /// The delay before the next restart, at most `longest`: less than 10 if something waits for it.
  double delay_seconds(double longest = kLongestDelay) const;
  /// For example "death 3 within 10 minutes, actors.restarts allows 3".
  std::string words(const Limits& limits) const;
  /// Returns the number of deaths in the last `minutes`.
  int recent(double now, double minutes) const;

private:
  std::deque<double> deaths_; // within the period before the last one
};

} // namespace troupe::actors
