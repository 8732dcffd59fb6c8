#include "actors/roles/environment_actor.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>

#include "actors/protocol/messages.pb.h"
#include "actors/protocol/process_time.hpp"
#include "actors/protocol/system.hpp"
#include "actors/roles/files.hpp"
#include "env/state_bytes.hpp"
#include "env/text/joined.hpp"
#include "learner/replicas/replica_threads.hpp"

namespace troupe::actors {

const char* EnvironmentState::name = "environment";

namespace {

/// How long the actor waits for its sockets before it reads its mailbox.
constexpr std::chrono::milliseconds kSocketWait{2};

using EnvironmentSelf = EnvironmentActor::stateful_pointer<EnvironmentState>;

std::size_t in_flight(const EnvironmentState& state) {
  std::size_t insertions = state.unacknowledged.size();
  for (const auto& client : state.clients)
    insertions += client.in_flight();
  return insertions;
}

/// The number of insertions that no shard has accepted yet; some may not have been sent.
std::size_t unaccepted(const EnvironmentState& state) {
  return std::accumulate(state.held.begin(), state.held.end(), in_flight(state),
                         [](std::size_t sum, const auto& held) { return sum + held.size(); });
}

bool all_sent(const EnvironmentState& state) {
  return std::all_of(state.held.begin(), state.held.end(),
                     [](const auto& held) { return held.empty(); });
}

std::int64_t steps_done(const EnvironmentState& state) {
  return (state.collector->agent_steps() - state.restored_agent_steps) / state.collector->lanes();
}

void answer_flushes(EnvironmentSelf self) {
  auto& state = self->state;
  if (in_flight(state) > 0 || steps_done(state) < state.granted || !all_sent(state))
    return;
  for (auto& promise : state.flushing)
    promise.deliver(steps_done(state));
  state.flushing.clear();
}

void resume_stepping(EnvironmentSelf self) {
  if (!self->state.stepping) {
    self->state.stepping = true;
    self->send(self, step_atom_v);
  }
}

void send_insertion(EnvironmentSelf self, std::size_t shard, const InsertionPtr& insertion) {
  self->request(self->state.options.shards[shard], kRequestDeadline, insert_atom_v, insertion)
      .then(
          [self, shard](done_atom) {
            auto& waited_for = self->state.unacknowledged;
            waited_for.erase(waited_for.find(shard));
            resume_stepping(self);
            answer_flushes(self);
          },
          [self, shard, insertion](caf::error& error) {
            if (error == caf::sec::request_timeout
                || error == Fault::late) // the shard drops the duplicate if the first one arrived
              send_insertion(self, shard, insertion);
            else
              self->quit(caf::make_error(Fault::lost,
                                         "insertion refused: " + explain(self->system(), error)));
          });
}

/// Returns false if the window is full or the shard is silent; the caller tries again later.
bool sent(replay::ShardClient& client, const InsertionPtr& insertion) {
  try {
    return client.insert(insertion, std::chrono::steady_clock::now());
  } catch (const replay::ShardSilence&) {
    return false;
  }
}

void send_held(EnvironmentSelf self) {
  auto& state = self->state;
  if (state.hold && state.flushing.empty())
    return;
  const std::size_t shards = std::max(state.clients.size(), state.options.shards.size());
  for (std::size_t lane = 0; lane < state.held.size(); ++lane) {
    const auto shard = (static_cast<std::size_t>(state.options.first_lane) + lane) % shards;
    for (auto& queue = state.held[lane]; !queue.empty(); queue.pop_front()) {
      if (!state.clients.empty()) {
        if (!sent(state.clients[shard], queue.front()))
          break;
        continue;
      }
      state.unacknowledged.insert(shard);
      send_insertion(self, shard, queue.front());
    }
  }
}

void collect_insertions(EnvironmentState& state) {
  for (int lane = 0; lane < state.collector->lanes(); ++lane)
    if (auto insertion = state.collector->take(lane))
      state.held[static_cast<std::size_t>(lane)].push_back(std::move(insertion));
  auto ended = state.collector->take_episodes();
  state.episodes.insert(state.episodes.end(), ended.begin(), ended.end());
}

/// Returns the steps of each environment, including those before a resumption.
std::int64_t lane_steps(const EnvironmentState& state) {
  return state.collector->agent_steps() / state.collector->lanes();
}

/// Whether the actor waits for an update on the sequences that it has made. In a run that holds
/// insertions the rounds take care of that.
bool awaits_newer_policy(const EnvironmentState& state) {
  return !state.hold && state.options.turns.waits(lane_steps(state));
}

bool may_step(const EnvironmentState& state) {
  if (steps_done(state) >= state.granted || awaits_newer_policy(state))
    return false;
  if (!state.hold
      && std::ssize(state.held) * state.options.window
             <= static_cast<std::int64_t>(in_flight(state)))
    return false;
  if (!state.hold && !all_sent(state))
    return false;
  // Parameters 0 are the untrained policy; the learner publishes them when it is built.
  return !state.collector->needs_policy()
         || (state.collector->parameter_version() >= state.least_version
             && state.collector->has_parameters());
}

/// Returns why the actor does not step; empty if it may step.
std::string waiting(const EnvironmentState& state) {
  if (may_step(state))
    return {};
  if (steps_done(state) >= state.granted)
    return state.granted == 0 ? "the head has granted no steps"
                              : "has made all steps that the head granted";
  const std::size_t insertions = in_flight(state);
  if (insertions == 0)
    return "waiting for the learner's parameters"
           + std::string(awaits_newer_policy(state) ? ", newer than those of its last sequences"
                                                    : "");
  std::set<std::size_t> waited_for(state.unacknowledged.begin(), state.unacknowledged.end());
  for (std::size_t i = 0; i < state.clients.size(); ++i)
    if (state.clients[i].in_flight() > 0)
      waited_for.insert(i);
  return "waiting until replay " + env::joined(waited_for) + " takes " + std::to_string(insertions)
         + " insertions";
}

/// Waits a moment for insertions in flight to shards in other processes, then checks again.
void wait_for_clients(EnvironmentSelf self) {
  auto& state = self->state;
  const bool holds = all_sent(state) || (state.hold && state.flushing.empty());
  if (state.clients.empty() || (in_flight(state) == 0 && holds))
    return;
  do
    state.waited_for = (state.waited_for + 1) % state.clients.size();
  while (in_flight(state) > 0 && state.clients[state.waited_for].in_flight() == 0);
  state.clients[state.waited_for].wait(std::chrono::steady_clock::now() + kSocketWait);
  resume_stepping(self);
}

void step(EnvironmentSelf self) {
  auto& state = self->state;
  state.stepping = false;
  state.watch.lap("environment.wait");
  for (auto& client : state.clients)
    client.poll();
  if (!may_step(state)) {
    collect_insertions(state);
    send_held(self);
    wait_for_clients(self);
    answer_flushes(self);
    return;
  }
  for (int i = 0; i < state.options.insert_steps && may_step(state); ++i) {
    if (state.options.turns.begins(lane_steps(state)))
      state.collector->restart_sequences(); // the row at an episode's end would shift them
    state.collector->choose_actions();
    if (i == 0) // one step of several is enough
      state.actions.add(state.collector->actions());
    state.watch.lap("environment.inference");
    state.collector->step_environments();
    state.watch.lap("environment.step");
  }
  collect_insertions(state);
  send_held(self);
  state.watch.lap("environment.insert");
  resume_stepping(self);
  answer_flushes(self);
}

ProtoBytes report(EnvironmentSelf self) {
  auto& state = self->state;
  wire::EnvironmentReport made;
  made.set_actor(state.options.actor);
  made.set_incarnation(state.options.incarnation);
  const std::int64_t agent_steps = state.collector->agent_steps() - state.restored_agent_steps;
  made.set_agent_steps(agent_steps);
  made.set_environment_steps(state.collector->environment_steps()
                             - state.restored_environment_steps);
  made.set_frames(state.options.pixels ? agent_steps : 0);
  made.set_parameter_version(state.collector->parameter_version());
  for (const auto& episode : state.episodes) {
    made.add_episode_returns(episode.episode_return);
    made.add_episode_lengths(episode.environment_steps);
  }
  state.episodes.clear();
  for (auto& words : state.collector->take_failures())
    made.add_failures(std::move(words));
  made.mutable_seconds()->insert(state.watch.seconds().begin(), state.watch.seconds().end());
  made.set_waiting(waiting(state));
  made.set_insertions(static_cast<std::int64_t>(unaccepted(state)));
  *made.mutable_process() = process_time();
  return encode(made);
}

} // namespace

EnvironmentActor::behavior_type environment_actor(EnvironmentSelf self,
                                                  EnvironmentOptions options) {
  auto& state = self->state;
  state.options = std::move(options);
  learner::prepare_compute_thread(1); // more threads would not make inference faster
  quit_on_fault(self, [&] {
    state.scene = {};
    state.collector = state.options.make();
    state.actions = ActionHistograms(state.options.transitions);
    state.held.resize(static_cast<std::size_t>(state.collector->lanes()));
    for (const auto& endpoint : state.options.remote.endpoints)
      state.clients.emplace_back(*state.options.remote.context, endpoint,
                                 state.options.transitions);
  });
  return {
      [self](publish_atom, const ParametersPtr& parameters) {
        quit_on_fault(self, [&] {
          self->state.collector->load_parameters(parameters->version, parameters->values);
          self->state.options.turns.published();
          resume_stepping(self);
        });
      },
      [self](grant_atom, std::int64_t steps, std::uint64_t least_version, bool hold) {
        self->state.granted = steps;
        self->state.least_version = least_version;
        self->state.hold = hold;
        resume_stepping(self);
        return done_atom_v;
      },
      [self](scale_atom, std::int64_t run_steps, std::int64_t lanes) {
        self->state.collector->set_global_progress(run_steps, lanes);
        self->state.options.turns.set_lanes(lanes);
        resume_stepping(self);
      },
      [self](wire_atom, std::uint32_t shard, const std::string& endpoint) {
        self->state.clients.at(shard).move(endpoint);
      },
      [self](task_atom, const ProtoBytes& encoded) {
        const auto change = decode<wire::TaskChange>(encoded);
        if (const auto& task = self->state.options.task)
          task->set({change.options().begin(), change.options().end()});
      },
      [self](step_atom) { quit_on_fault(self, [self] { step(self); }); },
      [self](flush_atom) -> caf::result<std::int64_t> {
        auto promise = self->make_response_promise<std::int64_t>();
        self->state.flushing.push_back(promise);
        resume_stepping(self);
        return promise;
      },
      [self](report_atom) { return report(self); },
      [self](spans_atom, const ProtoBytes& order) {
        return encode(self->state.spans.answer(decode<wire::SpansOrder>(order)));
      },
      [self](measure_atom) { return encode(self->state.actions.take()); },
      [self](picture_atom, const ProtoBytes& order) {
        return answer_or_fault([&]() -> caf::result<ProtoBytes> {
          return encode(live_picture(*self->state.collector, self->state.options.transitions.frame,
                                     self->state.options.camera, decode<wire::PictureOrder>(order),
                                     self->state.scene));
        });
      },
      [self](save_atom, const std::string& path) {
        return done_or_fault([&] {
          std::vector<std::byte> bytes;
          self->state.collector->save_state(bytes);
          env::save_value(bytes, self->state.options.turns.saved());
          write_file(path, bytes);
        });
      },
      [self](load_atom, const std::string& path) {
        return done_or_fault([&] {
          const auto bytes = read_file(path);
          auto& restored = self->state;
          auto left = restored.collector->load_state(bytes);
          if (!left.empty()) { // older checkpoints end here
            PolicyTurns::Saved turns;
            env::load_value(left, turns, "turns");
            restored.options.turns.restore(turns);
          }
          restored.restored_agent_steps = restored.collector->agent_steps();
          restored.restored_environment_steps = restored.collector->environment_steps();
        });
      },
  };
}

} // namespace troupe::actors
