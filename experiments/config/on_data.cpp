#include "experiments/config/on_data.hpp"

#include "experiments/config/agent_choice.hpp"
#include "experiments/run_folder/metrics_file.hpp"
#include "learner/agents/training_config.hpp"

namespace troupe::experiments {

bool is_on_data(const Experiment& experiment) {
  return experiment.has_classifier() || experiment.has_sngan();
}

bool plays(const Experiment& experiment) {
  return !is_on_data(experiment) && !experiment.has_recording();
}

namespace {

/// The keys, among those given, that only matter if environment actors play.
std::vector<std::string> playing_keys(const Experiment& experiment) {
  std::vector<std::string> keys;
  const Replay& replay = experiment.replay();
  for (const auto& [key, given] :
       {std::pair{"actors", experiment.has_actors()},
        {"replay.minimum_items", replay.has_minimum_items()},
        {"replay.samples_per_insert", replay.has_samples_per_insert()},
        {"replay.error_buffer", replay.has_error_buffer()},
        {"replay.remover", replay.has_remover()},
        {"replay.max_times_sampled", replay.has_max_times_sampled()},
        {"stop.environment_steps", experiment.stop().has_environment_steps()}}) {
    if (given) {
      keys.emplace_back(key);
    }
  }
  return keys;
}

} // namespace

std::vector<std::string> check_blocks(const Experiment& experiment, const Origins& origins,
                                      const std::string& source) {
  std::vector<std::string> complaints;
  const auto complain = [&](const std::string& block, const std::string& text) {
    complaints.push_back(origin_of(origins, block, source) + block + " " + text);
  };
  if (experiment.has_classifier() && experiment.has_sngan()) {
    complain("sngan",
             "is given together with classifier; a run trains one workload, so remove one block");
  }
  if (!is_on_data(experiment)) {
    if (experiment.has_data()) {
      complain("data", "is given, but nothing learns from data; add classifier { } or sngan { }, "
                       "or remove the block");
    }
    if (const auto agents = agent_blocks(experiment); agents.size() > 1) {
      complain(agents[1], "is given together with " + agents[0]
                              + "; a run trains one agent, so remove one block");
    }
    if (experiment.has_recording()) {
      for (const std::string& key : playing_keys(experiment)) {
        complain(key, "is given, but a run with the block recording has no environment actors: "
                      "remove it (recording.updates is the run's length)");
      }
    }
    if (experiment.has_agent()) {
      try {
        chosen_agent(experiment);
      } catch (const std::invalid_argument& problem) {
        complain("agent", std::string("cannot be made: ") + problem.what());
      }
    }
    return complaints;
  }
  std::vector<std::string> blocks = agent_blocks(experiment);
  const std::string workload = experiment.has_classifier() ? "classifier" : "sngan";
  for (const auto& [block, given] :
       {std::pair{"environment", experiment.has_environment()},
        {"replay", experiment.has_replay()},
        {"recording", experiment.has_recording()},
        {"actors", experiment.has_actors()},
        {"evaluation", experiment.has_evaluation()},
        {"stop.environment_steps", experiment.stop().has_environment_steps()},
        {"stop.evaluation_return", experiment.stop().has_evaluation_return()},
        {"checkpoint.replay", experiment.checkpoint().has_replay()},
        {"learner.publish_period", experiment.learner().has_publish_period()},
        {"learner.prefetch", experiment.learner().has_prefetch()},
        {"learner.gather_threads", experiment.learner().has_gather_threads()},
        {"learner.learning_rate", experiment.learner().has_learning_rate()},
        {"learner.resets", experiment.learner().has_resets()},
        {"learner.diagnostics_period", experiment.learner().has_diagnostics_period()}}) {
    if (given) {
      blocks.push_back(block);
    }
  }
  for (const std::string& block : blocks) {
    complain(block, "applies to runs in an environment; a run with " + workload
                        + " learns from data: remove it (data has the run's length and period of "
                          "evaluations)");
  }
  return complaints;
}

void drop_unused(Experiment& experiment) {
  if (experiment.has_recording()) {
    experiment.clear_actors();
    Replay& replay = *experiment.mutable_replay();
    replay.clear_minimum_items();
    replay.clear_samples_per_insert();
    replay.clear_error_buffer();
    replay.clear_remover();
    replay.clear_max_times_sampled();
    experiment.mutable_stop()->clear_environment_steps();
  }
  if (!is_on_data(experiment)) {
    return;
  }
  experiment.clear_environment();
  experiment.clear_replay();
  experiment.clear_actors();
  experiment.clear_evaluation();
  experiment.mutable_stop()->clear_environment_steps();
  experiment.mutable_stop()->clear_evaluation_return();
  experiment.mutable_checkpoint()->clear_replay();
  experiment.mutable_learner()->clear_publish_period();
  experiment.mutable_learner()->clear_prefetch();
  experiment.mutable_learner()->clear_gather_threads();
  experiment.mutable_learner()->clear_learning_rate();
  experiment.mutable_learner()->clear_resets();
  experiment.mutable_learner()->clear_diagnostics_period();
}

std::vector<std::string> metrics_columns(const Experiment& experiment) {
  if (!is_on_data(experiment)) {
    std::vector<std::string> of_learner = chosen_agent(experiment).kind->metrics;
    if (experiment.learner().diagnostics_period() > 0) {
      const auto more = learner::TrainingConfig::diagnoses();
      of_learner.insert(of_learner.end(), more.begin(), more.end());
      of_learner.insert(of_learner.end(), {"evaluation_q_bias", "evaluation_q_bias_deviation",
                                           "evaluation_q_return"});
    }
    return MetricsFile::columns(of_learner);
  }
  std::vector<std::string> columns = {"kind",
                                      "updates",
                                      "samples",
                                      "training_seconds",
                                      "processor_seconds",
                                      "updates_per_second",
                                      "samples_per_second"};
  const auto add = [&](std::initializer_list<const char*> more) {
    columns.insert(columns.end(), more.begin(), more.end());
  };
  if (experiment.has_classifier()) {
    add({"loss", "accuracy", "learning_rate", "gradient_norm", "validation_loss", "validation_top1",
         "validation_top5"});
  } else {
    add({"critic_loss", "critic_real", "critic_fake", "generator_loss", "learning_rate",
         "validation_frechet_distance", "validation_class_score"});
  }
  add({"staleness_mean", "staleness_max", "dropped_gradients", "learning_rate_scale"});
  return columns;
}

std::string headline(const Experiment& experiment) {
  return experiment.has_classifier() ? "validation_top1"
         : experiment.has_sngan()    ? "validation_frechet_distance"
                                     : "evaluation_return";
}

} // namespace troupe::experiments
