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

/// One number of an observation or action.
struct ContractElement {
  std::string name; // "joints[2]", "right_hip"
  std::string unit;
  double minimum = 0; // for an action; 0 and 0: unbounded. For a choice: 0 and n - 1.
  double maximum = 0;
  std::int64_t choices = 0;
  bool operator==(const ContractElement&) const = default;
};

/// One array of an observation as a machine provides it, for one frame, with its normalisation.
struct ContractArray {
  env::ArraySpec spec;
  std::vector<ContractElement> elements; // empty for a picture
  std::vector<double> mean = {};         // empty: no normalisation
  std::vector<double> deviation = {};
};

/// The inputs and outputs that a policy was trained with: names, order, units, scales and history
/// of its observations and actions. Plain data. A policy behind its contract takes observations as
/// the environment provides them, and its actions are within the environment's own bounds.
struct PolicyContract {
  std::string task, agent, experiment, version;
  std::int64_t updates = 0;
  /// An observation contains `history` frames of the first array, oldest first. At the beginning of
  /// an episode the first frame is repeated.
  std::vector<ContractArray> observations;
  std::vector<ContractElement> actions;
  std::vector<env::JointName> joints;
  int history = 1;
  double control_period_seconds = 0; // duration of one action, action repeat included
  double normalisation_clip = 0;     // normalised numbers are clipped to ± this value
  std::int64_t state_size = 0;       // for a policy with a memory
  /// environment action = offset + gain * clip(policy's number, ±limit), for continuous actions.
  struct Scale {
    double offset = 0;
    double gain = 1;
    double limit = 1;
    double operator()(double number) const;
  };
  std::vector<Scale> scales;
};

/// The contract for an environment. Throws std::invalid_argument if the environment normalises with
/// running statistics, because no checkpoint contains them.
PolicyContract contract_of(const env::EnvironmentConfig& config);

/// Normalises an observation in place. It must be as the environment provides it, without
/// normalisation.
void normalise(const PolicyContract& contract, const env::EnvironmentSpec& spec,
               std::span<std::byte> observation);

/// Formats a contract as JSON, in the order of the members.
std::string contract_text(const PolicyContract& contract);

/// Throws std::invalid_argument that names the file and the first difference if the contract in a
/// file (contract_text()) has other observations or actions, or a different history or control
/// period.
void check_contract(const PolicyContract& contract, const std::filesystem::path& file);

/// Compares the contracts of two policies in the same way. Returns the first difference; empty if
/// programs can use either policy.
std::string contract_difference(const PolicyContract& contract, const PolicyContract& other);

} // namespace troupe::experiments
