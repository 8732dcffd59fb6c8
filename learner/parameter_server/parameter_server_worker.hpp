#pragma once

#include <deque>

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

  Presence presence = Presence::expected;
  std::uint64_t session = 0;               // 0: none yet
  std::deque<std::uint64_t> past_sessions; // only the most recent few
  Time heard{};
  std::int64_t clock = 0;       // number of gradients pushed, whether used or not
  std::int64_t last_step = 0;   // last step that was accepted
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
