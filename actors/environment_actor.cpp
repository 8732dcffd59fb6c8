#include "actors/environment_actor.hpp"

#include <fstream>

#include "actors/files.hpp"
#include "actors/messages.pb.h"
#include "actors/system.hpp"

namespace troupe::actors {

const char* EnvironmentState::name = "environment";

namespace {

using Self = EnvironmentActor::stateful_pointer<EnvironmentState>;

std::int64_t steps_done(const EnvironmentState& state) {
  return (state.collector->agent_steps() - state.restored_agent_steps) / state.collector->lanes();
}

void answer_flushes(Self self) {
  auto& state = self->state;
  if (state.in_flight > 0 || steps_done(state) < state.granted)
    return;
  for (const auto& held : state.held)
    if (!held.empty())
      return;
  for (auto& promise : state.flushing)
    promise.deliver(steps_done(state));
  state.flushing.clear();
}

void resume_stepping(Self self) {
  if (!self->state.stepping) {
    self->state.stepping = true;
    self->send(self, step_atom_v);
  }
}

void send_insertion(Self self, std::size_t shard, const InsertionPtr& insertion) {
  self->request(self->state.options.shards[shard], kRequestDeadline, insert_atom_v, insertion)
      .then(
          [self, shard](done_atom) {
            --self->state.in_flight;
            auto& waited_for = self->state.unacknowledged;
            waited_for.erase(waited_for.find(shard));
            resume_stepping(self);
            answer_flushes(self);
          },
          [self, shard, insertion](caf::error& error) {
            if (error == caf::sec::request_timeout
                || error == Fault::late) // the shard drops it if the first one went in
                                         // after all
              send_insertion(self, shard, insertion);
            else
              self->quit(caf::make_error(Fault::lost,
                                         "insertion refused: " + explain(self->system(), error)));
          });
}

void send_held(Self self) {
  auto& state = self->state;
  if (state.hold && state.flushing.empty())
    return;
  for (std::size_t lane = 0; lane < state.held.size(); ++lane) {
    const auto shard =
        (static_cast<std::size_t>(state.options.first_lane) + lane) % state.options.shards.size();
    for (auto& queue = state.held[lane]; !queue.empty(); queue.pop_front()) {
      ++state.in_flight;
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

bool may_step(const EnvironmentState& state) {
  if (steps_done(state) >= state.granted)
    return false;
  if (!state.hold
      && state.in_flight
             >= static_cast<std::int64_t>(state.options.window) * state.collector->lanes())
    return false;
  // Parameters 0 are the untrained policy; the learner publishes them when it is built.
  return !state.collector->needs_policy()
         || (state.collector->parameter_version() >= state.least_version
             && state.collector->has_parameters());
}

/// Why it does not step; empty while it may.
std::string waiting(const EnvironmentState& state) {
  if (may_step(state))
    return {};
  if (steps_done(state) >= state.granted)
    return state.granted == 0 ? "the head has granted no steps"
                              : "has made all steps that the head granted";
  if (state.in_flight == 0)
    return "waits for the learner's parameters";
  std::string shards;
  for (const std::size_t shard :
       std::set<std::size_t>(state.unacknowledged.begin(), state.unacknowledged.end()))
    shards += (shards.empty() ? "" : ", ") + std::to_string(shard);
  return "waits until replay " + shards + " takes " + std::to_string(state.in_flight)
         + " insertions";
}

void step(Self self) {
  auto& state = self->state;
  state.stepping = false;
  state.watch.lap("environment.wait");
  if (!may_step(state)) {
    collect_insertions(state);
    send_held(self);
    answer_flushes(self);
    return;
  }
  for (int i = 0; i < state.options.insert_steps && may_step(state); ++i) {
    state.collector->choose_actions();
    state.watch.lap("environment.inference");
    state.collector->step_environments();
    state.watch.lap("environment.step");
  }
  collect_insertions(state);
  send_held(self);
  resume_stepping(self);
  answer_flushes(self);
}

Encoded report(Self self) {
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
  return encode(made);
}

} // namespace

EnvironmentActor::behavior_type environment_actor(Self self, EnvironmentOptions options) {
  auto& state = self->state;
  state.options = std::move(options);
  try {
    state.collector = state.options.make();
    state.held.resize(static_cast<std::size_t>(state.collector->lanes()));
  } catch (const std::exception& e) {
    self->quit(failure(e));
  }
  const auto guarded = [self](auto&& body) -> caf::result<done_atom> {
    try {
      body();
      return done_atom_v;
    } catch (const std::exception& e) {
      return failure(e);
    }
  };
  return {
      [self](publish_atom, const ParametersPtr& parameters) {
        try {
          self->state.collector->load_parameters(parameters->version, parameters->values);
        } catch (const std::exception& e) {
          self->quit(failure(e));
          return;
        }
        resume_stepping(self);
      },
      [self](grant_atom, std::int64_t steps, std::uint64_t least_version, bool hold) {
        self->state.granted = steps;
        self->state.least_version = least_version;
        self->state.hold = hold;
        resume_stepping(self);
        return done_atom_v;
      },
      [self](scale_atom, std::int64_t run_steps, std::int64_t lanes) {
        self->state.collector->share_run(run_steps, lanes);
      },
      [self](step_atom) {
        try {
          step(self);
        } catch (const std::exception& e) {
          self->quit(failure(e));
        }
      },
      [self](flush_atom) -> caf::result<std::int64_t> {
        auto promise = self->make_response_promise<std::int64_t>();
        self->state.flushing.push_back(promise);
        resume_stepping(self);
        return promise;
      },
      [self](report_atom) { return report(self); },
      [self, guarded](save_atom, const std::string& path) {
        return guarded([&] {
          std::vector<std::byte> bytes;
          self->state.collector->save_state(bytes);
          write_file(path, bytes);
        });
      },
      [self, guarded](load_atom, const std::string& path) {
        return guarded([&] {
          const auto bytes = read_file(path);
          auto& restored = self->state;
          restored.collector->load_state(bytes);
          restored.restored_agent_steps = restored.collector->agent_steps();
          restored.restored_environment_steps = restored.collector->environment_steps();
        });
      },
  };
}

} // namespace troupe::actors
