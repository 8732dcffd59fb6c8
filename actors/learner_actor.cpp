#include "actors/learner_actor.hpp"

#include <filesystem>
#include <utility>

#include "actors/batch.hpp"
#include "actors/files.hpp"
#include "actors/messages.pb.h"
#include "actors/prefetch_actor.hpp"
#include "actors/system.hpp"
#include "learner/replicator.hpp"
#include "learner/safetensors.hpp"

namespace troupe::actors {

const char* LearnerState::name = "learner";

namespace {

using Self = LearnerActor::stateful_pointer<LearnerState>;

void publish(Self self) {
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

void answer_flushes(Self self) {
  auto& state = self->state;
  if (state.updates < state.granted)
    return;
  state.context->rest(); // others go on without it until more is granted
  if (state.flushing.empty())
    return;
  publish(self);
  // All updates are made when the shards have their priorities, too.
  auto answer = [promises = std::exchange(state.flushing, {}), updates = state.updates]() mutable {
    for (auto& promise : promises)
      promise.deliver(updates);
  };
  if (!state.prefetch || !state.options.feedback)
    return answer();
  self->request(*state.prefetch, kRequestDeadline, flush_atom_v)
      .then([answer](done_atom) mutable { answer(); },
            [self](caf::error& error) {
              self->quit(caf::make_error(Fault::lost, "priorities were not delivered: "
                                                          + explain(self->system(), error)));
            });
}

void take_priorities(const LearnerState& state, BatchBuffer& batch) {
  const at::Tensor priorities = state.replica->priorities();
  if (!state.options.feedback || !priorities.defined())
    return;
  if (priorities.scalar_type() != at::kDouble || priorities.numel() != state.options.rows)
    throw std::runtime_error("the replica's priorities() are not float64 [batch]");
  const at::Tensor dense = priorities.contiguous();
  const auto* values = dense.const_data_ptr<double>();
  batch.priorities.assign(values, values + dense.numel());
}

void start_prefetch(Self self) {
  auto& state = self->state;
  state.prefetch = self->spawn<caf::detached + caf::linked>(
      prefetch_actor, PrefetchOptions{.replica = state.options.replica,
                                      .rows = state.options.rows,
                                      .ahead = state.options.prefetch,
                                      .threads = state.options.gather_threads,
                                      .shards = state.options.shards,
                                      .transitions = state.options.transitions,
                                      .learner = caf::actor_cast<caf::actor>(self),
                                      .start = state.updates,
                                      .feedback = state.options.feedback,
                                      .weighted = state.options.weighted,
                                      .importance_exponent = state.options.importance_exponent,
                                      .importance_updates = state.options.importance_updates});
}

void build(Self self) {
  auto& state = self->state;
  learner::prepare_compute_thread(state.options.threads);
  if (state.options.strategy)
    state.strategy = state.options.strategy();
  auto seat =
      state.strategy ? state.strategy->seat(state.options.local_id) : learner::ReplicaSeat{};
  if (seat.devices.empty())
    seat.devices = {state.options.device};
  state.context = std::make_unique<learner::ReplicaContext>(std::move(seat), state.options.seed);
  state.replica = state.options.make();
  state.replica->build(*state.context);
  state.watch.lap("learner.build");
}

void step(LearnerState& state, const learner::TensorMap& batch) {
  state.watch.lap("learner.wait");
  state.metrics = state.replica->step_fn(*state.context, batch);
  state.metrics.merge(state.context->metrics());
  ++state.updates;
  state.watch.lap("learner.update");
}

void save(const LearnerState& state, const std::string& folder);

/// The newest one alone stays; others that begin anew may read it at any time.
void maybe_snapshot(LearnerState& state) {
  const auto& options = state.options;
  const auto begin = std::chrono::steady_clock::now();
  if (options.snapshot_folder.empty() || options.replica != 0 || begin < state.next_snapshot)
    return;
  const auto partial = options.snapshot_folder / ".partial";
  const auto complete = options.snapshot_folder / std::to_string(state.updates);
  std::filesystem::remove_all(partial);
  std::filesystem::create_directories(partial);
  save(state, partial.string());
  std::filesystem::remove_all(complete); // of the same number, from an earlier life
  std::filesystem::rename(partial, complete);
  for (const auto& [number, path] : numbered_folders(options.snapshot_folder))
    if (path != complete)
      std::filesystem::remove_all(path);
  const auto end = std::chrono::steady_clock::now();
  constexpr int kLeastShare = 20;
  state.next_snapshot = end
                        + std::max(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                       options.snapshot_period),
                                   kLeastShare * (end - begin));
  state.watch.lap("learner.snapshot");
}

void update(Self self, BatchPtr& batch) {
  auto& state = self->state;
  step(state, batch->tensors);
  take_priorities(state, *batch);
  self->send(*state.prefetch, batch_atom_v, std::move(batch));
  if (state.updates % state.options.publish_period == 0)
    publish(self);
  maybe_snapshot(state);
  answer_flushes(self);
}

/// The pipeline goes on behind the updates that were made: in a resumed run too.
void open_input(LearnerState& state) {
  const auto& context = *state.context;
  state.input = state.replica->input_fn({.num_replicas_in_sync = context.num_replicas_in_sync(),
                                         .input_pipeline_id = context.replica_id(),
                                         .num_input_pipelines = context.num_replicas(),
                                         .first_step = state.updates});
}

void update_from_own_data(Self self) {
  auto& state = self->state;
  const auto batch = state.input();
  if (batch.empty())
    throw std::runtime_error("the data ended after " + std::to_string(state.updates)
                             + " updates; an input of a run begins anew at its end");
  step(state, batch);
  state.rows += batch.begin()->second.size(0);
  maybe_snapshot(state);
  answer_flushes(self);
}

void start_data(Self self) {
  auto& state = self->state;
  if (!state.options.own_data) {
    if (!state.prefetch)
      start_prefetch(self);
    self->send(*state.prefetch, grant_atom_v, state.granted);
  } else if (state.updates < state.granted && !std::exchange(state.stepping, true)) {
    self->send(self, step_atom_v);
  }
}

Encoded evaluate(LearnerState& state) {
  wire::LearnerEvaluation made;
  const auto metrics = state.replica->evaluate(*state.context);
  made.mutable_metrics()->insert(metrics.begin(), metrics.end());
  if (state.options.replica == 0)
    for (const auto& [name, picture] : state.replica->pictures()) {
      if (picture.scalar_type() != at::kByte || picture.dim() != 3 || picture.size(0) != 3)
        throw std::runtime_error("the replica's picture \"" + name
                                 + "\" is not uint8 [3, height, width]");
      auto& one = *made.add_pictures();
      one.set_name(name);
      one.set_height(static_cast<std::int32_t>(picture.size(1)));
      one.set_width(static_cast<std::int32_t>(picture.size(2)));
      const auto rows = picture.permute({1, 2, 0}).contiguous();
      one.set_rgb(rows.const_data_ptr(), rows.nbytes());
    }
  state.watch.lap("learner.evaluate");
  return encode(made);
}

/// What went wrong ends the actor, and the wait of the other replicas for it.
void fail(Self self, const std::exception& e) {
  if (self->state.strategy)
    self->state.strategy->abort("replica " + std::to_string(self->state.options.replica) + ": "
                                + e.what());
  const bool others = dynamic_cast<const collectives::CollectiveError*>(&e) != nullptr;
  self->quit(others ? caf::make_error(Fault::lost, std::string(e.what())) : failure(e));
}

Encoded report(const LearnerState& state) {
  wire::LearnerReport made;
  made.set_replica(state.options.replica);
  made.set_updates(state.updates);
  made.set_rows(state.rows);
  made.mutable_metrics()->insert(state.metrics.begin(), state.metrics.end());
  made.mutable_seconds()->insert(state.watch.seconds().begin(), state.watch.seconds().end());
  return encode(made);
}

std::filesystem::path optimizer_file(const LearnerState& state, const std::string& folder) {
  const int replica = state.options.replica;
  return std::filesystem::path(folder)
         / (replica == 0 ? "optimizer.safetensors"
                         : "optimizer-" + std::to_string(replica) + ".safetensors");
}

void save(const LearnerState& state, const std::string& folder) {
  const std::map<std::string, std::string> about{{"updates", std::to_string(state.updates)}};
  if (state.options.replica == 0)
    learner::write_safetensors(std::filesystem::path(folder) / "learner.safetensors",
                               state.replica->parameters(), about);
  learner::write_safetensors(optimizer_file(state, folder), state.replica->optimizer_state(),
                             about);
}

void load(Self self, const std::string& folder) {
  auto& state = self->state;
  const auto parameters =
      learner::read_safetensors(std::filesystem::path(folder) / "learner.safetensors");
  auto file = optimizer_file(state, folder);
  if (!std::filesystem::exists(file)) // resumed with more replicas
    file = std::filesystem::path(folder) / "optimizer.safetensors";
  const auto optimizer = learner::read_safetensors(file);
  state.replica->load(parameters.tensors, optimizer.tensors);
  state.context->loaded();
  const auto updates = parameters.metadata.find("updates");
  if (updates == parameters.metadata.end())
    throw std::runtime_error(folder
                             + "/learner.safetensors does not say after how many updates it was "
                               "written; it is no checkpoint of a run");
  state.updates = state.granted = std::stoll(updates->second);
  state.input = {}; // one that was opened stood elsewhere
}

} // namespace

LearnerActor::behavior_type learner_actor(Self self, LearnerOptions options) {
  self->state.options = std::move(options);
  try {
    build(self);
  } catch (const std::exception& e) {
    self->quit(failure(e));
  }
  self->set_exit_handler([self](caf::exit_msg& why) {
    if (self->state.strategy && why.reason != caf::exit_reason::user_shutdown)
      self->state.strategy->abort("replica " + std::to_string(self->state.options.replica)
                                  + " stops: " + explain(self->system(), why.reason));
    self->quit(std::move(why.reason));
  });
  const auto guarded = [self](auto&& body) -> caf::result<done_atom> {
    try {
      body();
      return done_atom_v;
    } catch (const std::exception& e) {
      return failure(e);
    }
  };
  return {
      [self](grant_atom, std::int64_t updates) {
        self->state.granted = std::max(self->state.granted, updates);
        start_data(self);
        publish(self);
      },
      [self](batch_atom, BatchPtr& batch) {
        try {
          update(self, batch);
        } catch (const std::exception& e) {
          fail(self, e);
        }
      },
      [self](step_atom) {
        auto& state = self->state;
        state.stepping = false;
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
      [self](evaluate_atom) -> caf::result<Encoded> {
        try {
          return evaluate(self->state);
        } catch (const std::exception& e) {
          fail(self, e);
          return failure(e);
        }
      },
      [self](flush_atom) -> caf::result<std::int64_t> {
        auto promise = self->make_response_promise<std::int64_t>();
        self->state.flushing.push_back(promise);
        answer_flushes(self);
        return promise;
      },
      [self](report_atom) { return report(self->state); },
      [self, guarded](save_atom, const std::string& folder) {
        return guarded([&] { save(self->state, folder); });
      },
      [self, guarded](load_atom, const std::string& folder) {
        return guarded([&] { load(self, folder); });
      },
  };
}

} // namespace troupe::actors
