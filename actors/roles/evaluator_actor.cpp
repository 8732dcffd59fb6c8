#include "actors/roles/evaluator_actor.hpp"

#include <cstdio>
#include <optional>
#include <string>

#include "actors/protocol/messages.pb.h"
#include "actors/protocol/process_time.hpp"
#include "actors/protocol/return_points_wire.hpp"
#include "actors/protocol/system.hpp"
#include "learner/acting/collector.hpp"
#include "learner/acting/evaluation.hpp"
#include "learner/replicas/replica_threads.hpp"

namespace troupe::actors {

const char* EvaluatorState::name = "evaluator";

namespace {

using EvaluatorSelf = EvaluatorActor::stateful_pointer<EvaluatorState>;

constexpr std::uint64_t kMostFailedEpisodes = 3; // in a row; one more ends the actor

/// Returns nullopt if the episode failed and may be played again, with another seed.
std::optional<double> try_episode(EvaluatorState& state, std::uint64_t seed,
                                  learner::ReturnPointRecorder* recorder) {
  try {
    const double played =
        learner::play_episode(*state.environment, *state.policy, seed, {}, recorder);
    state.failed_in_a_row = 0;
    return played;
  } catch (const std::exception& e) {
    if (++state.failed_in_a_row > kMostFailedEpisodes)
      throw;
    std::fprintf(stderr, "an evaluation's episode failed (%llu in a row): %s\n",
                 static_cast<unsigned long long>(state.failed_in_a_row), e.what());
    return std::nullopt;
  }
}

void play_one(EvaluatorSelf self) {
  auto& state = self->state;
  if (state.requests.empty())
    return;
  auto& request = state.requests.front();
  if (!state.latest || state.latest->version < request.minimum_version)
    return; // called again when parameters arrive
  if (request.returns.empty()) {
    state.policy->load(state.latest->values);
    state.playing_version = state.latest->version;
  }
  const auto number = static_cast<std::uint64_t>(request.returns.size());
  const std::uint64_t seed =
      state.failed_in_a_row == 0
          ? learner::split_seed(request.seed, {number})
          : learner::split_seed(request.seed, {number, state.failed_in_a_row});
  const bool keeps = number == 0 && request.points > 0;
  learner::ReturnPointRecorder recorder(static_cast<std::size_t>(request.points), request.discount);
  const auto played = try_episode(state, seed, keeps ? &recorder : nullptr);
  if (played)
    request.returns.push_back(*played);
  if (played && keeps)
    request.kept = recorder.finish();
  if (static_cast<int>(request.returns.size()) >= request.episodes) {
    wire::EvaluationResult result;
    result.mutable_returns()->Add(request.returns.begin(), request.returns.end());
    result.set_version(state.playing_version);
    if (!request.kept.returns.empty())
      *result.mutable_points() = to_wire(request.kept);
    request.promise.deliver(encode(result));
    state.requests.pop_front();
  }
  if (!state.requests.empty())
    self->send(self, step_atom_v);
}

caf::result<ProtoBytes> enqueue(EvaluatorSelf self, const wire::EvaluationRequest& request) {
  if (request.episodes() < 1)
    return caf::make_error(Fault::bad_request,
                           std::string("an evaluation needs at least one episode"));
  if (request.points() < 0 || request.points() > kMostReturnPoints)
    return caf::make_error(Fault::bad_request,
                           "an evaluation keeps 0 to " + std::to_string(kMostReturnPoints)
                               + " steps, not " + std::to_string(request.points()));
  auto promise = self->make_response_promise<ProtoBytes>();
  self->state.requests.push_back({.episodes = request.episodes(),
                                  .seed = request.seed(),
                                  .minimum_version = request.minimum_version(),
                                  .points = request.points(),
                                  .discount = request.discount(),
                                  .returns = {},
                                  .kept = {},
                                  .promise = promise});
  if (self->state.requests.size() == 1)
    self->send(self, step_atom_v);
  return promise;
}

} // namespace

EvaluatorActor::behavior_type evaluator_actor(EvaluatorSelf self, EvaluatorOptions options) {
  self->state.options = std::move(options);
  learner::prepare_compute_thread(1); // more threads would not make inference faster
  quit_on_fault(self, [self] {
    self->state.environment = self->state.options.environment();
    self->state.policy = self->state.options.policy();
  });
  return {
      [self](publish_atom, const ParametersPtr& parameters) {
        auto& state = self->state;
        const bool waiting =
            !state.requests.empty()
            && (!state.latest || state.latest->version < state.requests.front().minimum_version);
        state.latest = parameters;
        if (waiting)
          self->send(self, step_atom_v);
      },
      [self](evaluate_atom, const ProtoBytes& encoded) {
        return answer_or_fault(
            [&] { return enqueue(self, decode<wire::EvaluationRequest>(encoded)); });
      },
      [](report_atom) { return encode(process_time()); },
      [self](step_atom) { quit_on_fault(self, [self] { play_one(self); }); },
  };
}

} // namespace troupe::actors
