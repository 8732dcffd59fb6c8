#include "tests/doctest_torch.hpp"

#include "actors/roles/live_picture.hpp"

#include <set>

#include "env/make/make.hpp"
#include "learner/acting/collector.hpp"
#include "learner/acting/transition_spec.hpp"
#include "tests/text.hpp"

namespace troupe::actors {
namespace {

/// A policy whose actions are not used: all steps are random.
class NoPolicy final : public learner::Policy {
public:
  std::int64_t parameter_count() const override { return 0; }
  void load(std::span<const float>) override {}
  void act(const learner::Observations&, std::span<float>) override {}
};

struct Watched {
  explicit Watched(const env::EnvironmentConfig& config)
      : transitions(learner::transition_spec(env::make_environment(config)->spec(), 1, .9)),
        collector(
            {.random_steps = 1'000'000, .environments = 2},
            [&](int) { return env::make_environment(config); }, std::make_unique<NoPolicy>(),
            transitions) {}
  void play(int steps) {
    for (int i = 0; i < steps; ++i) {
      collector.choose_actions();
      collector.step_environments();
    }
  }
  wire::LivePicture look(bool observed, int environment = 0) {
    wire::PictureOrder order;
    order.set_observed(observed);
    order.set_environment(environment);
    return live_picture(collector, transitions.frame, "0", order, scene);
  }
  std::string refused(bool observed, int environment = 0) {
    return error_of<std::invalid_argument>([&] { look(observed, environment); });
  }
  replay::TransitionSpec transitions;
  learner::Collector collector;
  SceneRenderer scene;
};

int colours(const wire::LivePicture& picture) {
  std::set<std::string> all;
  for (std::size_t i = 0; i < picture.rgb().size(); i += 3)
    all.insert(picture.rgb().substr(i, 3));
  return static_cast<int>(all.size());
}

TEST_CASE("A live picture shows the scene or the frame that the agent sees") {
  Watched watched({.task = "cartpole_balance",
                   .pixels = env::PixelOptions{.height = 20, .width = 30},
                   .frame_stack = 1});
  CHECK(has(watched.refused(true), "has not begun"));
  watched.play(3);
  const auto frame = watched.look(true);
  CHECK(frame.observed());
  CHECK(frame.height() == 20);
  CHECK(frame.width() == 30);
  CHECK(frame.agent_steps() == 6);
  CHECK(frame.environments() == 2);
  const auto newest = watched.collector.newest_frame(0); // red, green and blue planes
  REQUIRE(newest.size() == frame.rgb().size());
  for (std::size_t i = 0; i < 600; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      REQUIRE(frame.rgb()[3 * i + c] == static_cast<char>(newest[600 * c + i]));
  const auto scene = watched.look(false);
  CHECK_FALSE(scene.observed());
  CHECK(scene.height() == 240);
  CHECK(colours(scene) > 50);
  CHECK(watched.look(false).rgb() == scene.rgb());
  watched.play(20);
  CHECK(watched.look(false).rgb() != scene.rgb());
  const auto* const kept = watched.scene.renderer.get();
  const auto first = watched.look(false).rgb();
  CHECK(watched.scene.renderer.get() == kept);
  CHECK(watched.look(false, 1).rgb() != first);
  CHECK(watched.look(false).rgb() == first);
  CHECK(has(watched.refused(false, 2), "environment=2: the actor has environments 0 to 1"));
  CHECK(has(watched.refused(false, -1), "environment=-1"));
}

TEST_CASE("A live picture of a grey frame has three equal channels") {
  Watched watched({.task = "cartpole_balance",
                   .pixels = env::PixelOptions{.height = 20, .width = 30, .grey = true}});
  watched.play(1);
  const auto frame = watched.look(true);
  REQUIRE(frame.rgb().size() == 1800);
  for (std::size_t i = 0; i < 1800; i += 3)
    REQUIRE(frame.rgb().substr(i, 3) == std::string(3, frame.rgb()[i]));
  CHECK(colours(frame) > 5);
}

TEST_CASE("A live picture of a game shows its board, and numeric observations are refused") {
  Watched game({.task = "MinAtar/SpaceInvaders-v1"});
  game.play(2);
  const auto board = game.look(false);
  CHECK(board.observed());
  CHECK(board.height() == 10);
  CHECK(board.width() == 10);
  CHECK(colours(board) >= 3); // black background, aliens and cannon

  for (const char* task : {"MinAtar/Breakout-v1", "MinAtar/Asterix-v1"}) { // four planes
    CAPTURE(task);
    Watched other({.task = task});
    other.play(3);
    const auto picture = other.look(false);
    const auto newest = other.collector.newest_frame(0);
    REQUIRE(newest.size() == 400);
    for (std::size_t i = 0; i < 100; ++i) {
      bool shown = false;
      for (std::size_t plane = 0; plane < 4; ++plane)
        shown |= newest[100 * plane + i] != std::byte{0};
      REQUIRE((picture.rgb().substr(3 * i, 3) != std::string(3, '\0')) == shown);
    }
    CHECK(picture.rgb().find(std::string(3, '\xff')) == std::string::npos); // coloured, not white
  }

  Watched numbers({.task = "CartPole-v1"});
  numbers.play(2);
  CHECK(has(numbers.refused(false), "nothing to show"));
  Watched states({.task = "cartpole_balance"});
  states.play(2);
  CHECK(has(states.refused(true), "numbers, not a picture"));
  CHECK(states.look(false).height() == 240);
}

} // namespace
} // namespace troupe::actors
