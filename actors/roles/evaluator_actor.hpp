#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "actors/protocol/messages.hpp"
#include "env/environment.hpp"
#include "learner/acting/policy.hpp"
#include "learner/acting/return_points.hpp"

namespace troupe::actors {

struct EvaluatorOptions {
  std::function<std::unique_ptr<env::Environment>()>
      environment; // called on the evaluator's thread
  std::function<std::unique_ptr<learner::Policy>()> policy;
};

struct EvaluatorState {
  static const char* name;
  struct Request {
    int episodes = 0;
    std::uint64_t seed = 0;
    std::uint64_t minimum_version = 0;
    int points = 0; // to keep of the first episode
    double discount = 1;
    std::vector<double> returns;
    learner::ReturnPoints kept;
    caf::typed_response_promise<ProtoBytes> promise;
  };
  EvaluatorOptions options;
  std::unique_ptr<env::Environment> environment;
  std::unique_ptr<learner::Policy> policy;
  ParametersPtr latest;
  std::uint64_t playing_version = 0;
  std::uint64_t failed_in_a_row = 0; // episodes
  std::deque<Request> requests;      // the first one is being played
};

/// Plays episodes without exploration noise, all episodes of a request with the same parameters,
/// and keeps steps of the first one if the request wants them. An episode that fails is logged to
/// stderr and played again with another seed; the actor quits with the error when four fail in a
/// row. Detached; reads its mailbox between episodes.
EvaluatorActor::behavior_type evaluator_actor(EvaluatorActor::stateful_pointer<EvaluatorState> self,
                                              EvaluatorOptions options);

} // namespace troupe::actors
