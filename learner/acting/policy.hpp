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
  /// [batch, vectors]: the arrays observed in addition to the frames (see TransitionSpec). Empty if
  /// there are none, or if frame_bytes covers whole observations in the environment's own format.
  std::span<const std::byte* const> vectors = {};
  /// [batch, state_size()]: the state of a recurrent policy for each episode, zeros at its
  /// beginning. Acting replaces it. Empty for other policies.
  std::span<float> state = {};
};

/// A source of random numbers. Its only state is the generator.
struct ActingRandom {
  std::mt19937_64 generator;

  double uniform(); // in [0, 1)
  double normal();  // standard
};

/// What exploration may depend on, in addition to the observations.
struct Exploration {
  std::int64_t steps = 0;      // agent steps of the whole run, not counting its random ones
  std::int64_t first_lane = 0; // index in the run of the first row's environment
  std::int64_t total_lanes = 1;
  std::span<ActingRandom* const> random;    // [batch]
  std::span<const std::uint8_t> first = {}; // [batch] 1: an episode's first step; empty: none
  /// [extras, batch]: where to write the extras of each step, except the version.
  std::span<std::byte* const> extras = {};

  bool begins(std::size_t row) const { return !first.empty() && first[row] != 0; }
};

/// The acting side of an agent: batched inference from a flat float32 parameter buffer. A policy
/// must be used by one thread at a time.
class Policy {
public:
  virtual ~Policy() = default;

  virtual std::int64_t parameter_count() const = 0;
  /// Size of the recurrent state of one episode, in numbers. 0: the policy depends only on the
  /// observation.
  virtual std::int64_t state_size() const { return 0; }
  /// Copies `parameters`. Throws std::invalid_argument if the count is wrong or a value is not
  /// finite.
  virtual void load(std::span<const float> parameters) = 0;
  /// Writes the best actions, without exploration, to `actions` [batch, action_size]. Continuous
  /// components are in [-1, 1]; choices are indices.
  virtual void act(const Observations& observations, std::span<float> actions) = 0;

  /// Writes the actions for collecting experience; the default calls act(). The actions are stored
  /// unchanged, while the environment receives them clipped to [-1, 1]. Throws std::runtime_error
  /// naming the row of an action that is not finite.
  virtual void explore(const Observations& observations, const Exploration& exploration,
                       std::span<float> actions);

  /// Whether explore() draws each action independently, with a probability that log_probability()
  /// returns.
  virtual bool has_density() const { return false; }
  /// Writes to `out` [batch] the log-probability with which explore() plays `actions` [batch,
  /// action_size], clipped to [-1, 1]; -infinity if it never plays them. A continuous component
  /// counts with its density (learner/acting/action_density.hpp). Replaces the state as explore()
  /// does. Throws std::logic_error unless has_density().
  virtual void log_probability(const Observations& observations, const Exploration& exploration,
                               std::span<const float> actions, std::span<double> out);

  /// Replaces the state as if `actions` [batch, action_size] had been played here, whatever the
  /// policy itself would choose. Used to replay recorded episodes. The default calls act(), which
  /// is correct for policies whose state depends only on observations.
  virtual void follow(const Observations& observations, std::span<const float> actions);

  /// Appends the exploration state of the rows' environments to `out`; a policy without such state
  /// appends nothing. load_exploration() restores it and returns the rest of `in`. It throws
  /// std::invalid_argument if the bytes are not such a state.
  virtual void save_exploration(std::vector<std::byte>& /*out*/) const {}
  virtual std::span<const std::byte> load_exploration(std::span<const std::byte> in) { return in; }

  /// The loaded policy as a list of layers, for export. It computes the same actions as act().
  /// nullopt: the policy cannot be exported.
  virtual std::optional<PolicyGraph> graph() const { return std::nullopt; }

  /// act() for `batch` contiguous observations. Allocates.
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
