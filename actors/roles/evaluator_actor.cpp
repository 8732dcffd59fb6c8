#include "actors/roles/evaluator_actor.hpp"

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
  const std::uint64_t seed = learner::split_seed(request.seed, {number});
  const bool keeps = number == 0 && request.points > 0;
  learner::ReturnPointRecorder recorder(static_cast<std::size_t>(request.points), request.discount);
  request.returns.push_back(learner::play_episode(*state.environment, *state.policy, seed, {},
                                                  keeps ? &recorder : nullptr));
  if (keeps)
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

} // namespace

EvaluatorActor::behavior_type evaluator_actor(EvaluatorSelf self, EvaluatorOptions options) {
  self->state.options = std::move(options);
  learner::prepare_compute_thread(1); // more threads would not make inference faster
  try {
    self->state.environment = self->state.options.environment();
    self->state.policy = self->state.options.policy();
  } catch (const std::exception& e) {
    self->quit(failure(e));
  }
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
      [self](evaluate_atom, const ProtoBytes& encoded) -> caf::result<ProtoBytes> {
        wire::EvaluationRequest request;
        try {
          request = decode<wire::EvaluationRequest>(encoded);
        } catch (const std::exception& e) {
          return failure(e);
        }
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
      },
      [](report_atom) { return encode(process_time()); },
      [self](step_atom) {
        try {
          play_one(self);
        } catch (const std::exception& e) {
          self->quit(failure(e));
        }
      },
  };
}

} // namespace troupe::actors
