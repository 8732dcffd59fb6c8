#include "tests/env/classic/golden_replay.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "env/classic/acrobot.hpp"
#include "env/classic/cart_pole.hpp"
#include "env/classic/classic.hpp"
#include "env/classic/frozen_lake.hpp"
#include "env/classic/mountain_car.hpp"
#include "env/classic/mountain_car_continuous.hpp"
#include "env/classic/pendulum.hpp"
#include "env/classic/taxi.hpp"
#include "env/npz.hpp"

namespace troupe::env {

using namespace classic;

namespace {

constexpr double kSigmas = 5; // standard errors of an estimate
constexpr std::uint64_t kResets = 2000;

/// NumPy computes squares of scalars as pow(x, 2), which differs from x * x in the last bit about
/// once in a thousand. Everything else agrees bit for bit.
struct Tolerance {
  double state = 0;
  double observation = 0;
  double reward = 0;
};

Tolerance tolerance_of(const std::string& task) {
  if (task == "Acrobot-v1") // squares in its dynamics: 1e-12 after 500 steps
    return {.state = 1e-9, .observation = 1e-6};
  if (task == "Pendulum-v1") // squares the torque, a float32, in its reward: 2.4e-10
    return {.reward = 1e-9};
  return {};
}

/// A recording with its arrays as rows of numbers, and our environment with the same options.
class Recording {
public:
  Recording(const std::string& folder, const std::string& name)
      : task(name.substr(0, name.find('.'))),
        source_((std::filesystem::path(folder) / (name + ".npz")).string()),
        arrays_(read_npz(source_)) {
    std::ifstream in(std::filesystem::path(folder) / "index.json");
    const auto entry = nlohmann::json::parse(in).at("tasks").at(name);
    environment = make_classic(task, entry.at("options").get<std::map<std::string, std::string>>());
  }

  const NpyArray& array(const std::string& key) const {
    const auto found = arrays_.find(key);
    if (found == arrays_.end())
      throw std::runtime_error(source_ + " has no array '" + key + "'");
    return found->second;
  }
  std::vector<double> numbers(const std::string& key) const { return array(key).as_doubles(); }
  bool has(const std::string& key) const { return arrays_.contains(key); }

  std::string task;
  std::unique_ptr<Environment> environment;

private:
  std::string source_;
  std::map<std::string, NpyArray> arrays_;
};

std::span<const double> row(const std::vector<double>& numbers, std::size_t i, std::size_t rows) {
  const std::size_t columns = numbers.size() / rows;
  return std::span(numbers).subspan(i * columns, columns);
}

/// A saved state of these games begins with the game's state.
template <class State>
State state_of(std::span<const double> numbers) {
  State state{};
  std::memcpy(&state, std::as_bytes(numbers).data(), numbers.size_bytes());
  return state;
}

template <class State>
std::vector<double> numbers_of(const State& state, std::size_t count) {
  std::vector<double> numbers(count);
  std::memcpy(numbers.data(), &state, count * sizeof(double));
  return numbers;
}

template <class Game>
class NumbersReplay {
public:
  explicit NumbersReplay(const Recording& recording)
      : recording_(recording),
        environment_(dynamic_cast<GameEnvironment<Game>&>(*recording.environment)),
        tolerance_(tolerance_of(recording.task)),
        observation_(environment_.spec().observation_bytes() / sizeof(double)) {}

  ClassicReplay run() {
    compare_steps("");
    compare_steps("probe_");
    compare_starts();
    return std::move(report_);
  }

private:
  void differ(const std::string& text) { report_.differences.push_back(text); }

  void compare_steps(const std::string& prefix) {
    const auto states = recording_.numbers(prefix + "state");
    const auto actions = recording_.numbers(prefix + "action");
    const auto next_states = recording_.numbers(prefix + "next_state");
    const auto observations = recording_.numbers(prefix + "obs");
    const auto rewards = recording_.numbers(prefix + "reward");
    const auto terminated = recording_.numbers(prefix + "terminated");
    const bool episodes = prefix.empty();
    const auto truncated = episodes ? recording_.numbers("truncated") : std::vector<double>{};
    const auto first = episodes ? recording_.numbers("first") : std::vector<double>{};
    const std::size_t count = actions.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::string at = prefix + "step " + std::to_string(i) + ": ";
      if (!episodes || first[i] != 0) {
        auto state = state_of<typename Game::State>(row(states, i, count));
        if constexpr (requires { state.rounded; })
          state.rounded = episodes ? 0 : 1;
        environment_.set_state(state);
      }
      const TimeStep made = environment_.step(std::span(actions).subspan(i, 1),
                                              std::as_writable_bytes(std::span(observation_)));
      compare_state(at, row(next_states, i, count));
      compare_observation(at, row(observations, i, count));
      const double reward_error = std::abs(made.reward - rewards[i]);
      report_.reward_error = std::max(report_.reward_error, reward_error);
      if (!(reward_error <= tolerance_.reward))
        differ(at + "the reward is " + std::to_string(made.reward) + ", Gymnasium's "
               + std::to_string(rewards[i]));
      if ((made.discount == 0) != (terminated[i] != 0))
        differ(at + "only one of both terminates");
      const bool last = terminated[i] != 0 || (episodes && truncated[i] != 0);
      if ((made.step_type == StepType::last) != last)
        return differ(at + "only one of both is the last"); // the episodes have diverged
      ++report_.compared;
    }
  }

  void compare_state(const std::string& at, std::span<const double> theirs) {
    const auto ours = numbers_of(environment_.state(), theirs.size());
    for (std::size_t k = 0; k < theirs.size(); ++k) {
      const double error = std::abs(ours[k] - theirs[k]);
      report_.state_error = std::max(report_.state_error, error);
      if (!(error <= tolerance_.state))
        differ(at + "state[" + std::to_string(k) + "] differs by " + std::to_string(error));
    }
  }

  /// Gymnasium's observations are float32, like FlatState's.
  void compare_observation(const std::string& at, std::span<const double> theirs) {
    if (observation_.size() != theirs.size())
      return differ(at + "the observation has another size");
    for (std::size_t k = 0; k < theirs.size(); ++k) {
      const auto ours = static_cast<double>(static_cast<float>(observation_[k]));
      if (!(std::abs(ours - theirs[k]) <= tolerance_.observation))
        differ(at + "observation[" + std::to_string(k) + "] differs");
    }
  }

  /// Compares the quantiles of the initial states of 2000 episodes.
  void compare_starts() {
    const NpyArray& array = recording_.array("start_quantiles");
    const auto theirs = array.as_doubles();
    const auto rows = static_cast<std::size_t>(array.shape[0]);
    const std::size_t columns = theirs.size() / rows;
    std::vector<std::vector<double>> starts(columns);
    for (std::uint64_t seed = 0; seed < kResets; ++seed) {
      environment_.reset(seed, std::as_writable_bytes(std::span(observation_)));
      const auto state = numbers_of(environment_.state(), columns);
      for (std::size_t k = 0; k < columns; ++k)
        starts[k].push_back(state[k]);
    }
    for (std::size_t k = 0; k < columns; ++k) {
      std::ranges::sort(starts[k]);
      const double range = theirs[(rows - 1) * columns + k] - theirs[k];
      for (std::size_t i = 0; i < rows; ++i) {
        const double at = static_cast<double>(i) / static_cast<double>(rows - 1);
        const double ours = starts[k][static_cast<std::size_t>(at * (kResets - 1))];
        // The error of a difference of two sample quantiles. Near the ends of the range the normal
        // approximation fails, so 20/kResets is added.
        const double allowed =
            range * (kSigmas * std::sqrt(2 * at * (1 - at) / kResets) + 20. / kResets);
        if (!(std::abs(ours - theirs[i * columns + k]) <= allowed))
          differ("quantile " + std::to_string(at) + " of state[" + std::to_string(k)
                 + "] at the start is " + std::to_string(ours) + ", Gymnasium's "
                 + std::to_string(theirs[i * columns + k]));
      }
    }
  }

  const Recording& recording_;
  GameEnvironment<Game>& environment_;
  Tolerance tolerance_;
  std::vector<double> observation_;
  ClassicReplay report_;
};

std::int64_t number_of(const FrozenLake::State& state) {
  return state.tile;
}

std::int64_t number_of(const Taxi::State& state) {
  return state.number;
}

/// Whether `count` hits in `draws` draws are plausible for the probability `share`.
bool is_likely(double count, double draws, double share) {
  return std::abs(count - draws * share) <= kSigmas * std::sqrt(draws * share * (1 - share));
}

template <class Game>
class TableReplay {
public:
  explicit TableReplay(const Recording& recording)
      : recording_(recording),
        environment_(dynamic_cast<GameEnvironment<Game>&>(*recording.environment)),
        observation_(environment_.spec().observation_bytes()) {}

  ClassicReplay run() {
    compare_table();
    compare_starts();
    if constexpr (std::is_same_v<Game, Taxi>)
      if (recording_.has("fickle_state"))
        compare_fickle();
    return std::move(report_);
  }

private:
  void differ(const std::string& text) { report_.differences.push_back(text); }

  void compare_table() {
    const NpyArray& array = recording_.array("probability");
    const auto probability = array.as_doubles();
    const auto next = recording_.numbers("next");
    const auto reward = recording_.numbers("reward");
    const auto terminated = recording_.numbers("terminated");
    if (array.shape[0] != environment_.spec().observations[0].shape[0]
        || array.shape[1] != environment_.spec().action.choices_of(0))
      return differ("the numbers of states or actions differ");
    std::size_t i = 0;
    for (std::int64_t state = 0; state < array.shape[0]; ++state)
      for (std::int64_t action = 0; action < array.shape[1]; ++action, ++report_.compared)
        for (const Transition& ours : environment_.game().transitions(state, action)) {
          const bool same =
              ours.probability == probability[i] && static_cast<double>(ours.state) == next[i]
              && ours.reward == reward[i] && (ours.terminated ? 1.0 : 0.0) == terminated[i];
          if (!same)
            differ("state " + std::to_string(state) + ", action " + std::to_string(action)
                   + ": a transition differs");
          ++i;
        }
  }

  void compare_starts() {
    const auto share = recording_.numbers("start");
    std::vector<double> count(share.size());
    constexpr int kDraws = 20'000;
    for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
      environment_.reset(seed, observation_);
      ++count[static_cast<std::size_t>(number_of(environment_.state()))];
    }
    for (std::size_t state = 0; state < share.size(); ++state)
      if (!is_likely(count[state], kDraws, share[state]))
        differ("of " + std::to_string(kDraws) + " episodes " + std::to_string(count[state])
               + " begin in state " + std::to_string(state));
  }

  void compare_fickle() requires std::is_same_v<Game, Taxi> {
    constexpr int kDraws = 2000;
    const auto starts = recording_.numbers("fickle_starts");
    int fickle = 0;
    for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
      environment_.reset(seed, observation_);
      fickle += static_cast<int>(environment_.state().fickle);
    }
    // Gymnasium's share is an estimate, too.
    const double share = starts[1] / starts[0];
    if (std::abs(fickle - kDraws * share) > kSigmas * std::sqrt(2 * kDraws * share * (1 - share)))
      differ(std::to_string(fickle) + " of " + std::to_string(kDraws) + " passengers are fickle");

    const auto state = recording_.numbers("fickle_state");
    const auto action = recording_.numbers("fickle_action");
    const auto flag = recording_.numbers("fickle_flag");
    const auto destinations = recording_.numbers("fickle_destinations");
    const auto after = recording_.numbers("fickle_after");
    for (std::size_t i = 0; i < state.size(); ++i) {
      double ours[4] = {};
      double ours_after = 0;
      for (int k = 0; k < kDraws; ++k) { // the random number stream continues
        environment_.set_state({.number = static_cast<std::int64_t>(state[i]),
                                .fickle = static_cast<std::int64_t>(flag[i])});
        environment_.step(std::span(action).subspan(i, 1), observation_);
        ours[environment_.state().number % 4] += 1;
        ours_after += static_cast<double>(environment_.state().fickle);
      }
      if (ours_after != after[i])
        differ("fickle step " + std::to_string(i) + ": the passenger stays fickle only in one");
      for (std::size_t d = 0; d < 4; ++d) {
        const double theirs = destinations[4 * i + d] / kDraws;
        if (std::abs(ours[d] - kDraws * theirs)
            > kSigmas * std::sqrt(2 * kDraws * theirs * (1 - theirs)))
          differ("fickle step " + std::to_string(i) + ": destination " + std::to_string(d) + " "
                 + std::to_string(ours[d]) + " times");
      }
    }
  }

  const Recording& recording_;
  GameEnvironment<Game>& environment_;
  std::vector<std::byte> observation_;
  ClassicReplay report_;
};

} // namespace

ClassicReplay replay_classic(const std::string& folder, const std::string& name) {
  const Recording recording(folder, name);
  if (recording.task == "Acrobot-v1")
    return NumbersReplay<Acrobot>(recording).run();
  if (recording.task == "CartPole-v1")
    return NumbersReplay<CartPole>(recording).run();
  if (recording.task == "MountainCar-v0")
    return NumbersReplay<MountainCar>(recording).run();
  if (recording.task == "MountainCarContinuous-v0")
    return NumbersReplay<MountainCarContinuous>(recording).run();
  if (recording.task == "Pendulum-v1")
    return NumbersReplay<Pendulum>(recording).run();
  if (recording.task == "Taxi-v4")
    return TableReplay<Taxi>(recording).run();
  return TableReplay<FrozenLake>(recording).run();
}

std::vector<std::string> classic_recordings(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".npz")
      names.push_back(file.path().stem().string());
  std::ranges::sort(names);
  return names;
}

} // namespace troupe::env
