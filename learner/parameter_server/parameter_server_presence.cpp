#include <algorithm>
#include <limits>

#include <torch/optim/optimizer.h>

#include "learner/parameter_server/parameter_server_worker.hpp"

namespace troupe::learner {
namespace {

constexpr std::size_t kPastSessions = 16;

} // namespace

std::string ParameterServer::join(int worker, std::uint64_t session, Time now, std::int64_t step) {
  if (worker < 0 || worker >= options_.workers || session == 0)
    return "there is no worker " + std::to_string(worker) + "; the server has "
           + std::to_string(options_.workers) + ", from 0";
  Worker& state = worker_of(worker);
  if (std::find(state.past_sessions.begin(), state.past_sessions.end(), session)
      != state.past_sessions.end())
    return "another process has taken the place of worker " + std::to_string(worker)
           + "; stop this one";
  if (state.session != session) {
    if (state.session != 0)
      state.past_sessions.push_back(state.session);
    if (state.past_sessions.size() > kPastSessions)
      state.past_sessions.pop_front();
    if (state.has_session != session) { // else it has reported its step before
      state.has_version = 0;
      state.last_step = 0;
      if (state.session == 0) // another process reported it
        state.clock = 0;
    }
    state.session = state.has_session = session;
    state.counted = false;
    if (step > 0) {
      state.clock = std::max(state.clock, step - 1);
      state.last_step = std::max(state.last_step, step - 1);
    }
    // No worker waits for a replacement process to catch up. The first process of a worker begins
    // with step 0 at all synchronous servers.
    const bool first = state.presence == Worker::Presence::expected;
    for (const auto& other : workers_)
      if (step == 0 && (options_.max_lead || !first) && other->presence == Worker::Presence::here)
        state.clock = std::max(state.clock, other->clock);
  }
  state.presence = Worker::Presence::here;
  state.heard = now;
  return "";
}

void ParameterServer::leave(int worker, std::uint64_t session) {
  if (worker < 0 || worker >= options_.workers || worker_of(worker).session != session)
    return;
  worker_of(worker).presence = Worker::Presence::gone;
  if (has_begun())
    make_version_if_complete();
}

void ParameterServer::suspend_participation(int worker, std::uint64_t session, std::int64_t step,
                                            Time now) {
  if (worker < 0 || worker >= options_.workers || session == 0)
    return;
  Worker& state = worker_of(worker);
  if (state.session == 0) // it had joined an earlier server, and its next step is step + 1
    join(worker, session, now, std::min(step, std::numeric_limits<std::int64_t>::max() - 1) + 1);
  if (state.session != session || step < state.last_step)
    return;
  state.advance(step);
  state.presence = Worker::Presence::resting;
}

bool ParameterServer::heartbeat(int worker, std::uint64_t session, Time now) {
  if (worker < 0 || worker >= options_.workers || session == 0
      || worker_of(worker).session != session)
    return false;
  Worker& state = worker_of(worker);
  state.heard = now;
  // A lost worker that is alive after all: no worker waits for it to catch up. Synchronous servers
  // keep its steps, which must be the same at all of them.
  if (state.presence == Worker::Presence::gone && options_.max_lead)
    for (const auto& other : workers_)
      if (other->presence == Worker::Presence::here)
        state.clock = std::max(state.clock, other->clock);
  if (state.presence != Worker::Presence::resting)
    state.presence = Worker::Presence::here;
  return true;
}

void ParameterServer::set_worker_version(int worker, std::uint64_t session, std::int64_t step,
                                         std::int64_t version) {
  if (worker < 0 || worker >= options_.workers || session == 0)
    return;
  Worker& state = worker_of(worker);
  if (state.session != 0 && (state.session != session || step < state.last_step))
    return; // another process, or a message older than the last gradient
  if (state.session == 0 && state.has_session != session)
    state.last_step = state.clock = 0; // those of another process
  state.has_version = version;
  state.has_session = session;
  state.advance(step);
  if (has_begun())
    make_version_if_complete();
}

void ParameterServer::parameters_sent(int worker) {
  worker_of(worker).has_version = version_;
}

std::vector<std::string> ParameterServer::drop_silent_workers(Time now) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = *workers_[i];
    const bool came = worker.presence != Worker::Presence::expected;
    if (worker.presence == Worker::Presence::gone
        || now < worker.silence_deadline(options_, started_))
      continue;
    worker.presence = Worker::Presence::gone;
    ++counters_.lost_workers;
    const auto limit = came ? options_.worker_timeout : options_.join_timeout;
    words.push_back("worker " + std::to_string(i)
                    + (came ? " was silent for " : " has not joined for ")
                    + std::to_string(limit.count()) + " ms; it is no longer waited for");
  }
  if (!words.empty() && has_begun())
    make_version_if_complete();
  return words;
}

ParameterServer::Time ParameterServer::next_silence_deadline() const {
  Time next = Time::max();
  for (const auto& worker : workers_)
    if (worker->presence != Worker::Presence::gone)
      next = std::min(next, worker->silence_deadline(options_, started_));
  return next;
}

bool ParameterServer::has_workers(int first) const {
  return std::any_of(workers_.begin() + std::min(first, options_.workers), workers_.end(),
                     [](const auto& worker) {
                       return worker->presence == Worker::Presence::here
                              || worker->presence == Worker::Presence::resting;
                     });
}

} // namespace troupe::learner
