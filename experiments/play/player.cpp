#include "experiments/play/player.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "env/make/make.hpp"
#include "learner/acting/evaluation.hpp"
#include "learner/replicas/replica_threads.hpp"

namespace troupe::experiments::play {
namespace {

using Kind = Command::Kind;
using std::chrono::milliseconds;

constexpr std::size_t kMostWaiting = 32;
constexpr std::size_t kMostQueued = 1024;
constexpr milliseconds kPatience{10'000}; // how long a request for a picture may wait
constexpr milliseconds kInterest{3'000};  // after a page's last request
constexpr milliseconds kLag{250};         // a longer delay is not caught up
constexpr milliseconds kPause{1'000};     // pause after a failure

std::chrono::steady_clock::duration duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

} // namespace

bool is_watched(std::size_t waiting, std::chrono::steady_clock::duration since_request) {
  return waiting > 0 || since_request <= kInterest;
}

Player::Player(const env::EnvironmentConfig& environment, std::unique_ptr<learner::Policy> policy,
               const PlayOptions& options)
    : options_(options), policy_(std::move(policy)), stage_(options.stage) {
  auto watched = std::make_unique<env::Watched>(
      env::make_bare(environment),
      env::Watched::Watcher{
          .before = [this](env::Physics& physics) { stage_.apply_forces(physics, step_seconds_); },
          .after = [this](env::Physics& physics,
                          const env::TimeStep& step) { after(physics, step); }});
  step_seconds_ = watched->spec().control_timestep_seconds;
  environment_ = env::wrap_environment(std::move(watched), environment);
  thread_ = std::jthread([this] { run(); });
}

void Player::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable())
    thread_.join();
  for (const Waiting& waiting : std::exchange(waiting_, {})) // no request is added any more
    waiting.seen(nullptr);
}

bool Player::next_picture(std::uint64_t after, Seen seen) {
  PlayedPicturePtr ready;
  {
    const std::scoped_lock lock(mutex_);
    asked_ = Clock::now();
    if (latest_ && latest_->number > after)
      ready = latest_;
    else if (stopping_ || waiting_.size() >= kMostWaiting)
      return false;
    else
      waiting_.push_back({asked_ + kPatience, std::move(seen)});
  }
  changed_.notify_all();
  if (ready)
    seen(ready);
  return true;
}

bool Player::obey(const std::vector<Command>& commands) {
  {
    const std::scoped_lock lock(mutex_);
    if (commands_.size() + commands.size() > kMostQueued)
      return false;
    commands_.insert(commands_.end(), commands.begin(), commands.end());
  }
  changed_.notify_all();
  return true;
}

void Player::run() {
  learner::prepare_compute_thread(1); // more threads would only wait for each other
  for (std::uint64_t episode = 0;; ++episode) {
    {
      const std::scoped_lock lock(mutex_);
      if (stopping_)
        return;
      restarting_ = false;
      episode_ = static_cast<std::int64_t>(episode);
      step_ = -1;
      reward_ = return_ = 0;
    }
    play_one(options_.seed + episode);
  }
}

/// If the simulation, the policy or a picture fails, the episode ends, and the page shows the
/// reason and pauses.
void Player::play_one(std::uint64_t seed) {
  try {
    learner::play_episode(*environment_, *policy_, seed, [this] {
      const std::scoped_lock lock(mutex_);
      return !stopping_ && !restarting_;
    });
  } catch (const std::exception& error) {
    std::unique_lock lock(mutex_);
    problem_ = error.what();
    paused_ = true;
    rest_after_failure(lock);
  }
}

/// Waits before the next reset, which may fail, too.
void Player::rest_after_failure(std::unique_lock<std::mutex>& lock) {
  const auto failure = std::make_shared<PlayedPicture>();
  failure->problem = problem_;
  const Clock::time_point end = Clock::now() + kPause;
  while (!stopping_ && Clock::now() < end) {
    obey_all(nullptr);
    if (restarting_ || !paused_)
      return;
    answer_all(failure);
    if (answers_.empty())
      changed_.wait_until(lock, end);
    else
      answer(lock);
  }
}

/// Releases the mutex while it answers, because an answer may lead to another request immediately.
void Player::answer(std::unique_lock<std::mutex>& lock) {
  const auto answers = std::exchange(answers_, {});
  lock.unlock();
  for (const auto& [seen, picture] : answers)
    seen(picture);
  lock.lock();
}

void Player::after(env::Physics& physics, const env::TimeStep& step) {
  std::unique_lock lock(mutex_);
  ++step_;
  reward_ = step.reward;
  return_ += step.reward;
  changed_since_picture_ = true;
  const Clock::time_point now = Clock::now();
  due_ = std::max(due_ + duration(step_seconds_ / speed_), now - kLag);
  while (!stopping_ && !restarting_) {
    obey_all(&physics);
    const Clock::time_point here = Clock::now();
    if (!waiting_.empty() && changed_since_picture_
        && here - drawn_ >= duration(1 / options_.pictures_per_second))
      draw(physics, here);
    refuse_late(here);
    if (!answers_.empty()) {
      answer(lock);
      continue;
    }
    if (!is_resting(here) && (here >= due_ || steps_once_))
      break;
    changed_.wait_until(lock, next_event(here));
  }
  steps_once_ = false;
}

bool Player::is_resting(Clock::time_point now) const {
  return (paused_ && !steps_once_) || !is_watched(waiting_.size(), now - asked_);
}

/// The time at which after() must act if nothing happens before.
Player::Clock::time_point Player::next_event(Clock::time_point now) const {
  Clock::time_point next = is_resting(now) ? now + kPatience : due_;
  for (const Waiting& waiting : waiting_)
    next = std::min(next, waiting.until);
  if (!waiting_.empty() && changed_since_picture_)
    next = std::min(next, drawn_ + duration(1 / options_.pictures_per_second));
  return next;
}

void Player::obey_all(env::Physics* physics) {
  for (; !commands_.empty(); commands_.pop_front())
    obey(commands_.front(), physics);
}

/// `physics`: null after a failure, when there is nothing for the camera and the hand.
void Player::obey(const Command& command, env::Physics* physics) {
  changed_since_picture_ = true;
  switch (command.kind) {
  case Kind::pause:
    paused_ = true;
    break;
  case Kind::resume:
    paused_ = false;
    problem_.clear();
    due_ = Clock::now();
    break;
  case Kind::step:
    paused_ = steps_once_ = true;
    break;
  case Kind::restart:
    restarting_ = true;
    stage_.release();
    break;
  case Kind::speed:
    speed_ = command.x;
    due_ = Clock::now();
    break;
  default:
    if (physics != nullptr)
      stage_.obey(command, *physics);
  }
}

void Player::draw(env::Physics& physics, Clock::time_point now) {
  drawn_ = now;
  changed_since_picture_ = false;
  auto made = std::make_shared<PlayedPicture>();
  made->number = latest_ ? latest_->number + 1 : 1;
  made->jpeg = stage_.draw(physics);
  made->state = state(physics);
  latest_ = made;
  answer_all(latest_);
}

void Player::answer_all(const PlayedPicturePtr& picture) {
  for (Waiting& waiting : waiting_)
    answers_.emplace_back(std::move(waiting.seen), picture);
  waiting_.clear();
}

void Player::refuse_late(Clock::time_point now) {
  const auto late =
      std::stable_partition(waiting_.begin(), waiting_.end(),
                            [now](const Waiting& waiting) { return waiting.until > now; });
  for (auto waiting = late; waiting != waiting_.end(); ++waiting)
    answers_.emplace_back(std::move(waiting->seen), nullptr);
  waiting_.erase(late, waiting_.end());
}

std::string Player::state(const env::Physics& physics) const {
  const nlohmann::ordered_json json = {{"episode", episode_},
                                       {"step", step_},
                                       {"seconds", static_cast<double>(step_) * step_seconds_},
                                       {"reward", std::isfinite(reward_) ? reward_ : 0},
                                       {"return", std::isfinite(return_) ? return_ : 0},
                                       {"speed", speed_},
                                       {"paused", paused_},
                                       {"camera", stage_.camera_name(physics)},
                                       {"held", stage_.held_body(physics)},
                                       {"problem", problem_}};
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

} // namespace troupe::experiments::play
