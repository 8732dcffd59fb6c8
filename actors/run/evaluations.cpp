#include "actors/run/evaluations.hpp"

#include "actors/protocol/return_points_wire.hpp"
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

Evaluated evaluated(const wire::EvaluationResult& result, const Progress& progress, bool final) {
  return {.environment_steps = progress.environment_steps,
          .updates = static_cast<std::int64_t>(result.version()),
          .training_seconds = progress.training_seconds,
          .processor_seconds = progress.processor_seconds,
          .returns = {result.returns().begin(), result.returns().end()},
          .final = final};
}

void add_comparison(Evaluated& result, const ProtoBytes& encoded) {
  const auto compared = decode<wire::LearnerEvaluation>(encoded);
  result.metrics.insert(compared.metrics().begin(), compared.metrics().end());
}

constexpr ActorKey kPlaying{Role::evaluator, 0};
constexpr ActorKey kComparing{Role::learner, 0};

} // namespace

ProtoBytes Evaluations::question(int episodes, std::uint64_t minimum_version) const {
  wire::EvaluationRequest request;
  request.set_episodes(episodes);
  request.set_seed(learner::split_seed(context_.config.seed, {5}));
  request.set_minimum_version(minimum_version);
  if (context_.config.learner.training.diagnostics_period > 0) {
    request.set_points(kMostReturnPoints);
    request.set_discount(context_.config.replay.discount);
  }
  return encode(request);
}

bool Evaluations::begin(const Progress& progress) {
  if (!actors_.is_up(kPlaying))
    return false;
  const int episodes = context_.config.evaluation.episodes;
  begun_ = progress;
  running_ = actors_.request<ProtoBytes>(
      actors_.at(kPlaying), episodes * kRequestDeadline,
      [this, progress](const ProtoBytes& encoded, const caf::error& error) {
        running_.reset();
        if (!error)
          return add_played(encoded, progress);
        if (error == caf::sec::request_receiver_down)
          return lost(); // it may succeed in another evaluator
        context_.log("warning", "the evaluation after " + std::to_string(progress.updates)
                                    + " updates has no result: " + explain(context_.system, error));
        lost_ = false;
        on_end_(progress);
      },
      evaluate_atom_v, question(episodes, 0));
  return true;
}

void Evaluations::cancel() {
  if (!running_)
    return;
  running_.reset();
  lost();
}

/// It may be the evaluation that ends its evaluators, so a second one has the last try.
void Evaluations::lost() {
  lost_ = !lost_;
  if (lost_) {
    context_.log("info", "the evaluation that its evaluator has not finished is due again");
    return;
  }
  context_.log("warning", "the evaluation after " + std::to_string(begun_.updates)
                              + " updates has no result: two evaluators were lost during it");
  on_end_(begun_);
}

/// First compares the critic with the returns, if there is something to compare.
void Evaluations::add_played(const ProtoBytes& encoded, const Progress& begun) {
  const auto played = decode<wire::EvaluationResult>(encoded);
  Evaluated result = evaluated(played, begun, false);
  if (!played.has_points() || !actors_.is_up(kComparing))
    return end(std::move(result), begun);
  running_ = actors_.request<ProtoBytes>(
      actors_.at(kComparing), kRequestDeadline,
      [this, result = std::move(result), begun](const ProtoBytes& compared,
                                                const caf::error& error) {
        Evaluated whole = result;
        running_.reset();
        if (!error)
          add_comparison(whole, compared);
        end(std::move(whole), begun);
      },
      evaluate_atom_v, encode(played.points()));
}

void Evaluations::end(Evaluated result, const Progress& begun) {
  add(std::move(result));
  lost_ = false;
  on_end_(begun);
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
  if (actors_.lost().contains(kPlaying))
    throw ActorLost();
  const auto encoded =
      actors_.ask<ProtoBytes>(actors_.at(kPlaying), episodes * kRequestDeadline, "evaluating",
                              evaluate_atom_v, question(episodes, minimum_version));
  const auto played = decode<wire::EvaluationResult>(encoded);
  Evaluated result = evaluated(played, progress, final);
  if (!played.has_points() || !actors_.is_up(kComparing))
    return result;
  try {
    add_comparison(result,
                   actors_.ask<ProtoBytes>(actors_.at(kComparing), kRequestDeadline, "comparing",
                                           evaluate_atom_v, encode(played.points())));
  } catch (const RunFailed& problem) { // a missing measurement does not end the run
    context_.log("warning",
                 std::string("the critic was not compared with the evaluation: ") + problem.what());
  }
  return result;
}

Evaluated Evaluations::evaluate_learners(const Progress& progress, bool final) {
  const auto learners = actors_.all(Role::learner);
  if (learners.empty())
    throw RunFailed("there is no learner to evaluate");
  const auto answers = actors_.ask_all<ProtoBytes>(
      learners, RunActors::Wait::one_step, kEvaluationDeadline, "evaluating", evaluate_atom_v);
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
