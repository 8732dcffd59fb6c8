#include <algorithm>
#include <cctype>
#include <cmath>

#include "env/make/make.hpp"
#include "env/make/task_options.hpp"
#include "env/nearest_names.hpp"
#include "experiments/config/agent_choice.hpp"
#include "experiments/config/keys.hpp"
#include "experiments/config/members.hpp"
#include "experiments/config/on_data.hpp"
#include "experiments/config/parse.hpp"
#include "learner/replicas/strategy_options.hpp"
#include "replay/objects/object_address.hpp"

namespace troupe::experiments {
namespace {

class Checker {
public:
  explicit Checker(const Origins& origins) : origins_(origins) {}

  void complain(const std::string& key, const std::string& text) {
    complaints_.push_back(origin_of(origins_, key, "") + key + " " + text);
  }
  void complain(const std::string& key, int element, const std::string& text) {
    complaints_.push_back(origin_of(origins_, element_name(key, element), "") + key + " " + text);
  }
  std::vector<std::string> take() { return std::move(complaints_); }

private:
  const Origins& origins_;
  std::vector<std::string> complaints_;
};

std::string is(double value) {
  return "is " + number_text(value) + "; it must ";
}

void check_name(const Experiment& experiment, Checker& checker) {
  const std::string& name = experiment.name();
  const bool good = !name.empty() && name.front() != '.' && name.size() <= 100
                    && std::all_of(name.begin(), name.end(), [](unsigned char c) {
                         return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
                       });
  if (!good) {
    checker.complain("name",
                     "is \"" + name
                         + "\"; it must be up to 100 letters, digits, '_', '-' and '.', and not "
                           "begin with '.' (it becomes a folder)");
  }
}

void check_task(const Environment& environment, Checker& checker) {
  const std::string& task = environment.task();
  if (task.empty()) {
    checker.complain("environment.task", "is missing; name one of `troupe list environments`, e.g. "
                                         "environment { task: \"cartpole_balance\" }");
    return;
  }
  // The tasks of a plug-in are not known until it is loaded before a run.
  if (!environment.plugin().empty() || env::is_environment(task)) {
    return;
  }
  std::string text = "is \"" + task + "\"; there is no such task";
  const auto near = env::nearest_names(task, env::environment_names(), 3);
  for (std::size_t i = 0; i < near.size(); ++i) {
    text += (i == 0 ? "; did you mean " : " or ") + near[i];
  }
  checker.complain("environment.task", text + (near.empty() ? "" : "?")
                                           + " (`troupe list environments` names them all; a task "
                                             "from a plug-in needs environment.plugin)");
}

void check_wrappers(const Environment& environment, Checker& checker) {
  for (int i = 0; i < environment.options_size(); ++i) {
    const std::string& option = environment.options(i);
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0) {
      checker.complain("environment.options", i,
                       "has \"" + option + "\"; write key=value, e.g. \"length=2\"");
    } else if (environment.plugin().empty()) { // its constructor checks the options before a run
      const std::string problem = env::option_problem(environment.task(), option.substr(0, equals));
      if (!problem.empty()) {
        checker.complain("environment.options", i, "are refused: " + problem);
      }
    }
  }
  if (environment.action_rescale() && environment.action_clip() == 1) {
    checker.complain("environment.action_rescale",
                     "is true and environment.action_clip is 1, so there is nothing to rescale; "
                     "set environment.action_clip below 1");
  }
  const auto& normalization = environment.normalization();
  if (normalization.mode() == "frozen" && normalization.file().empty()) {
    checker.complain("environment.normalization.mode",
                     "is \"frozen\" and environment.normalization.file is empty; name a file that "
                     "`troupe check environment … --statistics FILE` wrote");
  }
  if (normalization.mode() == "off" && !normalization.file().empty()) {
    checker.complain("environment.normalization.file",
                     "is \"" + normalization.file()
                         + "\" and environment.normalization.mode is \"off\"; set the mode to "
                           "\"frozen\", or leave the file out");
  }
}

/// Each environment inserts into one shard, and a batch contains equally many rows from each shard.
void check_shards(const Experiment& experiment, Checker& checker) {
  const auto shards = experiment.replay().shards();
  const auto environments = std::int64_t{experiment.actors().environment()}
                            * experiment.actors().environments_per_actor();
  const std::string of_run = std::to_string(environments)
                             + ", the environments of the run (actors.environment * "
                               "actors.environments_per_actor)";
  if (shards > environments) {
    checker.complain("replay.shards", is(shards) + "be at most " + of_run
                                          + ": each inserts into one shard, and one without "
                                            "items would hold up the learner");
  } else if (experiment.deterministic() && environments % shards != 0) {
    checker.complain("replay.shards", is(shards) + "divide " + of_run
                                          + ": with deterministic: true each shard gets the same "
                                            "share of a round's items");
  }
}

/// The steps before learning starts must fit into the run. Agents that are on-policy ignore them.
void check_start(const Experiment& experiment, Checker& checker) {
  const auto& replay = experiment.replay();
  if (replay.minimum_items() > replay.capacity_items()) {
    checker.complain("replay.minimum_items", is(static_cast<double>(replay.minimum_items()))
                                                 + "be at most replay.capacity_items, "
                                                 + std::to_string(replay.capacity_items())
                                                 + ", or nothing is ever sampled");
  }
  const auto length =
      experiment.stop().environment_steps() / experiment.environment().action_repeat();
  if (replay.minimum_items() > length) {
    checker.complain("replay.minimum_items",
                     is(static_cast<double>(replay.minimum_items())) + "be at most "
                         + std::to_string(length)
                         + ", the agent steps of the run (stop.environment_steps / "
                           "environment.action_repeat), or nothing is ever learnt");
  }
  if (experiment.actors().random_steps() > length) {
    checker.complain("actors.random_steps",
                     is(static_cast<double>(experiment.actors().random_steps())) + "be at most "
                         + std::to_string(length) + ", the agent steps of the run");
  }
}

void check_replay(const Experiment& experiment, Checker& checker) {
  const auto& replay = experiment.replay();
  if (replay.capacity_items() < replay.shards()) {
    checker.complain("replay.capacity_items", is(static_cast<double>(replay.capacity_items()))
                                                  + "be at least replay.shards, "
                                                  + std::to_string(replay.shards()));
  }
  const bool one_item = replay.sampler() != "uniform" && replay.sampler() != "prioritized";
  if (one_item && replay.max_times_sampled() == 0) {
    checker.complain("replay.max_times_sampled",
                     is(0) + "be at least 1 with replay.sampler \"" + replay.sampler()
                         + "\", which chooses the same item until it is removed");
  }
  if (replay.max_times_sampled() > 0
      && replay.samples_per_insert() > static_cast<double>(replay.max_times_sampled())) {
    checker.complain("replay.samples_per_insert",
                     is(replay.samples_per_insert()) + "be at most replay.max_times_sampled, "
                         + std::to_string(replay.max_times_sampled())
                         + ", or items are removed before they are sampled that often");
  }
}

void check_supervision(const Experiment& experiment, Checker& checker) {
  const auto& supervision = experiment.supervision();
  if (supervision.lost_seconds() < 2 * supervision.heartbeat_seconds()) {
    checker.complain("supervision.lost_seconds", is(supervision.lost_seconds())
                                                     + "be at least twice "
                                                     + "supervision.heartbeat_seconds, "
                                                     + number_text(supervision.heartbeat_seconds())
                                                     + ", or a late heartbeat counts as death");
  }
}

/// Checks a key that may contain an address in an object store.
void check_address(const std::string& key, const std::string& text, Checker& checker) {
  try {
    if (!text.empty())
      replay::parse_object_address(text, key);
  } catch (const std::invalid_argument& refused) {
    checker.complain(key, std::string(refused.what()).substr(key.size() + 1));
  }
}

void check_checkpoints(const Experiment& experiment, Checker& checker) {
  const int best = experiment.checkpoint().keep_best();
  if (best > 0 && experiment.evaluation().period() == 0) {
    checker.complain("checkpoint.keep_best",
                     is(best)
                         + "be 0 while evaluation.period is 0: only evaluations during the run "
                           "tell which checkpoints are best");
  }
}

void check_data(const Experiment& experiment, Checker& checker) {
  if (experiment.checkpoint().keep_best() > 0) {
    checker.complain(
        "checkpoint.keep_best",
        is(experiment.checkpoint().keep_best())
            + "be 0 in a run on data, which has no return; keep more with checkpoint.keep");
  }
  const auto& data = experiment.data();
  if (data.path().empty()) {
    checker.complain("data.path", "is missing; name a folder or file, e.g. data { path: "
                                  "\"pictures\" } (`troupe dataset render` draws one)");
  }
  for (const auto& [key, path] :
       {std::pair("data.path", data.path()), {"data.validation", data.validation()}}) {
    if (replay::is_object_address(path))
      check_address(key, path, checker);
  }
  if (data.cache().empty()) {
    checker.complain("data.cache", "is empty; name a folder for copies of s3:// data, e.g. "
                                   "cache: \"datasets\"");
  }
  if (data.prefetch() < data.threads()) {
    checker.complain("data.prefetch", is(data.prefetch()) + "be at least data.threads, "
                                          + std::to_string(data.threads()));
  }
  const auto batch = experiment.has_classifier() ? experiment.classifier().batch_size()
                                                 : experiment.sngan().batch_size();
  if (experiment.learner().strategy() == "multi_worker"
      && batch % experiment.learner().replicas() != 0) {
    checker.complain(experiment.has_classifier() ? "classifier.batch_size" : "sngan.batch_size",
                     is(static_cast<double>(batch)) + "be a multiple of learner.replicas, "
                         + std::to_string(experiment.learner().replicas()));
  }
  if (data.crop() != "auto" && data.crop() != "none" && data.size() == 0) {
    checker.complain("data.size", "is 0; it must be the size in pixels that data.crop \""
                                      + data.crop() + "\" cuts out");
  }
}

void check_recording(const Experiment& experiment, Checker& checker) {
  if (experiment.recording().path().empty()) {
    checker.complain("recording.path", "is missing; name a folder that `troupe record` or `troupe "
                                       "dataset import` wrote");
  }
  if (replay::is_object_address(experiment.recording().path())) {
    check_address("recording.path", experiment.recording().path(), checker);
  }
  const auto& replay = experiment.replay();
  if (replay.sampler() != "uniform" && replay.sampler() != "prioritized") {
    checker.complain("replay.sampler", "is \"" + replay.sampler()
                                           + "\"; with the block recording it must be uniform or "
                                             "prioritized, because its items stay");
  }
}

bool has_servers(const std::string& strategy) {
  try {
    return learner::has_servers(learner::parse_strategy(strategy).kind);
  } catch (const std::invalid_argument&) { // another check reports it
    return false;
  }
}

void check_training(const Experiment& experiment, Checker& checker) {
  actors::RunConfig::Learner learner;
  assign(experiment.learner(), members(learner));
  for (const auto& [key, text] : learner.training.problems()) {
    checker.complain("learner." + key, text);
  }
  if (learner.training.resets.period > 0 && has_servers(learner.strategy)) {
    checker.complain("learner.resets.period",
                     is(static_cast<double>(learner.training.resets.period))
                         + "be 0 with learner.strategy \"" + learner.strategy
                         + "\", whose servers keep the parameters; choose multi_worker or "
                           "local_sgd");
  }
}

void check_agent(const Experiment& experiment, Checker& checker) {
  const auto [kind, block, options] = chosen_agent(experiment);
  const auto& environment = experiment.environment();
  learner::AgentSetting setting;
  setting.recorded = experiment.has_recording();
  if (!setting.recorded) {
    setting.samples_per_insert = experiment.replay().samples_per_insert();
  }
  if (environment.has_pixels()) {
    setting.picture = {environment.pixels().height(), environment.pixels().width()};
  }
  for (const auto& [key, text] : kind->check(*options, setting)) {
    const bool other_block = key.find('.') != std::string::npos;
    checker.complain(other_block ? key : block + "." + key, text);
    if (block == "agent") {
      return; // the agent cannot be made
    }
  }
  if (!kind->asynchronous && experiment.learner().replicas() > 1
      && experiment.learner().strategy() != "multi_worker") {
    checker.complain("learner.strategy", "is \"" + experiment.learner().strategy()
                                             + "\", but replicas of agent " + kind->name
                                             + " can only average their gradients; it must be "
                                               "\"multi_worker\"");
  }
  const auto agent = kind->make(*options);
  if (!setting.recorded && !agent->storage().on_policy) {
    check_start(experiment, checker);
  }
  const auto batch = agent->batch_size();
  if (experiment.learner().strategy() == "multi_worker" // others share batches differently
      && batch % experiment.learner().replicas() != 0) {
    checker.complain(block + ".batch_size", is(static_cast<double>(batch))
                                                + "be a multiple of learner.replicas, "
                                                + std::to_string(experiment.learner().replicas()));
  }
  const auto& replay = experiment.replay();
  const double least = std::max(static_cast<double>(batch), replay.samples_per_insert());
  if (!setting.recorded && replay.error_buffer() > 0 && replay.error_buffer() < least) {
    checker.complain("replay.error_buffer",
                     is(replay.error_buffer()) + "be 0 (automatic) or at least "
                         + number_text(least) + ", the larger of " + kind->name
                         + ".batch_size and replay.samples_per_insert, or actors and learner wait "
                           "for each other");
  }
}

} // namespace

std::vector<std::string> check_environment(const Environment& environment, const Origins& origins) {
  Checker checker(origins);
  check_task(environment, checker);
  check_wrappers(environment, checker);
  return checker.take();
}

std::vector<std::string> check_relations(const Experiment& experiment, const Origins& origins) {
  Checker checker(origins);
  check_supervision(experiment, checker);
  check_address("checkpoint.store", experiment.checkpoint().store(), checker);
  if (is_on_data(experiment)) {
    check_name(experiment, checker);
    check_data(experiment, checker);
    return checker.take();
  }
  check_task(experiment.environment(), checker);
  check_wrappers(experiment.environment(), checker);
  check_name(experiment, checker);
  if (experiment.has_recording()) {
    check_recording(experiment, checker);
  } else {
    check_shards(experiment, checker);
    check_replay(experiment, checker);
  }
  check_agent(experiment, checker);
  check_training(experiment, checker);
  check_checkpoints(experiment, checker);
  return checker.take();
}

} // namespace troupe::experiments
