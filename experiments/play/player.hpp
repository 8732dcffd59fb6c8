#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "env/environment_config.hpp"
#include "env/interaction/watched.hpp"
#include "experiments/play/stage.hpp"
#include "learner/acting/policy.hpp"

namespace troupe::experiments::play {

struct PlayOptions {
  StageOptions stage = {};
  double pictures_per_second = 30; // at most
  std::uint64_t seed = 1;          // of the first episode; the next ones follow
};

struct PlayedPicture {
  std::uint64_t number = 0; // from 1
  std::string jpeg;
  std::string state; // JSON, ASCII: episode, step, seconds, reward, return, speed, paused, …
};
using PlayedPicturePtr = std::shared_ptr<const PlayedPicture>;

/// Plays episodes of a policy in a thread of its own, as fast as the simulated time passes, and
/// draws pictures on request. It rests while there are no requests. Functions may be called by any
/// thread.
class Player {
public:
  /// Throws what make_environment() throws, and std::invalid_argument if there is no MuJoCo
  /// simulation.
  Player(const env::EnvironmentConfig& environment, std::unique_ptr<learner::Policy> policy,
         const PlayOptions& options);
  ~Player() { stop(); }

  /// Ends the thread; requests that wait get null, later ones are refused.
  void stop();

  /// Null: nothing changed for 10 s.
  using Seen = std::function<void(PlayedPicturePtr)>;
  /// Calls `seen` with a picture of a higher number, now or later. False if too many wait, and
  /// after stop().
  bool next_picture(std::uint64_t after, Seen seen);

  /// False if too many commands wait; none of these is obeyed then.
  bool obey(const std::vector<Command>& commands);

private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Clock::time_point until;
    Seen seen;
  };

  void run();
  void play_one(std::uint64_t seed);
  void after(env::Physics& physics, const env::TimeStep& step);
  void obey(const Command& command, env::Physics& physics);
  bool is_resting(Clock::time_point now) const;
  Clock::time_point next_event(Clock::time_point now) const;
  void draw(env::Physics& physics, Clock::time_point now);
  std::string state(const env::Physics& physics) const;
  void refuse_late(Clock::time_point now);
  void answer(std::unique_lock<std::mutex>& lock);

  PlayOptions options_;
  std::unique_ptr<learner::Policy> policy_;
  Stage stage_; // of the thread
  std::unique_ptr<env::Environment> environment_;
  double step_seconds_ = 0;

  std::mutex mutex_; // of all below
  std::condition_variable changed_;
  std::deque<Command> commands_;
  std::vector<Waiting> waiting_;
  std::vector<std::pair<Seen, PlayedPicturePtr>> answers_; // to be given without the mutex
  PlayedPicturePtr latest_;
  bool stopping_ = false;
  bool paused_ = false;
  bool restarting_ = false;
  bool steps_once_ = false;
  bool changed_since_picture_ = false;
  double speed_ = 1;
  std::int64_t episode_ = 0;
  std::int64_t step_ = 0;
  double reward_ = 0;
  double return_ = 0;
  std::string problem_;
  Clock::time_point due_{};   // the next step
  Clock::time_point drawn_{}; // the latest picture
  Clock::time_point asked_{}; // the last request

  std::jthread thread_;
};

} // namespace troupe::experiments::play
