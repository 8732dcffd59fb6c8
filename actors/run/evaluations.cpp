#include "actors/run/evaluations.hpp"

#include "learner/acting/collector.hpp"

namespace troupe::actors {

namespace {

constexpr std::chrono::minutes kEvaluationDeadline{60};

Picture picture_of(const wire::LearnerEvaluation::Picture& in) {
  const std::int64_t height = in.height(), width = in.width();
  if (height < 1 || width < 1 || in.rgb().size() != static_cast<std::size_t>(3 * height * width))
    throw RunFailed("the picture \"" + in.name() + "\" of a learner has "
                    + std::to_string(in.rgb().size()) + " bytes, not 3 * " + std::to_string(height)
                    + " * " + std::to_string(width));
  return {.height = in.height(), .width = in.width(), .rgb = {in.rgb().begin(), in.rgb().end()}};
}

Evaluated evaluated(const ProtoBytes& encoded, const Progress& progress, bool final) {
  const auto result = decode<wire::EvaluationResult>(encoded);
  return {.environment_steps = progress.environment_steps,
          .updates = static_cast<std::int64_t>(result.version()),
          .training_seconds = progress.training_seconds,
          .processor_seconds = progress.processor_seconds,
          .returns = {result.returns().begin(), result.returns().end()},
          .final = final};
}

} // namespace

ProtoBytes Evaluations::question(int episodes, std::uint64_t minimum_version) const {
  wire::EvaluationRequest request;
  request.set_episodes(episodes);
  request.set_seed(learner::split_seed(context_.config.seed, {5}));
  request.set_minimum_version(minimum_version);
  return encode(request);
}

void Evaluations::begin(const Progress& progress) {
  if (!actors_.is_up({Role::evaluator, 0}))
    return;
  const int episodes = context_.config.evaluation.episodes;
  running_ = actors_.request<ProtoBytes>(
      actors_.at({Role::evaluator, 0}), episodes * kRequestDeadline,
      [this, &progress](const ProtoBytes& encoded, const caf::error& error) {
        running_.reset();
        if (!error)
          add(evaluated(encoded, progress, false));
      },
      evaluate_atom_v, question(episodes, 0));
}

std::optional<Evaluated> Evaluations::next() {
  if (results_.empty())
    return std::nullopt;
  Evaluated result = std::move(results_.front());
  results_.pop_front();
  return result;
}

Evaluated Evaluations::evaluate(int episodes, std::uint64_t minimum_version,
                                const Progress& progress, bool final) {
  const auto encoded =
      actors_.ask<ProtoBytes>(actors_.at({Role::evaluator, 0}), episodes * kRequestDeadline,
                              "evaluating", evaluate_atom_v, question(episodes, minimum_version));
  return evaluated(encoded, progress, final);
}

Evaluated Evaluations::evaluate_learners(const Progress& progress, bool final) {
  const auto learners = actors_.all(Role::learner);
  if (learners.empty())
    throw RunFailed("there is no learner to evaluate");
  const auto answers =
      actors_.ask_all<ProtoBytes>(learners, kEvaluationDeadline, "evaluating", evaluate_atom_v);
  const auto first = decode<wire::LearnerEvaluation>(answers[0]);
  Evaluated result{.updates = progress.updates,
                   .training_seconds = progress.training_seconds,
                   .processor_seconds = progress.processor_seconds,
                   .returns = {},
                   .final = final,
                   .metrics = {first.metrics().begin(), first.metrics().end()},
                   .pictures = {}};
  for (const auto& picture : first.pictures())
    result.pictures[picture.name()] = picture_of(picture);
  return result;
}

} // namespace troupe::actors
