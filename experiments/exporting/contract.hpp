#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "env/environment_config.hpp"
#include "env/make/model_names.hpp"
#include "env/spec.hpp"

namespace troupe::experiments {

/// A number of an observation or action.
struct ContractElement {
  std::string name; // "joints[2]", "right_hip"
  std::string unit;
  double minimum = 0; // of an action; 0 and 0: no bounds. Of a choice: 0 and n - 1.
  double maximum = 0;
  std::int64_t choices = 0;
  bool operator==(const ContractElement&) const = default;
};

/// An array of an observation as a machine gives it, one frame, with its normalisation.
struct ContractArray {
  env::ArraySpec spec;
  std::vector<ContractElement> elements; // of a picture none
  std::vector<double> mean = {};         // empty: no normalisation
  std::vector<double> deviation = {};
};

/// What a policy was trained for: names, order, units, scales and history of what it observes and
/// does. Plain data. A policy behind its contract takes observations as the environment has them
/// and gives actions within the environment's own bounds.
struct PolicyContract {
  std::string task, agent, experiment, version;
  std::int64_t updates = 0;
  /// The first has `history` frames, oldest first, in an observation; at the beginning of an
  /// episode the first frame is repeated.
  std::vector<ContractArray> observations;
  std::vector<ContractElement> actions;
  std::vector<env::JointName> joints;
  int history = 1;
  double control_period_seconds = 0; // of an action, repeats counted
  double normalisation_clip = 0;     // numbers are clipped to ± this behind it
  std::int64_t state_size = 0;       // of a policy with a memory
  /// environment action = offset + gain * clip(policy's number, ±limit), for continuous numbers.
  struct Scale {
    double offset = 0;
    double gain = 1;
    double limit = 1;
    double operator()(double number) const;
  };
  std::vector<Scale> scales;
};

/// Of an environment. Throws std::invalid_argument if it normalises by running statistics, which
/// no checkpoint has.
PolicyContract contract_of(const env::EnvironmentConfig& config);

/// Of an observation as the environment has it without normalisation, in place.
void normalise(const PolicyContract& contract, const env::EnvironmentSpec& spec,
               std::span<std::byte> observation);

/// As JSON, in the order of the members.
std::string contract_text(const PolicyContract& contract);

/// Throws std::invalid_argument naming the file and the first thing that differs, if the contract
/// in a file (contract_text()) promises other observations or actions, another history or period.
void check_contract(const PolicyContract& contract, const std::filesystem::path& file);

/// The same between two policies; empty: programs can use either.
std::string contract_difference(const PolicyContract& contract, const PolicyContract& other);

} // namespace troupe::experiments
