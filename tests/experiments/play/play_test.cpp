#include "tests/doctest_torch.hpp"

#include <future>

#include <nlohmann/json.hpp>

#include "experiments/play/player.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments::play;
using Json = nlohmann::json;

namespace {

/// Does nothing.
class Still : public learner::Policy {
public:
  std::int64_t parameter_count() const override { return 0; }
  void load(std::span<const float>) override {}
  void act(const learner::Observations&, std::span<float> actions) override {
    std::fill(actions.begin(), actions.end(), 0.F);
  }
};

struct Watching {
  explicit Watching(const std::string& task)
      : player({.task = task}, std::make_unique<Still>(),
               {.stage = {.width = 64, .height = 48}, .pictures_per_second = 1000}) {}

  PlayedPicturePtr next() {
    std::promise<PlayedPicturePtr> seen;
    auto picture = seen.get_future();
    REQUIRE(player.next_picture(
        number, [&seen](PlayedPicturePtr made) { seen.set_value(std::move(made)); }));
    const PlayedPicturePtr made = picture.get();
    REQUIRE(made);
    REQUIRE(made->number > number);
    number = made->number;
    return made;
  }
  Json state() { return Json::parse(next()->state); }
  Json after(std::vector<Command> commands) {
    REQUIRE(player.obey(commands));
    return state();
  }
  /// The first state for which `holds` is true.
  Json until(const std::function<bool(const Json&)>& holds) {
    for (;;)
      if (Json seen = state(); holds(seen))
        return seen;
  }

  std::uint64_t number = 0;
  Player player;
};

std::string refusal(const std::string& json) {
  return error_of<std::invalid_argument>([&] { read_commands(json); });
}

} // namespace

TEST_CASE("Commands are parsed, and invalid ones are refused with the key, value and rule") {
  const auto read = read_commands(
      R"({"commands": [{"do": "turn", "x": 0.5, "y": -1}, {"do": "pause"}, {"do": "speed", "x": 2}]})");
  REQUIRE(read.size() == 3);
  CHECK(read[0].kind == Command::Kind::turn);
  CHECK(read[0].x == 0.5);
  CHECK(read[0].y == -1);
  CHECK(read[2].kind == Command::Kind::speed);
  CHECK(read[2].x == 2);
  CHECK(has(refusal("nothing"), "the body must be {\"commands\": […]}"));
  CHECK(has(refusal(R"({"commands": 3})"), "the body must be {\"commands\": […]}"));
  CHECK(has(refusal(R"({"commands": [{"do": "dance"}]})"), "do must be one of pause, resume"));
  CHECK(has(refusal(R"({"commands": [7]})"), "7: do must be one of"));
  CHECK(has(refusal(R"({"commands": [{"do": "speed", "x": 0}]})"), "speed: x is 0; it must be"));
  CHECK(has(refusal(R"({"commands": [{"do": "grab", "x": "left"}]})"), "grab: x is \"left\""));
  CHECK(has(refusal(R"({"commands": [{"do": "zoom", "y": 1e300}]})"), "zoom: y is 1e+300"));
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  CHECK(has(refusal(R"({"commands": [)" + deep + "]}"), "nested at most 8 deep"));
  Json many;
  for (int i = 0; i < 257; ++i)
    many["commands"].push_back({{"do", "pause"}});
  CHECK(has(refusal(many.dump()), "at most 256"));
}

TEST_CASE("Pictures are sent on request, and the simulation continues") {
  Watching watching("cartpole_balance");
  const PlayedPicturePtr first = watching.next();
  CHECK(first->jpeg.starts_with("\xff\xd8"));
  const Json begin = Json::parse(first->state);
  CHECK(begin.at("camera") == "fixed");
  CHECK(begin.at("problem") == "");
  const Json later = watching.until([&](const Json& seen) {
    return seen.at("step").get<int>() > begin.at("step").get<int>() + 3;
  });
  CHECK(later.at("return").get<double>() > begin.at("return").get<double>());
}

TEST_CASE(
    "While paused, the simulation stands still, follows the camera and advances by single steps") {
  Watching watching("walker_walk");
  const Json paused = watching.until([&](const Json& seen) {
    watching.player.obey({{Command::Kind::pause}});
    return seen.at("paused").get<bool>();
  });
  const Json turned = watching.after({{Command::Kind::turn, 0.2, 0}});
  CHECK(turned.at("camera") == "stands");
  CHECK(turned.at("step") == paused.at("step"));
  watching.player.obey({{Command::Kind::step}});
  const Json stepped =
      watching.until([&](const Json& seen) { return seen.at("step") != paused.at("step"); });
  CHECK(stepped.at("step").get<int>() == paused.at("step").get<int>() + 1);
  CHECK(stepped.at("paused") == true);
}

TEST_CASE("An episode restarts on request at the chosen speed") {
  Watching watching("cartpole_balance");
  watching.after({{Command::Kind::speed, 10}});
  watching.player.obey({{Command::Kind::restart}});
  const Json next = watching.until([](const Json& seen) { return seen.at("episode") == 1; });
  CHECK(next.at("speed") == 10);
  CHECK(next.at("held") == "");
}

TEST_CASE("At most 32 requests may wait, and the number of waiting commands is limited") {
  Watching watching("cartpole_balance");
  const std::uint64_t never = ~std::uint64_t{0};
  std::atomic<int> unseen = 0;
  {
    Watching crowded("cartpole_balance");
    // While it is paused, nothing changes, so no request is answered.
    REQUIRE(crowded.after({{Command::Kind::pause}}).at("paused") == true);
    int waiting = 0;
    while (waiting < 10'000
           && crowded.player.next_picture(never, [&](const PlayedPicturePtr&) { ++unseen; }))
      ++waiting;
    CHECK(waiting == 32);
  }
  CHECK(unseen == 32);
  CHECK_FALSE(watching.player.obey(std::vector<Command>(1025)));
  watching.player.stop();
  CHECK_FALSE(watching.player.next_picture(never, [](const PlayedPicturePtr&) {}));
}

TEST_CASE("If no picture can be drawn, requests get the reason, and commands are still obeyed") {
  Player player({.task = "cartpole_balance"}, std::make_unique<Still>(), {.stage = {.width = 0}});
  for (int i = 0; i < 3; ++i) {
    REQUIRE(player.obey(std::vector<Command>(1024, {Command::Kind::turn, 0.1, 0})));
    std::promise<PlayedPicturePtr> seen;
    auto answer = seen.get_future();
    REQUIRE(player.next_picture(
        0, [&seen](PlayedPicturePtr made) { seen.set_value(std::move(made)); }));
    const PlayedPicturePtr made = answer.get();
    REQUIRE(made);
    CHECK(made->jpeg.empty());
    CHECK(has(made->problem, "width: 0 pixels is out of range"));
  }
}

TEST_CASE("Playing continues while a request waits, however long, and for 3 s after the last one") {
  using std::chrono::seconds;
  CHECK(is_watched(1, seconds(10)));
  CHECK(is_watched(0, seconds(2)));
  CHECK_FALSE(is_watched(0, seconds(4)));
}

TEST_CASE("A held body is let go, and no force is written, when a task makes another model") {
  const auto with_ball = [](const std::string& size) {
    return env::compile_model("ball " + size,
                              R"(<mujoco><worldbody><camera pos="0 -3 0" xyaxes="1 0 0 0 0 1"/>)"
                              R"(<body pos="5 5 0"><freejoint/><geom size=".1"/></body>)"
                              R"(<body name="ball"><freejoint/><geom size=")"
                                  + size + R"("/></body></worldbody></mujoco>)");
  };
  env::Physics first(with_ball(".5"));
  env::Physics second(with_ball(".4"));
  Stage stage({.width = 64, .height = 48});
  stage.obey({Command::Kind::grab, 0.1, 0.1}, first);
  REQUIRE(stage.held_body(first) == "ball");
  stage.obey({Command::Kind::pull, 0.5, 0.1}, first);
  stage.apply_forces(first, 0.01);
  CHECK(first.data().xfrc_applied[6 * 2] > 0);
  mjtNum* const force = second.data().xfrc_applied + 6 * 2;
  force[0] = 7; // the task's own
  stage.apply_forces(second, 0.01);
  CHECK(force[0] == 7);
  CHECK(stage.held_body(second) == "");
}
