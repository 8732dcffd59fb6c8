#include "actors/run/companion.hpp"

#include <algorithm>

#include "env/make/make.hpp"
#include "env/text/joined.hpp"

namespace troupe::actors {
namespace {

constexpr std::size_t kMostEpisodes = 100'000; // per report; the oldest are dropped

} // namespace

Companion::Companion(const RunContext& context, RunActors& actors)
    : context_(context), actors_(actors) {}

Companion::~Companion() {
  request_.reset();
  if (actor_)
    caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
}

void Companion::start() {
  if (!context_.config.companion)
    return;
  const auto& before = context_.before;
  if (before.companion())
    actors_.change_task({before.task_options().begin(), before.task_options().end()});
  actor_ = context_.config.companion(context_.system);
  if (!actor_)
    throw RunFailed("the run's companion is not an actor: RunConfig::companion returned none");
}

void Companion::add(const Update& update) {
  if (!actor_)
    return;
  episodes_.insert(episodes_.end(), update.episodes.begin(), update.episodes.end());
  if (episodes_.size() <= kMostEpisodes)
    return;
  const auto kept = episodes_.end() - kMostEpisodes / 2;
  context_.log("warning", "the companion has not answered: its next report lacks the oldest "
                              + std::to_string(kept - episodes_.begin()) + " episodes");
  episodes_.erase(episodes_.begin(), kept);
}

ProtoBytes Companion::report(const Progress& progress) {
  wire::EpisodesReport report;
  report.set_environment_steps(progress.environment_steps);
  for (const auto& [episode_return, length] : episodes_) {
    report.add_returns(episode_return);
    report.add_lengths(length);
  }
  for (const std::string& option : actors_.task_options())
    report.add_task_options(option);
  episodes_.clear();
  return encode(report);
}

void Companion::take(const ProtoBytes& answer) {
  const auto change = decode<wire::TaskChange>(answer);
  const std::vector<std::string> options(change.options().begin(), change.options().end());
  if (!change.changes() || options == actors_.task_options())
    return;
  env::EnvironmentConfig config = context_.config.environment;
  config.options = options;
  try {
    env::make_environment(config);
  } catch (const std::exception& refusal) {
    throw RunFailed("the companion's task options \"" + env::joined(options)
                    + "\" are refused: " + refusal.what());
  }
  actors_.change_task(options);
  context_.log("info", "the task's options are now \"" + env::joined(options) + "\"");
}

void Companion::serve(const Progress& progress) {
  if (problem_)
    throw RunFailed("asking the companion of the run: " + explain(context_.system, problem_));
  if (answer_) {
    request_.reset();
    take(*std::exchange(answer_, std::nullopt));
  }
  if (episodes_.empty() || request_)
    return;
  request_.emplace(actors_.request<ProtoBytes>(
      actor_, kRequestDeadline,
      [this](ProtoBytes& answer, caf::error& error) {
        problem_ = std::move(error);
        if (!problem_)
          answer_ = std::move(answer);
      },
      report_atom_v, report(progress)));
}

void Companion::serve_and_wait(const Progress& progress) {
  if (episodes_.empty())
    return;
  std::sort(episodes_.begin(), episodes_.end());
  ask(progress);
}

void Companion::ask(const Progress& progress) {
  if (!actor_)
    return;
  take(actors_.ask<ProtoBytes>(actor_, kRequestDeadline, "asking the companion of the run",
                               report_atom_v, report(progress)));
}

} // namespace troupe::actors
