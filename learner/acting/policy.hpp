#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "learner/policy_graph/policy_graph.hpp"

namespace troupe::learner {

/// A batch of observations, read in place: `frames` [batch, stack], oldest first, of
/// frame_bytes each, in the environment's own format (uint8 pixels or float32 states).
struct Observations {
  std::span<const std::byte* const> frames;
  std::size_t frame_bytes = 0;
  std::int64_t batch = 0;
  /// [batch, vectors] what is observed beside the frames (see TransitionSpec). Empty where there
  /// are none, or where frame_bytes covers whole observations as an environment writes them.
  std::span<const std::byte* const> vectors = {};
  /// Of a recurrent policy: [batch, state_size()] of what it remembers of each episode, zeros at
  /// its beginning. Acting replaces it.
  std::span<float> state = {};
};

/// A source of random numbers whose state is one generator.
struct ActingRandom {
  std::mt19937_64 generator;

  double uniform(); // in [0, 1)
  double normal();  // standard
};

/// What exploration may depend on besides the observations.
struct Exploration {
  std::int64_t steps = 0;      // agent steps of the whole run, after its random ones
  std::int64_t first_lane = 0; // number in the run of the first row's environment
  std::int64_t total_lanes = 1;
  std::span<ActingRandom* const> random;    // [batch]
  std::span<const std::uint8_t> first = {}; // [batch] 1: of its episode; empty: none
  /// Where the extras of each step are written: [extras, batch], the version left out.
  std::span<std::byte* const> extras = {};

  bool begins(std::size_t row) const { return !first.empty() && first[row] != 0; }
};

/// The acting side of an agent: batched inference from a flat float32 parameter buffer. One thread
/// at a time.
class Policy {
public:
  virtual ~Policy() = default;

  virtual std::int64_t parameter_count() const = 0;
  /// Numbers that it remembers of an episode; 0: it acts on the observation alone.
  virtual std::int64_t state_size() const { return 0; }
  /// Copies `parameters`. Throws std::invalid_argument on a wrong count or a value that is not
  /// finite.
  virtual void load(std::span<const float> parameters) = 0;
  /// actions: [batch, action_size], without exploration: numbers in [-1, 1], choices as they are.
  virtual void act(const Observations& observations, std::span<float> actions) = 0;

  /// Actions to learn from; those of act() unless the agent explores. They are stored as they are;
  /// the environment gets them clipped to [-1, 1]. Throws std::runtime_error
  /// naming the row of an action that is not finite.
  virtual void explore(const Observations& observations, const Exploration& exploration,
                       std::span<float> actions);

  /// Whether explore() draws each action on its own, with a probability that log_probability()
  /// gives.
  virtual bool has_density() const { return false; }
  /// The logarithm of the probability with which explore() plays `actions` [batch, action_size],
  /// clipped to [-1, 1]: [batch], -infinity if it never does. A number between the bounds counts by
  /// its density (learner/acting/action_density.hpp). Replaces the state as explore() does. Throws
  /// std::logic_error unless has_density().
  virtual void log_probability(const Observations& observations, const Exploration& exploration,
                               std::span<const float> actions, std::span<double> out);

  /// Replaces the state as if `actions` [batch, action_size] had been played here, whatever it
  /// would choose: along recorded episodes. Unless overridden as act() does, for policies that
  /// remember only what they observe.
  virtual void follow(const Observations& observations, std::span<const float> actions);

  /// What explore() remembers of the rows' environments, appended to `out`; a policy that remembers
  /// nothing appends nothing. load_exploration() restores it and returns the rest of `in`; throws
  /// std::invalid_argument on bytes that are not such a state.
  virtual void save_exploration(std::vector<std::byte>& /*out*/) const {}
  virtual std::span<const std::byte> load_exploration(std::span<const std::byte> in) { return in; }

  /// The loaded policy as act() plays it, layer by layer, for export; nullopt: it does not say.
  virtual std::optional<PolicyGraph> graph() const { return std::nullopt; }

  /// The same as act() for `batch` contiguous observations. Allocates.
  void act(std::span<const std::byte> observations, std::int64_t batch, std::span<float> actions,
           std::span<float> state = {}) {
    std::vector<const std::byte*> whole(batch > 0 ? static_cast<std::size_t>(batch) : 1);
    const std::size_t bytes = observations.size() / whole.size();
    for (std::size_t i = 0; i < whole.size(); ++i)
      whole[i] = observations.data() + i * bytes;
    act({.frames = whole, .frame_bytes = bytes, .batch = batch, .state = state}, actions);
  }
};

} // namespace troupe::learner
