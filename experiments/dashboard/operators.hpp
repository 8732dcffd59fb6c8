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

/// Connections to live runs, made when they are needed and closed when they are not. A head that is
/// slow to answer delays one request at a time; others get the last answer. Any thread.
class Operators {
public:
  explicit Operators(Connect connect);

  struct Told {
    std::string status = {};               // as RunOperator::status()
    std::vector<std::string> actions = {}; // possible ones
    std::string problem = {};              // why there are none
  };
  /// At most a second old.
  Told status(const WatchedRun& run);

  /// Throws as RunOperator does, and std::invalid_argument if another action on the run is under
  /// way and does not end within two seconds.
  std::string act(const WatchedRun& run, const std::function<std::string(RunOperator&)>& action);

private:
  struct Slot {
    std::timed_mutex connection;           // held while the run is asked
    std::unique_ptr<RunOperator> one = {}; // under it
    std::mutex answer;                     // of what follows
    Told told = {};
    std::chrono::steady_clock::time_point asked = {};
  };
  std::shared_ptr<Slot> slot(const std::string& id);
  void close_unused(std::chrono::steady_clock::time_point now);

  Connect connect_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Slot>> slots_; // by run
};

} // namespace troupe::experiments::dashboard
