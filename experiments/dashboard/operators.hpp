#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "experiments/dashboard/run_operator.hpp"
#include "experiments/dashboard/watched_run.hpp"

namespace troupe::experiments::dashboard {

/// Connections to live runs, opened when needed and closed when unused. A head that is slow to
/// answer delays only one request at a time; meanwhile other requests get its last answer. May be
/// used from any thread.
class Operators {
public:
  using Clock = std::chrono::steady_clock;
  explicit Operators(Connect connect, std::function<Clock::time_point()> now = &Clock::now);

  struct Told {
    std::string status = {};               // see RunOperator::status()
    std::vector<std::string> actions = {}; // actions that the run offers
    std::string problem = {};              // the reason if there are none
  };
  /// The state of a run, at most one second old.
  Told status(const WatchedRun& run);

  /// Throws the exceptions of RunOperator, and std::invalid_argument if another action on the run
  /// is in progress and does not end within two seconds.
  std::string act(const WatchedRun& run, const std::function<std::string(RunOperator&)>& action);

private:
  struct Slot {
    std::timed_mutex connection;           // held during requests to the run
    std::unique_ptr<RunOperator> one = {}; // guarded by `connection`
    std::mutex answer;                     // guards the two members below
    Told told = {};
    Clock::time_point asked = {}; // when `told` was
    Clock::time_point used = {};  // guarded by mutex_ of Operators
  };
  std::shared_ptr<Slot> slot(const std::string& id);

  Connect connect_;
  std::function<Clock::time_point()> now_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Slot>> slots_; // by run
};

} // namespace troupe::experiments::dashboard
