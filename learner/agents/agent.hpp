#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
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

/// What an agent stores and how its items are used.
struct Storage {
  /// Number of steps in an item, which is a sequence (see TransitionSpec). 0: items are the
  /// experiment's n-step transitions.
  std::int64_t sequence_steps = 0;
  std::int64_t sequence_period = 1;
  /// Items are whole episodes, filled up to sequence_steps; longer ones are cut into several items.
  bool whole_episodes = false;
  std::vector<env::ArraySpec> extras = {}; // columns that the policy adds to each step
  bool running_return = false;             // transitions only, see TransitionSpec
  /// Items are used in insertion order, and environments wait while there are enough items for an
  /// update: the rate limiter is a queue.
  bool on_policy = false;
  /// With on_policy: number of updates in a row that use each item.
  std::int64_t item_uses = 1;
  /// With on_policy: the newest policy plays each sequence. After a batch, environments wait for
  /// its update before they play the next sequence, instead of playing ahead.
  bool newest_policy = false;
};

/// One algorithm with its options: how it acts and how it learns. Thread-safe.
class Agent {
public:
  virtual ~Agent() = default;

  virtual Storage storage() const { return {}; }
  /// Items per update, summed over all replicas that share it.
  virtual std::int64_t batch_size() const = 0;
  /// These functions throw std::invalid_argument naming the key if the agent does not fit the
  /// transitions.
  virtual std::unique_ptr<Policy> make_policy(const replay::TransitionSpec& transitions) const = 0;
  virtual std::unique_ptr<Replica>
  make_replica(const replay::TransitionSpec& transitions) const = 0;
};
using AgentPtr = std::shared_ptr<const Agent>;

/// The name of the first extra of sequences, int64: the version of the parameters that chose the
/// action.
inline constexpr const char* kVersionColumn = "version";

/// Returns the transitions that the agent stores for an environment with these transitions. Throws
/// std::invalid_argument if the agent's Storage contradicts itself.
replay::TransitionSpec stored_by(const Agent& agent, replay::TransitionSpec transitions);

/// What is known about a run before its environments exist.
struct AgentSetting {
  struct Picture {
    int height = 0;
    int width = 0;
  };
  std::optional<Picture> picture; // none: states
  bool recorded = false;          // the agent learns from recorded episodes
  double samples_per_insert = 0;  // of replay; 0: none, or unknown
};

/// A violation of a rule that involves several keys or the run.
struct OptionProblem {
  std::string key;  // key in the agent's block, or of another block: "environment.pixels.height"
  std::string text; // "is 3; it must be below value_maximum, 2"
};

/// The problems of all lists, in order.
std::vector<OptionProblem> all_problems(std::initializer_list<std::vector<OptionProblem>> lists);
/// Reports observations that an agent does not learn from: pictures without `pixels`, states
/// without `states`.
std::vector<OptionProblem> refused_observations(bool states, bool pixels,
                                                const AgentSetting& setting);

/// The kind of actions that an agent can choose.
enum class ActionKind : std::uint8_t {
  continuous, // any number of continuous components
  choice,     // one choice
  any,        // any number of continuous components and choices
};
const char* action_text(ActionKind kind); // "continuous", "one choice", …

/// Defaults of other blocks' keys that an agent has in place of the general ones; 0: the general
/// one.
struct RunDefaults {
  int n_step = 0;              // replay.n_step
  double updates_per_step = 0; // replay.samples_per_insert, divided by the batch size
  int publish_period = 0;      // learner.publish_period
};

/// An algorithm in the list of agents.
struct AgentKind {
  std::string name; // of its folder and of its block in an experiment file: "d4pg"
  std::string help; // one line for `troupe list agents`
  bool states = true;
  bool pixels = false;
  bool both = false; // pixels and states together
  ActionKind actions = ActionKind::continuous;
  bool recurrent = false; // it has a memory, or an option gives it one
  /// Its replicas work with every strategy. False: they average their gradients (multi_worker).
  bool asynchronous = true;
  std::vector<std::string> metrics = {}; // of its replica's updates, in column order
  RunDefaults run = {};
  const google::protobuf::Descriptor* options = nullptr; // schema of its block
  std::map<std::string, std::string> defaults = {};      // of its keys, as written in a file
  std::function<std::vector<OptionProblem>(const google::protobuf::Message& options,
                                           const AgentSetting& setting)>
      check = {};
  std::function<AgentPtr(const google::protobuf::Message& options)> make = {};
};

/// An agent that constructs its replica and policy from its configuration and the transitions.
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

/// Fills in the members of `kind` that can be derived from a plain configuration type and functions
/// of it.
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
  kind.check = [read, check, states = kind.states, pixels = kind.pixels](
                   const google::protobuf::Message& options, const AgentSetting& setting) {
    return all_problems(
        {refused_observations(states, pixels, setting), check(read(options), setting)});
  };
  kind.make = [read, make](const google::protobuf::Message& options) {
    return make(read(options));
  };
  return kind;
}

} // namespace troupe::learner
