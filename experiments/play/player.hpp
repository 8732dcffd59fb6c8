#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
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
  double pictures_per_second = 30; // maximum
  std::uint64_t seed = 1;          // of the first episode; later ones use the next seeds
};

struct PlayedPicture {
  std::uint64_t number = 0; // starts at 1
  std::string jpeg;         // empty if there is only a problem
  std::string state;   // ASCII JSON: episode, step, seconds, reward, return, speed, paused, …
  std::string problem; // why there is no picture
};
using PlayedPicturePtr = std::shared_ptr<const PlayedPicture>;

/// Whether a page watches: requests are waiting, or the last one was made less than 3 s ago.
bool is_watched(std::size_t waiting, std::chrono::steady_clock::duration since_request);

/// Plays episodes of a policy on a thread of its own, in real time, and draws pictures on request.
/// The thread sleeps while there are no requests. Any thread may call the functions.
class Player {
public:
  /// Throws the exceptions of make_environment(), and std::invalid_argument if the task has no
  /// MuJoCo simulation.
  Player(const env::EnvironmentConfig& environment, std::unique_ptr<learner::Policy> policy,
         const PlayOptions& options);
  ~Player() { stop(); }

  /// Stops the thread. Waiting requests get null; later ones are refused.
  void stop();

  /// Receives a picture, the problem because of which there is none, or null if nothing changed for
  /// 10 s.
  using Seen = std::function<void(PlayedPicturePtr)>;
  /// Calls `seen` with a picture whose number is greater than `after`, immediately or later.
  /// Returns false if too many requests are waiting, and after stop().
  bool next_picture(std::uint64_t after, Seen seen);

  /// Executes the commands in order. Returns false, and executes none, if too many are waiting.
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
  void rest_after_failure(std::unique_lock<std::mutex>& lock);
  void obey_all(env::Physics* physics);
  void obey(const Command& command, env::Physics* physics);
  bool is_resting(Clock::time_point now) const;
  Clock::time_point next_event(Clock::time_point now) const;
  void draw(env::Physics& physics, Clock::time_point now);
  std::string state(const env::Physics& physics) const;
  void answer_all(const PlayedPicturePtr& picture);
  void refuse_late(Clock::time_point now);
  void answer(std::unique_lock<std::mutex>& lock);

  PlayOptions options_;
  std::unique_ptr<learner::Policy> policy_;
  Stage stage_; // used only by the thread
  std::unique_ptr<env::Environment> environment_;
  double step_seconds_ = 0;

  std::mutex mutex_; // guards the members below
  std::condition_variable changed_;
  std::deque<Command> commands_;
  std::vector<Waiting> waiting_;
  std::vector<std::pair<Seen, PlayedPicturePtr>> answers_; // to be delivered without the mutex
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
  Clock::time_point due_{};   // time of the next step
  Clock::time_point drawn_{}; // time of the latest picture
  Clock::time_point asked_{}; // time of the last request

  std::jthread thread_;
};

} // namespace troupe::experiments::play
