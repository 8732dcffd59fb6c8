#include "tests/env/minatar/golden_replay.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "env/minatar/asterix.hpp"
#include "env/minatar/breakout.hpp"
#include "env/minatar/freeway.hpp"
#include "env/minatar/minatar.hpp"
#include "env/minatar/seaquest.hpp"
#include "env/minatar/space_invaders.hpp"
#include "env/npz.hpp"

namespace troupe::env {

using namespace minatar;

namespace {

/// Returns the random numbers that MinAtar drew, in order.
class RecordedChance final : public Chance {
public:
  RecordedChance(std::vector<double> drawn, std::vector<double> range)
      : drawn_(std::move(drawn)), range_(std::move(range)) {}

  double uniform() override { return next(0); }
  std::int32_t one_below(std::int32_t n) override { return static_cast<std::int32_t>(next(n)); }

  std::size_t position() const { return position_; }
  void seek(std::size_t position) { position_ = position; }
  /// "" if every request found a number of the right kind.
  std::string take_problem() { return std::exchange(problem_, ""); }

private:
  double next(double range) {
    if (position_ >= drawn_.size()) {
      problem_ = "more random numbers are drawn than MinAtar drew";
      return 0;
    }
    if (range_[position_] != range)
      problem_ = "a random number of range " + std::to_string(range) + " is drawn, MinAtar's has "
                 + std::to_string(range_[position_]) + " (0: from 0 to 1)";
    return drawn_[position_++];
  }

  std::vector<double> drawn_;
  std::vector<double> range_;
  std::size_t position_ = 0;
  std::string problem_;
};

/// The arrays of a recording.
struct Recording {
  std::vector<double> action;
  NpyArray board;
  std::vector<double> reward;
  std::vector<double> terminated;
  std::vector<double> truncated;
  std::vector<double> draws;
  std::vector<double> drawn;
  std::vector<double> range;
};

Recording read_recording(const std::string& path) {
  const auto arrays = read_npz(path);
  const auto array = [&](const std::string& key) -> const NpyArray& {
    const auto found = arrays.find(key);
    if (found == arrays.end())
      throw std::runtime_error(path + " has no array '" + key + "'");
    return found->second;
  };
  const auto numbers = [&](const std::string& key) { return array(key).as_doubles(); };
  Recording recording{.action = numbers("action"),
                      .board = array("board"),
                      .reward = numbers("reward"),
                      .terminated = numbers("terminated"),
                      .truncated = numbers("truncated"),
                      .draws = numbers("draws"),
                      .drawn = numbers("drawn"),
                      .range = numbers("range")};
  const std::size_t rows = recording.action.size();
  for (const auto* column :
       {&recording.reward, &recording.terminated, &recording.truncated, &recording.draws})
    if (column->size() != rows)
      throw std::runtime_error(path + ": its arrays have different lengths");
  if (recording.board.type != "|u1" || recording.board.shape.size() != 2
      || recording.board.shape[0] != static_cast<std::int64_t>(rows)
      || recording.drawn.size() != recording.range.size())
    throw std::runtime_error(path + ": its arrays have other shapes");
  return recording;
}

template <class Rules>
class Replayer {
  using Game = MinAtarGame<Rules>;

public:
  Replayer(const Environment& environment, Recording recording)
      : spec_(environment.spec()),
        game_(dynamic_cast<const GameEnvironment<Game>&>(environment).game()),
        recording_(std::move(recording)),
        chance_(recording_.drawn, recording_.range),
        observation_(spec_.observation_bytes()) {}

  MinAtarReplay run() {
    if (static_cast<std::int64_t>((observation_.size() + 7) / 8) != recording_.board.shape[1]) {
      report_.differences.emplace_back("the observation has another size");
      return report_;
    }
    report_.actions.resize(static_cast<std::size_t>(spec_.action.choices_of(0)));
    for (std::size_t row = 0; row < recording_.action.size(); ++row)
      play(row);
    return report_;
  }

private:
  void play(std::size_t row) {
    const std::size_t before = chance_.position();
    if (recording_.action[row] < 0) {
      state_ = {};
      steps_ = 0;
      game_.begin(state_, chance_);
      ++report_.episodes;
    } else {
      const GameStep made =
          game_.step(state_, std::span(recording_.action).subspan(row, 1), chance_);
      ++report_.actions[static_cast<std::size_t>(recording_.action[row])];
      report_.rewards += made.reward;
      if (made.reward != recording_.reward[row])
        differ(row, "the reward is " + std::to_string(made.reward) + ", MinAtar's "
                        + std::to_string(recording_.reward[row]));
      if (made.terminated != (recording_.terminated[row] != 0))
        differ(row, "only one of both terminates");
      if ((++steps_ == spec_.episode_steps) != (recording_.truncated[row] != 0))
        differ(row, "only one of both is cut off");
    }
    if (const std::string problem = chance_.take_problem(); !problem.empty())
      differ(row, problem);
    const std::size_t after = before + static_cast<std::size_t>(recording_.draws[row]);
    if (chance_.position() != after)
      differ(row, "another number of random numbers is drawn");
    chance_.seek(after);
    compare_board(row);
    if (!game_.is_valid(state_))
      differ(row, "the state is none that can be loaded");
    ++report_.compared;
  }

  void compare_board(std::size_t row) {
    game_.observe(state_, observation_);
    const auto columns = static_cast<std::size_t>(recording_.board.shape[1]);
    const auto packed = std::span(recording_.board.bytes).subspan(row * columns, columns);
    for (std::size_t i = 0; i < observation_.size(); ++i) {
      const bool theirs = (packed[i / 8] & std::byte{128} >> (i % 8)) != std::byte{0};
      if (observation_[i] != (theirs ? std::byte{255} : std::byte{0}))
        differ(row, "channel " + std::to_string(i / 100) + ", row " + std::to_string(i / 10 % 10)
                        + ", column " + std::to_string(i % 10) + " differs");
    }
  }

  void differ(std::size_t row, const std::string& text) {
    report_.differences.push_back("row " + std::to_string(row) + ": " + text);
  }

  const EnvironmentSpec& spec_;
  const Game& game_;
  Recording recording_;
  RecordedChance chance_;
  std::vector<std::byte> observation_;
  typename Game::State state_{};
  std::int64_t steps_ = 0;
  MinAtarReplay report_;
};

} // namespace

MinAtarReplay replay_minatar(const std::string& folder, const std::string& name) {
  const std::filesystem::path path(folder);
  std::ifstream in(path / "index.json");
  const auto options = nlohmann::json::parse(in)
                           .at("tasks")
                           .at(name)
                           .at("options")
                           .get<std::map<std::string, std::string>>();
  const std::string task = name.substr(0, name.find('.'));
  const auto environment = make_minatar("MinAtar/" + task, options);
  Recording recording = read_recording((path / (name + ".npz")).string());
  if (task.starts_with("Asterix"))
    return Replayer<Asterix>(*environment, std::move(recording)).run();
  if (task.starts_with("Breakout"))
    return Replayer<Breakout>(*environment, std::move(recording)).run();
  if (task.starts_with("Freeway"))
    return Replayer<Freeway>(*environment, std::move(recording)).run();
  if (task.starts_with("Seaquest"))
    return Replayer<Seaquest>(*environment, std::move(recording)).run();
  return Replayer<SpaceInvaders>(*environment, std::move(recording)).run();
}

std::vector<std::string> minatar_recordings(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".npz")
      names.push_back(file.path().stem().string());
  std::ranges::sort(names);
  return names;
}

} // namespace troupe::env
