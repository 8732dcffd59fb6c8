#include "actors/run/metrics_actor.hpp"

#include <algorithm>
#include <utility>

#include "actors/protocol/process_time.hpp"
#include "actors/protocol/system.hpp"

namespace troupe::actors {

const char* MetricsState::name = "metrics";

namespace {

using MetricsSelf = MetricsActor::stateful_pointer<MetricsState>;
constexpr std::chrono::milliseconds kMetricsPeriod{100};
constexpr std::chrono::milliseconds kItemsPeriod{5}; // if updates wait for items
constexpr std::size_t kMostAsked = 200;              // maximum number of actors polled at a time
constexpr std::chrono::seconds kSilence{5};          // after which an actor is listed as silent
constexpr std::uint64_t kRecordPeriod = 20;          // ticks of kMetricsPeriod

UpdatePtr make_update(MetricsState& state, bool with_record = false) {
  const auto now = std::chrono::steady_clock::now();
  auto made = std::make_shared<Update>();
  made->number = ++state.updates;
  state.sum->add(process_time());
  made->progress =
      state.sum->progress(std::chrono::duration<double>(now - state.last).count(), state.training);
  made->state = state.sum->state(made->progress);
  made->episodes = std::exchange(state.episodes, {});
  made->warnings = std::exchange(state.warnings, {});
  made->progress.waits = state.sum->waits();
  for (const auto& watched : state.watched)
    if (watched.asked && now - watched.since > kSilence)
      made->progress.waits.push_back(
          std::string(role_name(watched.role)) + " " + std::to_string(watched.index)
          + " has not answered for "
          + std::to_string(
              std::chrono::duration_cast<std::chrono::seconds>(now - watched.since).count())
          + " s");
  state.last = now;
  if (with_record)
    made->record = std::make_shared<const wire::MetricsRecord>(state.sum->record());
  return made;
}

/// An actor reports only about itself.
void check_index(std::int32_t told, std::int32_t index) {
  if (told != index)
    throw std::invalid_argument("it is about number " + std::to_string(told));
}

/// Warns if the actor has a new problem with its snapshot.
void note_problem(MetricsState& state, const std::string& who, const std::string& told) {
  if (std::exchange(state.problems[who], told) != told && !told.empty())
    state.warnings.push_back(who + " has no new snapshot: " + told);
}

void add_report(MetricsState& state, Role role, std::int32_t index, const ProtoBytes& report) {
  if (role == Role::environment) {
    const auto told = decode<wire::EnvironmentReport>(report);
    check_index(told.actor(), index);
    const auto ended = state.sum->add(told);
    for (const std::string& words : told.failures())
      state.warnings.push_back(words + "; its episode is discarded");
    state.episodes.insert(state.episodes.end(), ended.begin(), ended.end());
  } else if (role == Role::learner) {
    const auto told = decode<wire::LearnerReport>(report);
    check_index(told.replica(), index);
    state.sum->add(told);
    note_problem(state, "learner " + std::to_string(index), told.problem());
  } else if (role == Role::parameter_server) {
    const auto told = decode<wire::ParameterServerReport>(report);
    check_index(told.shard(), index);
    state.sum->add(told);
  } else if (role == Role::replay) {
    const auto told = decode<wire::ShardReport>(report);
    check_index(told.shard(), index);
    state.sum->add(told);
    note_problem(state, "replay shard " + std::to_string(index), told.problem());
    if (state.spills[index].look(told.stats().failed_spills()))
      state.warnings.push_back(
          "replay shard " + std::to_string(index) + ": "
          + replay::failed_spills_text(told.stats().failed_spills(), told.spill_problem()));
  }
}

void try_report(MetricsState& state, Role role, std::int32_t index, const ProtoBytes& report) {
  try {
    add_report(state, role, index, report);
  } catch (const std::exception& problem) {
    state.warnings.push_back("a report of " + std::string(role_name(role)) + " "
                             + std::to_string(index) + " is ignored: " + problem.what());
  }
}

enum class Answer : std::uint8_t { report, late, gone };

void answered(MetricsSelf self, const caf::actor& who, Answer answer,
              const ProtoBytes& report = {});

void ask(MetricsSelf self, const caf::actor& who) {
  self->request(who, kRequestDeadline, report_atom_v)
      .then([self, who](const ProtoBytes& report) { answered(self, who, Answer::report, report); },
            [self, who](const caf::error& error) {
              const bool busy = error == caf::sec::request_timeout; // during a long evaluation
              answered(self, who, busy ? Answer::late : Answer::gone);
            });
}

/// Handles an answer or a death: completes requests that waited for all reports.
void answered(MetricsSelf self, const caf::actor& who, Answer answer, const ProtoBytes& report) {
  auto& state = self->state;
  const auto at = std::find_if(state.watched.begin(), state.watched.end(),
                               [&](const auto& w) { return w.who == who; });
  if (at == state.watched.end())
    return;
  const bool again = std::exchange(at->again, false) && answer == Answer::report;
  at->asked = again;
  at->since = std::chrono::steady_clock::now();
  if (answer == Answer::report)
    try_report(state, at->role, at->index, report);
  else if (answer == Answer::gone)
    state.watched.erase(at);
  if (again)
    ask(self, who);
  if (state.counts_items && answer == Answer::report && at->role == Role::replay)
    caf::anon_send(state.listener, update_atom_v, make_update(state));
  if (std::none_of(state.watched.begin(), state.watched.end(),
                   [](const auto& w) { return w.asked; })
      && !state.waiting.empty()) {
    const UpdatePtr update = make_update(state);
    caf::anon_send(state.listener, update_atom_v, update);
    for (auto& promise : state.waiting)
      promise.deliver(update);
    state.waiting.clear();
  }
}

/// Requests a report unless an answer is outstanding.
void poll_one(MetricsSelf self, MetricsState::Watched& watched) {
  if (std::exchange(watched.asked, true))
    return;
  watched.since = std::chrono::steady_clock::now();
  ask(self, watched.who);
}

/// Polls all actors for reports newer than this request; an answer already in flight may be older.
void poll_anew(MetricsSelf self) {
  for (auto& watched : self->state.watched) {
    watched.again = watched.asked;
    poll_one(self, watched);
  }
}

void poll_shards(MetricsSelf self) {
  for (auto& watched : self->state.watched)
    if (watched.role == Role::replay)
      poll_one(self, watched);
  self->delayed_send(self, kItemsPeriod, step_atom_v);
}

/// Polls the actors in turn, a few at a time if there are very many, so that the cost stays
/// bounded.
void poll_some(MetricsSelf self) {
  auto& state = self->state;
  const std::size_t count = std::min(kMostAsked, state.watched.size());
  for (std::size_t i = 0; i < count; ++i)
    poll_one(self, state.watched[state.next++ % state.watched.size()]);
}

/// Requests the evaluator's processor time, because it may have a separate process. It does not
/// answer while it plays an episode.
void ask_evaluator(MetricsSelf self) {
  auto& state = self->state;
  if (!state.evaluator || std::exchange(state.evaluator_asked, true))
    return;
  self->request(state.evaluator, kRequestDeadline, report_atom_v)
      .then(
          [self](const ProtoBytes& time) {
            self->state.evaluator_asked = false;
            self->state.sum->add(decode<wire::ProcessTime>(time));
          },
          [self](const caf::error&) { self->state.evaluator_asked = false; });
}

} // namespace

MetricsActor::behavior_type metrics_actor(MetricsSelf self, caf::actor listener, ProtoBytes before,
                                          bool counts_items) {
  self->state.listener = std::move(listener);
  self->state.sum = std::make_unique<MetricsSum>(decode<wire::RunState>(before), process_time());
  self->delayed_send(self, kMetricsPeriod, tick_atom_v);
  if (self->state.counts_items = counts_items; counts_items)
    self->send(self, step_atom_v);
  return {
      [self](subscribe_atom, Role role, std::int32_t index, const caf::actor& who) {
        if (role == Role::evaluator) {
          self->state.evaluator = who;
          return;
        }
        std::erase_if(self->state.watched,
                      [&](const auto& w) { return w.role == role && w.index == index; });
        self->state.watched.push_back({role, index, who});
      },
      [self](grant_atom, bool training) {
        caf::anon_send(self->state.listener, update_atom_v,
                       make_update(self->state)); // the time so far counts as before
        self->state.training = training;
      },
      [self](lost_atom, Role role, std::int32_t index) {
        if (role == Role::environment)
          self->state.sum->gone(index);
        const auto& watched = self->state.watched;
        const auto at = std::find_if(watched.begin(), watched.end(), [&](const auto& w) {
          return w.role == role && w.index == index;
        });
        if (at != watched.end())
          answered(self, caf::actor(at->who), Answer::gone);
      },
      [self](load_atom, const ProtoBytes& record) {
        self->state.sum->restore(decode<wire::MetricsRecord>(record));
      },
      [self](report_atom) -> caf::result<UpdatePtr> {
        auto promise = self->make_response_promise<UpdatePtr>();
        self->state.waiting.push_back(promise);
        poll_anew(self);
        return promise;
      },
      [self](step_atom) { poll_shards(self); },
      [self](tick_atom) {
        poll_some(self);
        ask_evaluator(self);
        auto& ticking = self->state;
        caf::anon_send(ticking.listener, update_atom_v,
                       make_update(ticking, ++ticking.ticks % kRecordPeriod == 0));
        self->delayed_send(self, kMetricsPeriod, tick_atom_v);
      },
  };
}

} // namespace troupe::actors
