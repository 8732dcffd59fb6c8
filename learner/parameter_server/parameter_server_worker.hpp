#pragma once

#include <algorithm>
#include <deque>
#include <limits>

#include "learner/parameter_server/parameter_server.hpp"

namespace troupe::learner {

/// A server's record of a worker.
struct ParameterServer::Worker {
  enum class Presence : std::uint8_t { expected, here, resting, gone };

  bool waited_for() const { return presence == Presence::expected || presence == Presence::here; }
  Time silence_deadline(const ParameterServerOptions& options, Time started) const {
    return presence == Presence::expected ? started + options.join_timeout
                                          : heard + options.worker_timeout;
  }
  /// Records that the worker has made its steps up to `step`. If they were made at an earlier
  /// server, they are not used here.
  void advance(std::int64_t step) {
    if (step <= last_step)
      return;
    clock += std::min(step - last_step, std::numeric_limits<std::int64_t>::max() - clock);
    last_step = step;
    last_answer = {.outcome = Outcome::dropped};
  }

  Presence presence = Presence::expected;
  std::uint64_t session = 0;               // 0: none yet
  std::deque<std::uint64_t> past_sessions; // only the most recent few
  Time heard{};
  std::int64_t clock = 0;       // last_step, counted from the others' for a replacement process
  std::int64_t last_step = 0;   // last step that was accepted or reported
  PushAnswer last_answer;       // answer to that step
  std::int64_t has_version = 0; // version of the worker's parameters, if known
  std::uint64_t has_session = 0;
  // Synchronous: the gradient for the next version.
  bool counted = false;
  at::Tensor gradient;
  std::vector<bool> present;
  std::vector<double> rates;
};

} // namespace troupe::learner
