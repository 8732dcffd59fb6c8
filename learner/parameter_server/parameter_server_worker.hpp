#pragma once

#include <deque>

#include "learner/parameter_server/parameter_server.hpp"

namespace troupe::learner {

/// What a server knows of a worker.
struct ParameterServer::Worker {
  enum class Presence : std::uint8_t { expected, here, resting, gone };

  bool waited_for() const { return presence == Presence::expected || presence == Presence::here; }
  Time silence_deadline(const ParameterServerOptions& options, Time started) const {
    return presence == Presence::expected ? started + options.join_timeout
                                          : heard + options.worker_timeout;
  }

  Presence presence = Presence::expected;
  std::uint64_t session = 0;               // 0: none yet
  std::deque<std::uint64_t> past_sessions; // the newest few
  Time heard{};
  std::int64_t clock = 0;       // gradients pushed, whatever became of them
  std::int64_t last_step = 0;   // that counts
  PushAnswer last_answer;       // to it
  std::int64_t has_version = 0; // of its parameters, as far as it is known
  std::uint64_t has_session = 0;
  // Synchronous: the gradient for the next version.
  bool counted = false;
  std::int64_t on_version = 0; // that it is on
  at::Tensor gradient;
  std::vector<bool> present;
  std::vector<double> rates;
};

} // namespace troupe::learner
