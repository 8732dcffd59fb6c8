#include <algorithm>
#include <utility>

#include "actors/ask.hpp"
#include "actors/head.hpp"

namespace troupe::actors {

namespace {

constexpr std::chrono::minutes kEvaluationDeadline{60};

Picture picture_of(const wire::LearnerEvaluation::Picture& told) {
  const std::int64_t height = told.height(), width = told.width();
  if (height < 1 || width < 1 || told.rgb().size() != static_cast<std::size_t>(3 * height * width))
    throw RunFailed("a learner's picture \"" + told.name() + "\" has other bytes than its size");
  return {.height = told.height(),
          .width = told.width(),
          .rgb = {told.rgb().begin(), told.rgb().end()}};
}

} // namespace

/// Learners that bring their own data. They are granted updates up to the next evaluation and no
/// further, so that each evaluation is of the same update in every run.
void Head::train_on_data() {
  const auto period = config_.evaluation.period;
  if (period > 0 && next_evaluation_ <= progress_.updates) // resumed with another period
    next_evaluation_ = (progress_.updates / period + 1) * period;
  while (!time_to_stop())
    persist([&] {
      restart_lost();
      serve_requests();
      const auto window = static_cast<std::int64_t>(2 + progress_.updates_per_second);
      auto wanted = std::min(progress_.updates + std::min<std::int64_t>(window, 10'000),
                             config_.stop.updates);
      if (period > 0)
        wanted = std::min(wanted, next_evaluation_);
      if (wanted > updates_granted_)
        grant_learners(wanted);
      take_messages(kPoll);
      maybe_checkpoint();
      if (period > 0 && progress_.updates >= next_evaluation_
          && progress_.updates < config_.stop.updates) {
        pause();
        const auto measured = evaluate_learners(false);
        next_evaluation_ += period;
        if (callbacks_.evaluated)
          callbacks_.evaluated(measured);
        unpause();
      }
    });
}

Evaluated Head::evaluate_learners(bool final) {
  const auto learners = all(Role::learner);
  if (learners.empty())
    throw RunFailed("there is no learner to evaluate");
  const auto put = [&](const caf::actor& learner) {
    return self_->request(learner, kEvaluationDeadline, evaluate_atom_v);
  };
  std::vector<decltype(put(learners[0]))> questions; // all are asked before one is waited for
  for (const auto& learner : learners)
    questions.push_back(put(learner));
  std::vector<wire::LearnerEvaluation> answers;
  caf::error problem;
  for (auto& question : questions)
    question.receive(
        [&](const Encoded& got) { answers.push_back(decode<wire::LearnerEvaluation>(got)); },
        [&](caf::error& error) { problem = std::move(error); });
  if (problem) {
    take_messages(kAftermath); // throws the first cause if somebody died
    if (!to_restart_.empty())
      throw Disturbed();
    throw RunFailed("evaluating: " + explain(system_, problem));
  }
  Evaluated result{.updates = progress_.updates,
                   .training_seconds = progress_.training_seconds,
                   .returns = {},
                   .final = final,
                   .metrics = {answers[0].metrics().begin(), answers[0].metrics().end()},
                   .pictures = {}};
  for (const auto& picture : answers[0].pictures())
    result.pictures[picture.name()] = picture_of(picture);
  return result;
}

} // namespace troupe::actors
