#pragma once

#include <deque>
#include <string>

namespace troupe::actors {

/// How often something that dies is started again: so many restarts within a period, at once after
/// the first death in it, then after 0.4, 0.8, … seconds, 10 at most.
class RestartBudget {
public:
  struct Limits {
    int restarts = 0;
    double minutes = 0;
  };
  /// Counts a death at `now`, in seconds of any clock. False: it is one too many.
  bool die(double now, const Limits& limits);
  double delay_seconds() const; // before the next restart
  /// "death 3 within 10 minutes, actors.restarts allows 3"
  std::string words(const Limits& limits) const;
  /// Deaths of the last minutes.
  int recent(double now, double minutes) const;

private:
  std::deque<double> deaths_; // that counted at the last one
};

} // namespace troupe::actors
