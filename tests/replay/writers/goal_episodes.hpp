#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "replay/writers/hindsight_transitions.hpp"

namespace troupe::replay {

/// Frames of 5 numbers: the position on a line and its neighbour, a unique mark, and the goal for
/// both.
inline TransitionSpec goal_spec(int goals, GoalStrategy strategy = GoalStrategy::future) {
  return {.frame = {"state", env::ElementType::float32, {5}},
          .action_size = 1,
          .discount = 0.9,
          .hindsight = {.goals = goals,
                        .strategy = strategy,
                        .achieved = 0,
                        .desired = 3,
                        .size = 2,
                        .episode_steps = 20}};
}

inline env::GoalSpec line_goal() {
  return {.achieved = 0,
          .desired = 3,
          .size = 2,
          .outcome = [](std::span<const float> achieved, std::span<const float> desired) {
            const bool reached = std::ranges::equal(achieved, desired);
            return env::GoalOutcome{.reward = reached ? 5.0 : -1.0, .terminated = reached};
          }};
}

struct GoalFrame {
  float place[2] = {0, 1};
  float mark = 0;
  float goal[2] = {0, 1};
  bool reached() const { return place[0] == goal[0]; }
  bool operator==(const GoalFrame&) const = default;
};

/// Writes random walks on the line to a writer.
class GoalPlayer {
public:
  explicit GoalPlayer(std::uint64_t seed) : random_(seed) {}

  void episode(Writer& writer) {
    GoalFrame frame;
    frame.goal[0] = static_cast<float>(random_() % 7) - 3;
    frame.goal[0] = frame.goal[0] == 0 ? 4 : frame.goal[0];
    frame.goal[1] = frame.goal[0] + 1;
    write(writer, frame);
    begin_episode(writer);
    std::vector<GoalFrame> frames{frame};
    const int steps = 1 + static_cast<int>(random_() % 20);
    for (int step = 1; step <= steps && !frame.reached(); ++step) {
      const float action = random_() % 2 == 0 ? -1.0F : 1.0F;
      frame.place[0] += action;
      frame.place[1] += action;
      write(writer, frame);
      frames.push_back(frame);
      const auto outcome = line_goal().outcome(frame.place, frame.goal);
      append_step(writer, {&action, 1}, static_cast<float>(outcome.reward),
                  outcome.terminated ? 0.0F : 1.0F, step == steps || frame.reached());
    }
    episodes.push_back(frames);
  }

  std::vector<std::vector<GoalFrame>> episodes;

private:
  void write(Writer& writer, GoalFrame& frame) {
    frame.mark = marks_++;
    std::memcpy(writer.next(kFrame).data(), &frame, sizeof frame);
  }

  std::mt19937_64 random_;
  float marks_ = 0;
};

} // namespace troupe::replay
