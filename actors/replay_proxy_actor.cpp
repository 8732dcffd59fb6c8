#include "actors/replay_proxy_actor.hpp"

#include "actors/messages.pb.h"
#include "actors/system.hpp"

namespace troupe::actors {

const char* ReplayProxyState::name = "replay proxy";

namespace {

using Self = ReplayActor::stateful_pointer<ReplayProxyState>;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kGlance{
    2}; // between looks at the mailbox while the shard is busy
constexpr std::chrono::milliseconds kLook{50}; // the same while a sample is waited for

void look_again(Self self) {
  if (!std::exchange(self->state.polling, true))
    self->send(self, tick_atom_v);
}

void accept_insertions(ReplayProxyState& state) {
  while (state.unacknowledged.size()
         > state.client->in_flight()) { // accepted in the order in which they were sent
    state.unacknowledged.front().deliver(done_atom_v);
    state.unacknowledged.pop_front();
  }
}

std::shared_ptr<Sample> room_for(const ReplayProxyState& state, std::uint32_t rows) {
  const auto observation_bytes = state.transitions.observation().bytes();
  auto made = std::make_shared<Sample>();
  made->rows = rows;
  made->observation.resize(rows * observation_bytes);
  made->next_observation.resize(rows * observation_bytes);
  made->action.resize(rows * static_cast<std::size_t>(state.transitions.action_size));
  made->reward.resize(rows);
  made->discount.resize(rows);
  made->key.resize(rows);
  made->probability.resize(rows);
  made->table_items.resize(rows);
  return made;
}

/// The sample that was asked for first, or null when it does not come in a glance.
SamplePtr sample(ReplayProxyState& state) {
  const std::uint32_t rows = state.wanted.front().rows;
  auto made = room_for(state, rows);
  const replay::BatchView view{.observation = made->observation,
                               .next_observation = made->next_observation,
                               .action = made->action,
                               .reward = made->reward,
                               .discount = made->discount,
                               .key = made->key,
                               .probability = made->probability,
                               .table_items = made->table_items};
  return state.client->sample(rows, view, 0, Clock::now() + kLook) ? made : nullptr;
}

void serve_samples(ReplayProxyState& state) {
  auto& first = state.wanted.front();
  try {
    if (const SamplePtr made = sample(state)) {
      first.promise.deliver(made);
      state.wanted.pop_front();
      return;
    }
  } catch (const replay::ShardSilence&) { // it may come back
  }
  if (Clock::now() < first.deadline)
    return;
  first.promise.deliver(caf::make_error(Fault::late, "the shard let no sample through within "
                                                         + std::to_string(kRequestDeadline.count())
                                                         + " s"));
  state.wanted.pop_front();
}

void poll(Self self) {
  auto& state = self->state;
  state.polling = false;
  if (!state.wanted.empty())
    serve_samples(state);
  else if (!state.unacknowledged.empty())
    try {
      state.client->flush(Clock::now() + kGlance);
    } catch (const replay::ShardSilence&) { // it may come back
    }
  accept_insertions(state);
  if (!state.unacknowledged.empty() || !state.wanted.empty())
    look_again(self);
}

void connect(ReplayProxyState& state, const std::string& endpoint) {
  state.client = std::make_unique<replay::ShardClient>(*state.context, endpoint, state.transitions);
  for (auto& promise : std::exchange(state.unacknowledged, {}))
    promise.deliver(caf::make_error(Fault::late, std::string("the shard is elsewhere now")));
}

caf::error not_here(const char* what) {
  return caf::make_error(Fault::bad_request,
                         std::string(what) + " is asked of the shard itself, not of its proxy");
}

/// Runs what the data port's thread hands over, in order, as an actor that ends with the shard:
/// requests to the shard with their answers and deadlines.
caf::behavior port_behaviour(caf::event_based_actor* self, const ReplayActor& shard) {
  self->link_to(shard);
  return {[self](step_atom, const PortTaskPtr& task) { (*task)(self); }};
}

PortTaskPtr insert_task(const ReplayActor& shard, InsertionPtr insertion,
                        std::function<void()> accepted) {
  return std::make_shared<PortTask>([=](caf::event_based_actor* self) {
    self->request(shard, kRequestDeadline, insert_atom_v, insertion)
        .then([accepted](done_atom) { accepted(); },
              [](const caf::error&) {}); // the client sends it again
  });
}

PortTaskPtr sample_task(const ReplayActor& shard, std::uint64_t number, std::uint32_t rows,
                        std::function<void(std::vector<replay::Item>)> answer,
                        std::function<void(const std::string&)> refused) {
  return std::make_shared<PortTask>([=](caf::event_based_actor* self) {
    self->request(shard, kRequestDeadline, sample_atom_v, std::uint32_t{0}, number, rows)
        .then([answer](const SamplePtr& sample) { answer(sample->items); },
              [self, refused](const caf::error& e) { refused(explain(self->system(), e)); });
  });
}

PortTaskPtr update_task(const ReplayActor& shard, std::uint64_t number, PrioritiesPtr priorities,
                        std::function<void(const std::string&)> done) {
  return std::make_shared<PortTask>([=](caf::event_based_actor* self) {
    self->request(shard, kRequestDeadline, update_atom_v, std::uint32_t{0}, number, priorities)
        .then([done](done_atom) { done(""); },
              [self, done](const caf::error& e) { done(explain(self->system(), e)); });
  });
}

PortTaskPtr limit_task(const ReplayActor& shard, LimiterPtr limiter,
                       std::function<void(const std::string&)> done) {
  return std::make_shared<PortTask>([=](caf::event_based_actor* self) {
    self->request(shard, kRequestDeadline, limit_atom_v, limiter)
        .then([done](done_atom) { done(""); },
              [self, done](const caf::error& e) { done(explain(self->system(), e)); });
  });
}

PortTaskPtr report_task(const ReplayActor& shard, std::function<void(replay::ShardReport)> answer) {
  return std::make_shared<PortTask>([=](caf::event_based_actor* self) {
    self->request(shard, kRequestDeadline, report_atom_v)
        .then(
            [answer](const Encoded& encoded) {
              const auto report = decode<wire::ShardReport>(encoded);
              answer({.stats = {.items = report.items(),
                                .bytes = report.bytes(),
                                .disk_bytes = report.disk_bytes(),
                                .inserted = report.inserted(),
                                .sampled = report.sampled(),
                                .dropped_duplicates = report.duplicates(),
                                .updated_priorities = report.priorities(),
                                .late_priorities = report.late_priorities(),
                                .sampling_weight = report.sampling_weight()},
                      .why_waiting = report.waiting()});
            },
            [](const caf::error&) {});
  });
}

} // namespace

ReplayActor::behavior_type replay_proxy_actor(Self self, env::wire::Context* context,
                                              std::string endpoint,
                                              replay::TransitionSpec transitions) {
  self->state.transitions = transitions;
  self->state.context = context;
  try {
    connect(self->state, endpoint);
  } catch (const std::exception& e) {
    self->quit(failure(e));
  }
  return {
      [self](insert_atom, const InsertionPtr& insertion) -> caf::result<done_atom> {
        auto& state = self->state;
        try {
          if (!state.client->insert(insertion, Clock::now() + kGlance))
            return caf::make_error(Fault::late,
                                   std::string("the window of unacknowledged insertions is full"));
        } catch (const replay::ShardSilence& e) {
          return caf::make_error(Fault::late, std::string(e.what()));
        } catch (const std::exception& e) {
          return failure(e);
        }
        auto promise = self->make_response_promise<done_atom>();
        state.unacknowledged.push_back(promise);
        look_again(self);
        return promise;
      },
      [self](sample_atom, std::uint32_t, std::uint64_t,
             std::uint32_t rows) -> caf::result<SamplePtr> {
        auto promise = self->make_response_promise<SamplePtr>();
        self->state.wanted.push_back(
            {.rows = rows, .deadline = Clock::now() + kRequestDeadline, .promise = promise});
        look_again(self);
        return promise;
      },
      [self](update_atom, std::uint32_t, std::uint64_t,
             const PrioritiesPtr& priorities) -> caf::result<done_atom> {
        try {
          self->state.client->update_priorities(priorities->keys, priorities->values,
                                                Clock::now() + kRequestDeadline);
        } catch (const replay::ShardSilence&) { // what comes back has forgotten most of the rows
        } catch (const std::exception& e) {
          return failure(e);
        }
        return done_atom_v;
      },
      [](limit_atom, const LimiterPtr&) -> caf::result<done_atom> {
        return not_here("another limiter");
      },
      [](report_atom) -> caf::result<Encoded> { return not_here("a report"); },
      [](open_atom, bool) -> caf::result<done_atom> { return not_here("opening"); },
      [](save_atom, const std::string&, const std::string&) -> caf::result<done_atom> {
        return not_here("saving");
      },
      [](written_atom) -> caf::result<done_atom> { return not_here("saving"); },
      [](written_atom, const std::string&) {},
      [](save_atom) {},
      [](load_atom, const std::string&) -> caf::result<std::string> { return not_here("loading"); },
      [self](wire_atom, const std::string& where) {
        try {
          connect(self->state, where);
        } catch (const std::exception& e) {
          self->quit(failure(e));
        }
      },
      [self](tick_atom) {
        try {
          poll(self);
        } catch (const std::exception& e) {
          self->quit(failure(e));
        }
      },
  };
}

std::unique_ptr<replay::ShardServer>
serve_shard(caf::actor_system& system, env::wire::Context& context, const ReplayActor& shard,
            const replay::TransitionSpec& transitions, const std::string& endpoint) {
  const caf::actor port = system.spawn<caf::hidden>(port_behaviour, shard);
  auto number =
      std::make_shared<std::uint64_t>(0); // of the sample request; only the port's thread counts
  replay::ShardHandlers handlers;
  handlers.insert = [port, shard](InsertionPtr insertion, std::function<void()> accepted) {
    caf::anon_send(port, step_atom_v,
                   insert_task(shard, std::move(insertion), std::move(accepted)));
  };
  handlers.sample = [port, shard, number](std::int64_t rows,
                                          std::function<void(std::vector<replay::Item>)> answer,
                                          replay::Patience patience) {
    caf::anon_send(port, step_atom_v,
                   sample_task(shard, (*number)++, static_cast<std::uint32_t>(rows),
                               std::move(answer), std::move(patience.refused)));
  };
  auto updates = std::make_shared<std::uint64_t>(0); // likewise: one update for each sample
  handlers.update = [port, shard, updates](std::vector<std::uint64_t> keys,
                                           std::vector<double> values,
                                           std::function<void(const std::string&)> done) {
    auto priorities = std::make_shared<Priorities>();
    priorities->keys = std::move(keys);
    priorities->values = std::move(values);
    caf::anon_send(port, step_atom_v,
                   update_task(shard, (*updates)++, std::move(priorities), std::move(done)));
  };
  handlers.set_limiter = [port, shard](const replay::LimiterConfig& limiter,
                                       std::function<void(const std::string&)> done) {
    caf::anon_send(
        port, step_atom_v,
        limit_task(shard, std::make_shared<replay::LimiterConfig>(limiter), std::move(done)));
  };
  handlers.report = [port, shard](std::function<void(replay::ShardReport)> answer) {
    caf::anon_send(port, step_atom_v, report_task(shard, std::move(answer)));
  };
  return std::make_unique<replay::ShardServer>(
      context, transitions, std::move(handlers),
      replay::ShardServerOptions{.endpoint = endpoint, .transitions = transitions});
}

} // namespace troupe::actors
