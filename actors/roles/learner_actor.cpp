#include "actors/roles/learner_actor.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "actors/protocol/batch.hpp"
#include "actors/protocol/messages.pb.h"
#include "actors/protocol/return_points_wire.hpp"
#include "actors/protocol/system.hpp"
#include "actors/roles/learner_evaluation.hpp"
#include "actors/roles/learner_files.hpp"
#include "actors/roles/learner_report.hpp"
#include "actors/roles/role_histograms.hpp"
#include "learner/replicas/replicator.hpp"

namespace troupe::actors {

const char* LearnerState::name = "learner";

namespace {

using LearnerSelf = LearnerActor::stateful_pointer<LearnerState>;

void publish(LearnerSelf self) {
  auto& state = self->state;
  if (!state.options.parameters || state.published == state.updates)
    return;
  const at::Tensor policy = state.replica->policy_parameters();
  if (!policy.defined())
    return;
  const at::Tensor flat = policy.contiguous();
  auto made = std::make_shared<Parameters>();
  made->version = static_cast<std::uint64_t>(state.updates);
  made->values.assign(flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel());
  self->send(*state.options.parameters, publish_atom_v, ParametersPtr(std::move(made)));
  state.published = state.updates;
  state.watch.lap("learner.publish");
}

void answer_flushes(LearnerSelf self) {
  auto& state = self->state;
  if (state.updates < state.granted)
    return;
  state.context->suspend_participation(); // other replicas continue without it until more updates
                                          // are granted
  if (state.flushing.empty())
    return;
  publish(self);
  // An update is complete once the shards have its priorities.
  auto answer = [promises = std::exchange(state.flushing, {}), updates = state.updates]() mutable {
    for (auto& promise : promises)
      promise.deliver(updates);
  };
  if (!state.prefetch || !state.options.batches.feedback)
    return answer();
  self->request(*state.prefetch, caf::infinite, flush_atom_v) // linked: it does not die alone
      .then([answer](done_atom) mutable { answer(); },
            [self](caf::error& error) {
              self->quit(caf::make_error(Fault::lost, "priorities were not delivered: "
                                                          + explain(self->system(), error)));
            });
}

void take_priorities(const LearnerState& state, BatchBuffer& batch) {
  const at::Tensor priorities = state.replica->priorities();
  if (!state.options.batches.feedback || !priorities.defined())
    return;
  if (priorities.scalar_type() != at::kDouble || priorities.numel() != state.options.batches.rows)
    throw std::runtime_error("the replica's priorities() are not float64 [batch]");
  const at::Tensor dense = priorities.contiguous();
  const auto* values = dense.const_data_ptr<double>();
  batch.priorities.assign(values, values + dense.numel());
}

void start_prefetch(LearnerSelf self) {
  auto& state = self->state;
  PrefetchOptions options = state.options.batches;
  options.replica = state.options.replica;
  options.seed = state.options.seed;
  options.learner = caf::actor_cast<caf::actor>(self);
  options.start = state.updates;
  options.timeline = state.spans.timeline();
  state.prefetch = self->spawn<caf::detached + caf::linked>(prefetch_actor, std::move(options));
}

/// Joins the other replicas. If they are lost meanwhile, this learner counts as lost too and may
/// restart with them.
learner::ReplicaAssignment meet_others(LearnerState& state) {
  try {
    return state.strategy->assignment(state.options.local_id);
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::exception& e) {
    throw collectives::CollectiveError(e.what());
  }
}

void build(LearnerSelf self) {
  auto& state = self->state;
  learner::prepare_compute_thread(state.options.threads, state.options.deterministic
                                                             ? learner::Products::ours
                                                             : learner::Products::fastest);
  state.thread_choice.emplace(state.options.threads, state.options.deterministic);
  if (state.options.strategy)
    state.strategy = state.options.strategy();
  auto assignment = state.strategy ? meet_others(state) : learner::ReplicaAssignment{};
  if (assignment.devices.empty())
    assignment.devices = {state.options.device};
  if (!assignment.timeline)
    assignment.timeline = state.spans.timeline().get();
  state.context =
      std::make_unique<learner::ReplicaContext>(std::move(assignment), state.options.seed);
  state.context->set_learning_rates(state.options.learning_rates);
  state.replica = state.options.make();
  state.replica->build(*state.context);
  if (state.options.learning_rates.changes() && !state.context->learning_rates_read())
    throw std::invalid_argument(
        "learner.learning_rate is given, but this agent uses its own optimizers, which do not "
        "follow it (ReplicaContext::learning_rates()); leave it out, or use an option of the "
        "agent");
  state.watch.lap("learner.build");
}

void step(LearnerState& state, const learner::TensorMap& batch) {
  state.watch.lap("learner.wait");
  state.thread_choice->run([&] { state.metrics = state.replica->step_fn(*state.context, batch); });
  state.metrics.merge(state.context->metrics());
  ++state.updates;
  state.watch.lap("learner.update");
}

/// Writes a snapshot of the learner's current state. Answers the request once it is written.
void write_snapshot(LearnerSelf self,
                    std::optional<caf::typed_response_promise<std::int64_t>> request = {}) {
  auto& state = self->state;
  auto snapshot =
      std::make_shared<const LearnerWrite>(captured(state, state.options.snapshot_folder, true));
  const auto done = [self, request, updates = snapshot->updates](const std::string& problem,
                                                                 auto took) mutable {
    constexpr int kLeastShare = 20;
    self->state.next_snapshot =
        std::chrono::steady_clock::now()
        + std::max(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                       self->state.options.snapshot_period),
                   kLeastShare * took);
    self->state.snapshot_problem = problem;
    if (request && problem.empty())
      request->deliver(updates);
    else if (request)
      request->deliver(caf::make_error(Fault::failed, problem));
  };
  state.writes->add({.write = [snapshot] { write_learner(*snapshot); }, .done = done});
}

void maybe_snapshot(LearnerSelf self) {
  auto& state = self->state;
  if (state.options.snapshot_folder.empty() || state.options.replica != 0
      || std::chrono::steady_clock::now() < state.next_snapshot)
    return;
  state.next_snapshot = std::chrono::steady_clock::time_point::max(); // until it is written
  write_snapshot(self);
  state.watch.lap("learner.snapshot");
}

void save(LearnerState& state, const std::string& folder) {
  state.writes->begin_checkpoint();
  auto part = std::make_shared<const LearnerWrite>(captured(state, folder, false));
  state.writes->add({.write = [part] { write_learner(*part); }, .done = {}, .checkpoint = true});
}

/// Returns the number of updates of a new snapshot, from which other learners restart.
caf::result<std::int64_t> snapshot_now(LearnerSelf self) {
  if (self->state.options.snapshot_folder.empty())
    return caf::make_error(Fault::bad_request, std::string("this run has no folder for snapshots"));
  auto promise = self->make_response_promise<std::int64_t>();
  write_snapshot(self, promise);
  return promise;
}

/// Ends the actor with an error and aborts the waits of other replicas for it. If the collective
/// failed, the actor stays for a while, so that restarting learners can use its state.
void fail(LearnerSelf self, const std::exception& e, bool may_stay = true) {
  auto& state = self->state;
  if (state.strategy)
    state.strategy->abort("replica " + std::to_string(state.options.replica) + ": " + e.what());
  if (dynamic_cast<const collectives::CollectiveError*>(&e) == nullptr)
    return self->quit(failure(e));
  state.stranded = e.what();
  if (!may_stay || state.options.snapshot_folder.empty())
    return self->quit(caf::make_error(Fault::lost, state.stranded));
  self->delayed_send(
      self, std::chrono::duration_cast<std::chrono::milliseconds>(state.options.stranded_period),
      lost_atom_v);
}

/// Makes the granted updates for which there are batches.
void use_batches(LearnerSelf self) {
  auto& state = self->state;
  while (!state.batches.empty() && state.updates < state.granted && state.stranded.empty()) {
    BatchPtr batch = std::move(state.batches.front());
    state.batches.pop_front();
    try {
      step(state, batch->tensors);
      take_priorities(state, *batch);
      self->send(*state.prefetch, batch_atom_v, std::move(batch));
      if (state.updates % state.options.publish_period == 0)
        publish(self);
      state.spans.note_update();
      maybe_snapshot(self);
      answer_flushes(self);
    } catch (const std::exception& e) {
      return fail(self, e);
    }
  }
}

/// Opens the input at the position after the updates already made, also in a resumed run.
void open_input(LearnerState& state) {
  const auto& context = *state.context;
  state.input = state.replica->input_fn({.num_replicas_in_sync = context.num_replicas_in_sync(),
                                         .input_pipeline_id = context.replica_id(),
                                         .num_input_pipelines = context.num_replicas(),
                                         .first_step = state.updates});
}

void update_from_own_data(LearnerSelf self) {
  auto& state = self->state;
  const auto batch = state.input();
  if (batch.empty())
    throw std::runtime_error("the data ended after " + std::to_string(state.updates)
                             + " updates; the input of a run must restart at its end");
  step(state, batch);
  state.rows += batch.begin()->second.size(0);
  state.spans.note_update();
  maybe_snapshot(self);
  answer_flushes(self);
}

void start_data(LearnerSelf self) {
  auto& state = self->state;
  if (!state.options.own_data) {
    if (!state.prefetch)
      start_prefetch(self);
    self->send(*state.prefetch, grant_atom_v, state.granted);
  } else if (state.updates < state.granted && !std::exchange(state.stepping, true)) {
    self->send(self, step_atom_v);
  }
}

/// A learner waits for what its prefetcher waits for.
caf::result<ProtoBytes> report(LearnerSelf self) {
  const LearnerState& state = self->state;
  wire::LearnerReport made = report_of(state);
  if (!state.prefetch || !made.waiting().empty())
    return encode(made);
  auto promise = self->make_response_promise<ProtoBytes>();
  self->request(*state.prefetch, kRequestDeadline, report_atom_v)
      .then(
          [promise, made](const std::string& waiting, std::int64_t batches) mutable {
            made.set_waiting(waiting);
            made.set_batches(batches);
            promise.deliver(encode(made));
          },
          [promise, made](const caf::error&) mutable { promise.deliver(encode(made)); });
  return promise;
}

void load(LearnerSelf self, const std::string& folder) {
  auto& state = self->state;
  state.updates = state.granted = load_learner(state, folder);
  state.input = {}; // an open input would be at another position
}

} // namespace

LearnerActor::behavior_type learner_actor(LearnerSelf self, LearnerOptions options) {
  self->state.options = std::move(options);
  self->state.writes.emplace(self);
  try {
    build(self);
  } catch (const std::exception& e) {
    fail(self, e, false);
  }
  self->set_exit_handler([self](caf::exit_msg& why) {
    if (self->state.strategy && why.reason != caf::exit_reason::user_shutdown)
      self->state.strategy->abort("replica " + std::to_string(self->state.options.replica)
                                  + " stops: " + explain(self->system(), why.reason));
    self->quit(std::move(why.reason));
  });
  return {
      [self](grant_atom, std::int64_t updates) {
        self->state.granted = std::max(self->state.granted, updates);
        start_data(self);
        publish(self);
        use_batches(self);
      },
      [self](batch_atom, BatchPtr& batch) {
        self->state.batches.push_back(std::move(batch));
        use_batches(self);
      },
      [self](wire_atom, std::uint32_t shard, const std::string& endpoint) {
        self->state.options.batches.remote.endpoints.at(shard) = endpoint;
        if (self->state.prefetch)
          self->send(*self->state.prefetch, wire_atom_v, shard, endpoint);
      },
      [self](step_atom) {
        auto& state = self->state;
        state.stepping = false;
        if (!state.stranded.empty())
          return;
        try {
          if (!state.input)
            open_input(state);
          if (state.updates < state.granted)
            update_from_own_data(self);
          start_data(self);
        } catch (const std::exception& e) {
          fail(self, e);
        }
      },
      [self](evaluate_atom) -> caf::result<ProtoBytes> {
        auto& state = self->state;
        try {
          const bool with_pictures = state.options.replica == 0;
          const auto made = encode(evaluated(*state.replica, *state.context, with_pictures));
          state.watch.lap("learner.evaluate");
          return made;
        } catch (const std::exception& e) {
          fail(self, e, false);
          return failure(e);
        }
      },
      [self](evaluate_atom, const ProtoBytes& points) {
        auto& state = self->state;
        state.watch.lap("learner.wait");
        return answer_or_fault([&]() -> caf::result<ProtoBytes> { // a fault does not end training
          const auto made = encode(compared(decode<wire::ReturnPoints>(points), *state.replica,
                                            state.options.batches.transitions));
          state.watch.lap("learner.evaluate");
          return made;
        });
      },
      [self](flush_atom, std::int64_t most) -> caf::result<std::int64_t> {
        auto promise = self->make_response_promise<std::int64_t>();
        auto& state = self->state;
        if (most != kAllGranted)
          state.granted = std::max(state.updates, most);
        if (state.prefetch)
          self->send(*state.prefetch, grant_atom_v, state.granted);
        state.flushing.push_back(promise);
        use_batches(self); // if the grant is higher than before
        answer_flushes(self);
        return promise;
      },
      [self](report_atom) { return report(self); },
      [self](spans_atom, const ProtoBytes& order) {
        return encode(self->state.spans.answer(decode<wire::SpansOrder>(order)));
      },
      [self](measure_atom) {
        self->state.watch.lap("learner.wait");
        return answer_or_fault([&]() -> caf::result<ProtoBytes> { // a fault does not end training
          const auto made = encode(learner_histograms(*self->state.replica));
          self->state.watch.lap("learner.histograms");
          return made;
        });
      },
      [self](save_atom, const std::string& folder) {
        return done_or_fault([&] { save(self->state, folder); });
      },
      [self](written_atom) { return self->state.writes->checkpoint_written(); },
      [self](save_atom) { return snapshot_now(self); },
      [self](load_atom, const std::string& folder) {
        return done_or_fault([&] { load(self, folder); });
      },
      [self](written_atom, const std::string& problem) { self->state.writes->on_written(problem); },
      [self](lost_atom) { self->quit(caf::make_error(Fault::lost, self->state.stranded)); },
  };
}

} // namespace troupe::actors
