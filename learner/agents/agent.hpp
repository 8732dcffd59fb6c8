#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "learner/acting/policy.hpp"
#include "learner/agents/options.hpp"
#include "learner/replicas/replica.hpp"
#include "replay/chunks/spec.hpp"

namespace google::protobuf {
class Descriptor;
class Message;
} // namespace google::protobuf

namespace troupe::learner {

/// What an agent stores, and how the items are used.
struct Storage {
  /// Items are sequences of so many steps (see TransitionSpec); 0: n-step transitions, as the
  /// experiment says.
  std::int64_t sequence_steps = 0;
  std::int64_t sequence_period = 1;
  std::vector<env::ArraySpec> extras = {}; // that the policy gives for each step
  /// Each item is used once, in the order in which they were made, and environments wait while
  /// there are items for an update: the rate rule is a queue.
  bool on_policy = false;
  /// With on_policy: each sequence is played by the newest policy. Environments wait for the update
  /// that a batch makes before they play the next one, instead of playing ahead.
  bool newest_policy = false;
};

/// One algorithm with its options: how it acts and how it learns. Any thread.
class Agent {
public:
  virtual ~Agent() = default;

  virtual Storage storage() const { return {}; }
  /// Items of an update, over all replicas that share it.
  virtual std::int64_t batch_size() const = 0;
  /// Both throw std::invalid_argument naming the key if they do not fit the transitions.
  virtual std::unique_ptr<Policy> make_policy(const replay::TransitionSpec& transitions) const = 0;
  virtual std::unique_ptr<Replica>
  make_replica(const replay::TransitionSpec& transitions) const = 0;
};
using AgentPtr = std::shared_ptr<const Agent>;

/// The name of the first extra of sequences, int64: the parameter version that chose the action.
inline constexpr const char* kVersionColumn = "version";

/// What the agent stores of an environment that makes these transitions.
replay::TransitionSpec stored_by(const Agent& agent, replay::TransitionSpec transitions);

/// What is known of a run before its environments exist.
struct AgentSetting {
  struct Picture {
    int height = 0;
    int width = 0;
  };
  std::optional<Picture> picture; // none: states
  bool recorded = false;          // it learns from recorded episodes
  double samples_per_insert = 0;  // of replay; 0: none, or not known
};

/// A value that breaks a rule of several keys, or of the run.
struct OptionProblem {
  std::string key;  // within the agent's block, or of another block: "environment.pixels.height"
  std::string text; // "is 3; it must be below value_maximum, 2"
};

/// Which actions an agent chooses.
enum class ActionKind : std::uint8_t {
  continuous, // any number of continuous ones
  choice,     // one choice
  any,        // any number of continuous ones and choices
};
const char* action_text(ActionKind kind); // "continuous", "one choice", …

/// An algorithm in the list of agents.
struct AgentKind {
  std::string name; // of its room and its block in an experiment file: "d4pg"
  std::string help; // a line for `troupe list agents`
  bool states = true;
  bool pixels = false;
  bool both = false; // pixels and states together
  ActionKind actions = ActionKind::continuous;
  bool recurrent = false;                // it has a memory, or a key gives it one
  std::vector<std::string> metrics = {}; // of its replica's updates, in the order of the columns
  const google::protobuf::Descriptor* options = nullptr; // of its block
  std::map<std::string, std::string> defaults = {};      // of its keys, as in a file
  std::function<std::vector<OptionProblem>(const google::protobuf::Message& options,
                                           const AgentSetting& setting)>
      check = {};
  std::function<AgentPtr(const google::protobuf::Message& options)> make = {};
};

/// An agent whose replica and policy are made of its configuration and the transitions.
template <class Config, class MadeReplica, class MadePolicy>
class ConfiguredAgent : public Agent {
public:
  explicit ConfiguredAgent(Config config) : config_(std::move(config)) {}

  std::int64_t batch_size() const override { return config_.batch_size; }
  Storage storage() const override {
    if constexpr (requires { storage_of(config_); })
      return storage_of(config_);
    return {};
  }
  std::unique_ptr<Policy> make_policy(const replay::TransitionSpec& transitions) const override {
    return std::make_unique<MadePolicy>(config_, transitions);
  }
  std::unique_ptr<Replica> make_replica(const replay::TransitionSpec& transitions) const override {
    return std::make_unique<MadeReplica>(config_, transitions);
  }

private:
  Config config_;
};

/// The problems of an agent that learns from states alone and whose keys have no more rules.
template <class Config>
std::vector<OptionProblem> refuse_pixels(const Config&, const AgentSetting& setting) {
  if (!setting.picture)
    return {};
  return {{"environment.pixels", "is given, but this agent learns from states; leave the block "
                                 "out, or choose an agent for pixels (`troupe list agents`)"}};
}

/// The problems of an agent that learns from pixels alone, with a run from states.
inline std::vector<OptionProblem> refuse_states(const AgentSetting& setting) {
  if (setting.picture)
    return {};
  return {{"environment.pixels", "is not given, but this agent learns from pixels; give the block, "
                                 "or choose an agent for states (`troupe list agents`)"}};
}

/// Fills in what follows from a plain configuration and functions of it.
template <class Config>
AgentKind agent_kind(AgentKind kind, Members (*members)(Config&),
                     std::vector<OptionProblem> (*check)(const Config&, const AgentSetting&),
                     AgentPtr (*make)(const Config&)) {
  const auto read = [members](const google::protobuf::Message& options) {
    Config config;
    assign(options, members(config));
    return config;
  };
  Config defaults;
  kind.defaults = texts(members(defaults));
  kind.check = [read, check](const google::protobuf::Message& options,
                             const AgentSetting& setting) { return check(read(options), setting); };
  kind.make = [read, make](const google::protobuf::Message& options) {
    return make(read(options));
  };
  return kind;
}

} // namespace troupe::learner
