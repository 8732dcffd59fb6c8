#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "actors/protocol/run_config.hpp"
#include "env/spec.hpp"
#include "experiments/exporting/contract.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "learner/acting/policy.hpp"

namespace troupe::experiments::commands {

/// Selects a checkpoint of a run.
struct CheckpointChoice {
  std::optional<std::int64_t> updates; // nullopt: the latest
  bool best = false;                   // the one with the best evaluation instead
};

/// Adds --checkpoint, which is also called --step, and --best.
void add_checkpoint_flags(CLI::App& command, CheckpointChoice& choice,
                          const std::string& absent = "the latest");

CheckpointFolder choose_checkpoint(const std::filesystem::path& run,
                                   const CheckpointChoice& choice);

/// A run's policy with the parameters of a checkpoint, and its contract.
struct TrainedPolicy {
  actors::RunConfig config;
  PolicyContract contract;
  env::EnvironmentSpec spec; // spec of the wrapped environment, without normalisation
  std::unique_ptr<learner::Policy> policy;
};

/// Throws std::invalid_argument if the run has no policy or its policy has no contract.
TrainedPolicy load_trained_policy(const std::filesystem::path& run,
                                  const CheckpointFolder& checkpoint);

} // namespace troupe::experiments::commands
