#include <algorithm>

#include <doctest/doctest.h>

#include "replay/batch/gather.hpp"
#include "tests/replay/writers/episodes.hpp"
#include "tests/replay/writers/goal_episodes.hpp"

namespace troupe::replay {
namespace {

GoalFrame frame_of(std::span<const std::byte> bytes, std::size_t row) {
  GoalFrame frame;
  std::memcpy(&frame, bytes.data() + row * sizeof frame, sizeof frame);
  return frame;
}

/// Writes frames [from, to) of an episode.
void write_frames(Writer& writer, const std::vector<GoalFrame>& frames, std::size_t from,
                  std::size_t to) {
  for (std::size_t t = from; t < to; ++t) {
    std::memcpy(writer.next(kFrame).data(), &frames[t], sizeof(GoalFrame));
    if (t == 0) {
      begin_episode(writer);
      continue;
    }
    const float action = frames[t].place[0] - frames[t - 1].place[0];
    const bool reached = frames[t].reached();
    append_step(writer, {&action, 1}, reached ? 5 : -1, reached ? 0 : 1, t + 1 == frames.size());
  }
}

} // namespace

TEST_CASE("Each transition is stored unchanged and with goals that its episode reached") {
  constexpr int kGoals = 3;
  for (const GoalStrategy strategy :
       {GoalStrategy::final, GoalStrategy::future, GoalStrategy::episode}) {
    CAPTURE(goal_strategy_name(strategy));
    const TransitionSpec spec = goal_spec(kGoals, strategy);
    Writer writer = hindsight_transition_writer(spec, 1, 5, line_goal());
    GoalPlayer player(9);
    int originals = 0;
    int relabelled = 0;
    int reached = 0;
    int other = 0;
    for (int i = 0; i < 200; ++i) {
      player.episode(writer);
      const auto& frames = player.episodes.back();
      const InsertionPtr made = writer.take();
      REQUIRE(made != nullptr);
      Batch batch(spec, std::ssize(made->items));
      REQUIRE(std::ranges::all_of(made->items,
                                  [&](const Item& item) { return is_transition(spec, item); }));
      gather(spec, made->items, batch.view(), 0);
      for (std::size_t row = 0; row < made->items.size(); ++row) {
        const GoalFrame now = frame_of(batch.observation, row);
        const GoalFrame next = frame_of(batch.next_observation, row);
        const auto step = static_cast<std::size_t>(now.mark - frames[0].mark);
        REQUIRE(step + 1 < frames.size());
        CHECK(next.mark == now.mark + 1);
        CHECK(next.place[0] == frames[step + 1].place[0]);
        CHECK(batch.action[row] == next.place[0] - now.place[0]);
        CHECK(now.goal[0] == next.goal[0]);
        CHECK(now.goal[1] == now.goal[0] + 1);
        CHECK(batch.reward[row] == (next.reached() ? 5 : -1));
        CHECK(batch.discount[row] == (next.reached() ? 0 : doctest::Approx(0.9)));
        CHECK_FALSE(now.reached());
        const int lane = *hindsight_lane(spec, made->items[row].shape.get());
        if (lane < 0) {
          ++originals;
          CHECK(next == frames[step + 1]);
          continue;
        }
        ++relabelled;
        reached += next.reached() ? 1 : 0;
        other += now.goal[0] != frames[step].goal[0] ? 1 : 0;
        std::size_t first = strategy == GoalStrategy::episode ? 0 : step + 1;
        if (strategy == GoalStrategy::final)
          first = frames.size() - 1;
        CHECK(std::any_of(frames.begin() + static_cast<std::ptrdiff_t>(first), frames.end(),
                          [&](const GoalFrame& at) { return at.place[0] == now.goal[0]; }));
      }
    }
    std::size_t steps = 0;
    for (const auto& frames : player.episodes)
      steps += frames.size() - 1;
    CHECK(originals == static_cast<int>(steps));
    CHECK(relabelled > originals);
    CHECK(relabelled < kGoals * originals); // none if the goal was already reached
    CHECK(reached > relabelled / 10);
    CHECK(other > relabelled / 2);
  }
}

TEST_CASE("A writer with hindsight that was saved in the middle of an episode continues with the "
          "same items") {
  const TransitionSpec spec = goal_spec(2);
  GoalPlayer player(9);
  Writer unused = hindsight_transition_writer(spec, 9, 5, line_goal());
  for (int i = 0; i < 14; ++i)
    player.episode(unused);
  const std::vector<GoalFrame>& open =
      *std::max_element(player.episodes.begin(), player.episodes.end(),
                        [](const auto& a, const auto& b) { return a.size() < b.size(); });
  REQUIRE_GT(open.size(), 4);
  for (std::size_t stop = 0; stop < open.size(); ++stop) {
    CAPTURE(stop);
    Writer whole = hindsight_transition_writer(spec, 1, 5, line_goal());
    Writer resumed = hindsight_transition_writer(spec, 1, 77, line_goal());
    for (std::size_t i = 0; i < 7; ++i)
      write_frames(whole, player.episodes[i], 0, player.episodes[i].size());
    write_frames(whole, open, 0, stop);
    if (stop % 2 == 1)
      REQUIRE(whole.take() != nullptr); // withholds the open episode
    std::vector<std::byte> state;
    whole.save_state(state);
    CHECK(resumed.load_state(state).empty());
    for (Writer* one : {&whole, &resumed}) {
      write_frames(*one, open, stop, open.size());
      for (std::size_t i = 7; i < 14; ++i)
        write_frames(*one, player.episodes[i], 0, player.episodes[i].size());
    }
    const InsertionPtr a = whole.take();
    const InsertionPtr b = resumed.take();
    CHECK(a->sequence == b->sequence);
    REQUIRE(a->items.size() == b->items.size());
    Batch first(spec, std::ssize(a->items));
    Batch second(spec, std::ssize(a->items));
    gather(spec, a->items, first.view(), 0);
    gather(spec, b->items, second.view(), 0);
    CHECK(first == second);
  }
}

TEST_CASE("Specs and goals that do not fit hindsight are refused, and the error names them") {
  const auto refused = [](auto change, const char* words) {
    TransitionSpec spec = goal_spec(2);
    change(spec);
    CHECK_THROWS_WITH_AS(hindsight_transition_writer(spec, 1, 5, line_goal()),
                         doctest::Contains(words), std::invalid_argument);
  };
  refused([](TransitionSpec& spec) { spec.n_step = 3; }, "n_step");
  refused([](TransitionSpec& spec) { spec.stack = 2; }, "stack");
  refused([](TransitionSpec& spec) { spec.sequence_steps = 2; }, "sequence_steps");
  refused([](TransitionSpec& spec) { spec.frame.type = env::ElementType::uint8; }, "frame");
  refused([](TransitionSpec& spec) { spec.hindsight.goals = 65; }, "hindsight.goals");
  refused([](TransitionSpec& spec) { spec.hindsight.size = 6; }, "hindsight.size");
  refused([](TransitionSpec& spec) { spec.hindsight.desired = 4; }, "hindsight.desired");
  refused([](TransitionSpec& spec) { spec.hindsight.achieved = -1; }, "hindsight.achieved");
  refused([](TransitionSpec& spec) { spec.hindsight.episode_steps = 0; }, "episode_steps");
  refused([](TransitionSpec& spec) { spec.hindsight.achieved = 1; }, "goals are not those");
  CHECK_THROWS_WITH_AS(hindsight_transition_writer(goal_spec(2), 1, 5, {}),
                       doctest::Contains("goals are not those"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(transition_writer(goal_spec(2), 1), doctest::Contains("hindsight"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(goal_strategy_named("past"), doctest::Contains("past"),
                       std::invalid_argument);
}

TEST_CASE("An item that shows other columns is not a transition with hindsight") {
  const TransitionSpec spec = goal_spec(2);
  Writer writer = hindsight_transition_writer(spec, 1, 5, line_goal());
  GoalPlayer player(9);
  player.episode(writer);
  const InsertionPtr made = writer.take();
  Item item = made->items.back();
  REQUIRE(is_transition(spec, item));
  const ItemShape good = *item.shape;
  for (std::size_t column = 0; column < good.columns.size(); ++column) {
    CAPTURE(column);
    ItemShape bad = good;
    if (bad.columns[column].empty())
      bad.columns[column] = {{1, 1}};
    else
      bad.columns[column] = {{0, 1}};
    item.shape = std::make_shared<const ItemShape>(bad);
    CHECK_FALSE(is_transition(spec, item));
  }
  item.shape = nullptr;
  CHECK_FALSE(is_transition(spec, item));
}

} // namespace troupe::replay
