#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "env/make/make.hpp"
#include "env/pool/environment_pool.hpp"
#include "env/remote/environment_server.hpp"
#include "env/remote/remote_environment.hpp"
#include "tests/env/pool/counting_environment.hpp"
#include "tests/env/remote/toy.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe::env;
using namespace troupe::tests;
using troupe::error_of;

namespace {

std::shared_ptr<wire::Context> context() {
  return std::make_shared<wire::Context>();
}

RemoteOptions options_for(const EnvironmentServer& server, std::size_t environments = 1) {
  return {.endpoint = server.endpoint(), .environments = environments};
}

} // namespace

TEST_CASE("A remote environment plays as a local one does, bit for bit") {
  const EnvironmentServer server(context(), [] { return make_task("cheetah_run"); });
  const auto remote = make_remote(options_for(server));
  const auto local = make_task("cheetah_run");
  REQUIRE(remote->spec().observations == local->spec().observations);
  REQUIRE(remote->spec().action == local->spec().action);
  CHECK(remote->spec().name == local->spec().name);
  CHECK(remote->spec().episode_steps == local->spec().episode_steps);
  std::vector<std::byte> there(remote->spec().observation_bytes());
  std::vector<std::byte> here(there.size());
  for (const std::uint64_t seed : {std::uint64_t{3}, ~std::uint64_t{0}}) {
    remote->reset(seed, there);
    local->reset(seed, here);
    CHECK(there == here);
    for (int i = 0; i < 20; ++i) {
      std::vector<double> action(remote->spec().action.size());
      for (std::size_t k = 0; k < action.size(); ++k)
        action[k] = std::sin(i + static_cast<double>(k));
      const TimeStep a = remote->step(action, there);
      const TimeStep b = local->step(action, here);
      CHECK(there == here);
      CHECK(a.reward == b.reward);
      CHECK(a.discount == b.discount);
      CHECK(a.step_type == b.step_type);
    }
  }
}

TEST_CASE("One message steps some environments of a batch and resets others, over ipc and tcp") {
  const troupe::TemporaryFolder folder;
  for (const std::string& endpoint :
       {"ipc://" + (folder / "batch.ipc").string(), std::string("tcp://127.0.0.1:*")}) {
    const EnvironmentServer server(context(), make_toy, {.endpoint = endpoint, .environments = 5});
    RemoteEnvironments remote(options_for(server, 3));
    Batch batch(remote);
    reset_all(remote, batch, 100);
    CHECK(batch.x(0) == 100);
    CHECK(batch.x(2) == 102);
    CHECK(batch.steps[1].step_type == StepType::first);
    CHECK(remote.step(std::vector<double>{.5, 0, .25, 0, -5, 0}, batch.results()) == 0);
    CHECK(batch.x(0) == 100.5F);
    CHECK(batch.x(2) == 101); // the action is clipped to -1
    CHECK(batch.steps[1].reward == 101.25);
    CHECK(batch.steps[1].discount == .5);
    CHECK(batch.steps[1].step_type == StepType::mid);
    const std::vector<Turn> turns{
        {.kind = Turn::Kind::keep}, {.kind = Turn::Kind::reset, .seed = 7}, {}};
    CHECK(remote.play(turns, std::vector<double>(6, 0.5), batch.results()) == 0);
    CHECK(batch.count(0) == 1); // the choice is kept as it is
    CHECK(batch.x(1) == 7);
    CHECK(batch.count(2) == 2);
    CHECK(server.counters().turns == 3 + 3 + 2);
  }
}

TEST_CASE("A turn leaves the rows of other environments unchanged and refuses a small buffer") {
  const EnvironmentServer server(context(), make_toy, {.environments = 2});
  RemoteEnvironments remote(options_for(server, 2));
  Batch batch(remote);
  batch.bytes[0] = std::byte{0xee};
  const std::vector<Turn> turns{{.kind = Turn::Kind::keep}, {.kind = Turn::Kind::reset, .seed = 9}};
  CHECK(remote.play(turns, {}, batch.results()) == 0);
  CHECK(batch.bytes[0] == std::byte{0xee});
  CHECK(batch.x(1) == 9);
  batch.bytes.pop_back();
  CHECK_THROWS_AS(remote.step(std::vector<double>(4), batch.results()), std::invalid_argument);
}

TEST_CASE("An environment that throws fails alone and continues after its reset") {
  const EnvironmentServer server(context(), make_toy, {.environments = 3});
  RemoteEnvironments remote(options_for(server, 3));
  Batch batch(remote);
  reset_all(remote, batch, 0);
  CHECK(remote.step(std::vector<double>{0, 0, 1, 0, .5, 0}, batch.results()) == 1);
  CHECK(remote.failure(0).empty());
  CHECK(remote.failure(1) == "toy exploded");
  CHECK(batch.steps[1].step_type == StepType::last);
  CHECK(batch.x(2) == 2.5F);
  CHECK(remote.step(std::vector<double>(6, .1), batch.results()) == 1);
  CHECK(remote.failure(1).find("reset first") != std::string::npos);
  CHECK(batch.count(2) == 2);
  const std::vector<Turn> second{{.kind = Turn::Kind::keep},
                                 {.kind = Turn::Kind::reset, .seed = 50},
                                 {.kind = Turn::Kind::keep}};
  CHECK(remote.play(second, {}, batch.results()) == 0);
  CHECK(remote.failure(1).empty());
  CHECK(batch.x(1) == 50);
  CHECK(server.counters().failures == 2);
}

TEST_CASE("Stepping an episode that has not begun or has ended throws until it is reset") {
  const EnvironmentServer server(context(), make_toy);
  const auto remote = make_remote(options_for(server));
  std::vector<std::byte> observation(remote->spec().observation_bytes());
  const std::vector<double> action{0, 0};
  CHECK(error_of([&] { remote->step(action, observation); }).find("reset first")
        != std::string::npos);
  remote->reset(1, observation);
  for (int i = 0; i < 9; ++i)
    CHECK(remote->step(action, observation).step_type == StepType::mid);
  CHECK(remote->step(action, observation).step_type == StepType::last);
  CHECK_THROWS_AS(remote->step(action, observation), std::runtime_error);
  CHECK(remote->reset(2, observation).step_type == StepType::first);
}

TEST_CASE("A caller's invalid arguments throw and leave the episode unchanged") {
  const EnvironmentServer server(context(), make_toy);
  const auto remote = make_remote(options_for(server));
  std::vector<std::byte> observation(remote->spec().observation_bytes());
  remote->reset(1, observation);
  CHECK_THROWS_AS(remote->step(std::vector<double>(3), observation), std::invalid_argument);
  CHECK_THROWS_AS(remote->step(std::vector<double>{0, NAN}, observation), std::invalid_argument);
  std::vector<std::byte> small(observation.size() - 1);
  CHECK_THROWS_AS(remote->step(std::vector<double>{0, 0}, small), std::invalid_argument);
  CHECK(remote->step(std::vector<double>{0, 0}, observation).step_type == StepType::mid);
  CHECK(server.counters().garbage == 0);
}

TEST_CASE("Choices arrive unchanged, and a choice out of range is an invalid argument") {
  const EnvironmentServer server(
      context(), [] { return std::make_unique<Chooser>(mixed_action()); }, {.environments = 3});
  const auto one = make_remote(options_for(server));
  CHECK(one->spec().action == mixed_action());
  RemoteEnvironments remote(options_for(server, 2));
  REQUIRE(remote.spec().action == mixed_action());
  Batch batch(remote);
  reset_all(remote, batch, 1);
  const auto seen = [&] {
    std::vector<double> values(6);
    std::memcpy(values.data(), batch.bytes.data(), batch.bytes.size());
    return values;
  };
  CHECK(remote.step(std::vector<double>{2, .5, 1, 0, -9, 0}, batch.results()) == 0);
  CHECK(seen() == std::vector<double>{2, .5, 1, 0, -1, 0}); // the continuous number is clipped
  CHECK(batch.steps[0].reward == 3.5);
  std::vector<std::byte> observation(one->spec().observation_bytes());
  one->reset(1, observation);
  for (const double bad : {.5, -1., 3., 1.9999999}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(remote.step(std::vector<double>{0, 0, 0, bad, 0, 0}, batch.results()),
                         doctest::Contains("remote environment 1 at"), std::invalid_argument);
    CHECK_THROWS_WITH_AS(one->step(std::vector<double>{bad, 0, 0}, observation),
                         doctest::Contains("it must be a whole number from 0 to 2"),
                         std::invalid_argument);
  }
  CHECK(remote.step(std::vector<double>{1, 0, 0, 1, 0, 0}, batch.results()) == 0);
  CHECK(one->step(std::vector<double>{1, 0, 0}, observation).reward == 1);
  CHECK(server.counters().failures == 0);
}

TEST_CASE(
    "A pool of remote environments passes choices on, and an invalid choice fails only its row") {
  const EnvironmentServer server(
      context(), [] { return std::make_unique<Chooser>(mixed_action()); }, {.environments = 2});
  EnvironmentPool pool({.environments = 2, .spares = false},
                       [&](int) { return make_remote(options_for(server)); });
  CHECK(pool.spec().action == mixed_action());
  PoolRows rows(pool.spec(), 2);
  const auto late = std::chrono::steady_clock::now() + 60s;
  REQUIRE(pool.reset(std::vector<std::int32_t>{0, 1}, rows.batch(), late));
  REQUIRE(pool.step(std::vector<float>{2, .5F, 1, 1, -.5F, 0}, rows.batch(), late));
  std::vector<double> seen(6);
  std::memcpy(seen.data(), rows.observations.data(), rows.observations.size());
  CHECK(seen == std::vector<double>{2, .5, 1, 1, -.5, 0});
  REQUIRE(pool.step(std::vector<float>{2, .5F, 2, 1, -.5F, 0}, rows.batch(), late));
  CHECK(rows.statuses == std::vector<RowStatus>{RowStatus::failed, RowStatus::ok});
  CHECK(pool.error(0).find("action[2] is 2.000000; it must be a whole number from 0 to 1")
        != std::string::npos);
}

TEST_CASE("States are saved where the server allows it, and otherwise the error names the reason") {
  for (const bool can_save : {true, false}) {
    const EnvironmentServer server(context(), make_toy, {.can_save = can_save});
    const auto remote = make_remote(options_for(server));
    std::vector<std::byte> observation(remote->spec().observation_bytes());
    remote->reset(5, observation);
    remote->step(std::vector<double>{.5, 0}, observation);
    std::vector<std::byte> state;
    if (!can_save) {
      CHECK(error_of([&] { remote->save_state(state); }).find("begins a new episode")
            != std::string::npos);
      CHECK(remote->step(std::vector<double>{.5, 0}, observation).step_type == StepType::mid);
      continue;
    }
    remote->save_state(state);
    const std::size_t once = state.size();
    remote->save_state(state); // appended
    CHECK(state.size() == 2 * once);
    const TimeStep first = remote->step(std::vector<double>{.5, 0}, observation);
    const auto after = observation;
    remote->reset(6, observation);
    CHECK(remote->load_state(state).size() == once);
    CHECK(remote->step(std::vector<double>{.5, 0}, observation).reward == first.reward);
    CHECK(observation == after);
    CHECK_THROWS_AS(remote->load_state(std::span<const std::byte>(state).first(9)),
                    std::invalid_argument);
  }
}

TEST_CASE("Each client has its own environments, and the refusal of a late client says how many "
          "are free") {
  const EnvironmentServer server(context(), make_toy, {.environments = 3});
  auto first = std::make_unique<RemoteEnvironments>(options_for(server, 2));
  RemoteOptions late = options_for(server, 2);
  late.connect_deadline = 100ms;
  const auto full = error_of([&] { RemoteEnvironments second(late); });
  CHECK(full.find("1 of 3 environments are free and 2 were asked for") != std::string::npos);
  CHECK(full.find(server.endpoint()) != std::string::npos);
  RemoteEnvironments third(options_for(server, 1));
  CHECK(server.counters().clients == 2);
  first.reset(); // says goodbye to the server
  RemoteEnvironments second(options_for(server, 2));
  Batch batch(second);
  reset_all(second, batch, 1);
  CHECK(batch.x(1) == 2);
}

TEST_CASE("After a timeout, the next reset waits until the server frees the lost environments") {
  Gate gate;
  CountingHooks hooks;
  hooks.step = [&](std::uint64_t, std::int64_t) { gate.pass(); };
  const EnvironmentServer server(context(),
                                 [&] { return std::make_unique<CountingEnvironment>(10, hooks); },
                                 {.silence = 500ms});
  RemoteOptions options = options_for(server);
  options.deadline = 1000ms;
  options.retry_interval = 50ms;
  const auto remote = make_remote(options);
  std::vector<std::byte> observation(remote->spec().observation_bytes());
  remote->reset(1, observation);
  CHECK(error_of([&] {
          remote->step(std::vector<double>{0, 0}, observation);
        }).find("(deadline)")
        != std::string::npos);
  gate.open();
  CHECK(remote->reset(2, observation).step_type == StepType::first);
}

TEST_CASE("The next reset reconnects to a restarted server, unless its spec has changed") {
  const auto shared = context();
  auto server = std::make_unique<EnvironmentServer>(shared, make_toy,
                                                    EnvironmentServerOptions{.environments = 2});
  const std::string endpoint = server->endpoint();
  RemoteOptions options = options_for(*server, 2);
  options.silence = 2000ms;
  options.connect_deadline = 5000ms;
  options.retry_interval = 20ms;
  RemoteEnvironments remote(options);
  Batch batch(remote);
  reset_all(remote, batch, 1);
  server.reset();
  const auto restart = [&](const EnvironmentServer::Make& make) {
    // The port becomes free some time later, when ZeroMQ has closed the old socket.
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!server) {
      try {
        server = std::make_unique<EnvironmentServer>(
            shared, make, EnvironmentServerOptions{.endpoint = endpoint, .environments = 2});
      } catch (const std::runtime_error&) {
        REQUIRE(std::chrono::steady_clock::now() < deadline);
        std::this_thread::yield();
      }
    }
  };
  restart(make_toy);
  const std::vector<double> actions(4, .1);
  CHECK(error_of([&] { remote.step(actions, batch.results()); }).find("it was restarted")
        != std::string::npos);
  CHECK(error_of([&] { remote.step(actions, batch.results()); }).find("reset all of them")
        != std::string::npos);
  reset_all(remote, batch, 5);
  CHECK(batch.x(1) == 6);
  CHECK(remote.step(actions, batch.results()) == 0);
  server.reset();
  restart([] { return make_task("cartpole_balance"); });
  CHECK_THROWS_AS(remote.step(actions, batch.results()), std::runtime_error);
  CHECK(error_of([&] {
          reset_all(remote, batch, 5);
        }).find("a different spec: the environment was 'toy' and is 'cartpole_balance'")
        != std::string::npos);
}

TEST_CASE("The error about an option out of range names the option") {
  const auto text = [](RemoteOptions options) { return error_of([&] { check(options); }); };
  CHECK(text({.endpoint = "tcp://127.0.0.1:5555"}).empty());
  CHECK(text({.endpoint = "ipc:///tmp/x"}).empty());
  CHECK(text({.endpoint = "tcp://[::1]:80"}).empty());
  CHECK(text({.endpoint = "tcp://10.0.0.1:80", .allow_other_hosts = true}).empty());
  for (const char* endpoint :
       {"", "127.0.0.1:5555", "tcp://127.0.0.1", "tcp://127.0.0.1:0", "tcp://127.0.0.1:*",
        "tcp://127.0.0.1:70000", "tcp://127.0.0.1:5x", "tcp://:5555", "ipc://", "http://x:1"})
    CHECK_MESSAGE(text({.endpoint = endpoint}).find("endpoint '") == 0, endpoint);
  for (const char* endpoint : {"tcp://10.0.0.1:80", "tcp://127.evil.example:80", "tcp://0.0.0.0:80",
                               "tcp://127.0.0.1.example:80", "tcp://*:80", "tcp://128.0.0.1:80"})
    CHECK_MESSAGE(text({.endpoint = endpoint}).find("allow_other_hosts") != std::string::npos,
                  endpoint);
  CHECK(text({.endpoint = "ipc://" + std::string(200, 'x')}).find("97 bytes") != std::string::npos);
  CHECK(text({.endpoint = "ipc://x", .environments = 0}).find("1 to 4096") != std::string::npos);
  CHECK(text({.endpoint = "ipc://x", .deadline = 0ms}).find("remote deadline") == 0);
  CHECK(text({.endpoint = "ipc://x", .silence = 100ms}).find("remote heartbeat_interval") == 0);
  CHECK(text({.endpoint = "ipc://x", .max_message_bytes = 1}).find("remote max_message_bytes")
        == 0);
}

TEST_CASE("A server with keys serves the clients that it allows and refuses others") {
  const wire::KeyPair own = wire::make_key_pair(), allowed = wire::make_key_pair();
  const wire::KeyPair stranger = wire::make_key_pair();
  const troupe::TemporaryFolder folder;
  for (const std::string& endpoint :
       {"ipc://" + (folder / "keys.ipc").string(), std::string("tcp://127.0.0.1:*")}) {
    const EnvironmentServer server(context(), make_toy,
                                   {.endpoint = endpoint,
                                    .environments = 2,
                                    .keys = wire::ServerKeys{own, {allowed.public_key}}});
    RemoteOptions options = options_for(server, 2);
    options.keys = wire::ClientKeys{allowed, own.public_key};
    RemoteEnvironments remote(options);
    Batch batch(remote);
    reset_all(remote, batch, 100);
    CHECK(remote.step(std::vector<double>{.5, 0, .25, 0}, batch.results()) == 0);
    CHECK(batch.x(0) == 100.5F);
    options.environments = 1;
    options.connect_deadline = 300ms;
    for (const auto& keys : {std::optional<wire::ClientKeys>(),
                             std::optional(wire::ClientKeys{stranger, own.public_key}),
                             std::optional(wire::ClientKeys{allowed, stranger.public_key})}) {
      options.keys = keys;
      CHECK_THROWS_AS(RemoteEnvironments{options}, std::runtime_error);
    }
    CHECK(server.counters().clients == 1);
  }
  // Without encryption another host is refused; with keys it is allowed.
  RemoteOptions far{.endpoint = "tcp://192.0.2.1:5555"};
  CHECK_THROWS_AS(check(far), std::invalid_argument);
  far.keys = wire::ClientKeys{allowed, own.public_key};
  CHECK_NOTHROW(check(far));
  CHECK_THROWS_WITH_AS(
      make_environment(
          {.task = "remote", .options = {"endpoint=tcp://127.0.0.1:1", "server_key=k"}}),
      doctest::Contains("has server_key and no secret_key"), std::invalid_argument);
}

TEST_CASE("A server that admits every host without keys says so in its log") {
  for (const bool all : {true, false}) {
    std::string said; // written before the constructor returns
    const EnvironmentServer server(
        context(), make_toy,
        {.allow_other_hosts = all, .log = [&](const std::string& text) { said += text; }});
    CHECK((said.find("nothing is encrypted") != std::string::npos) == all);
    CHECK((said.find(server.endpoint()) != std::string::npos) == all);
  }
}

TEST_CASE("A server refuses environments that differ and endpoints that other hosts can reach") {
  int made = 0;
  const auto differ = [&] { return ++made == 1 ? make_toy() : make_task("cartpole_balance"); };
  CHECK_THROWS_WITH_AS(EnvironmentServer(context(), differ, {.environments = 2}),
                       doctest::Contains("must be equal"), std::invalid_argument);
  CHECK_THROWS_AS(EnvironmentServer(context(), make_toy, {.endpoint = "tcp://0.0.0.0:*"}),
                  std::invalid_argument);
  CHECK_THROWS_AS(EnvironmentServer(context(), make_toy, {.environments = 0}),
                  std::invalid_argument);
  CHECK_THROWS_WITH_AS(EnvironmentServer(context(), make_toy, {.max_message_bytes = 8}),
                       doctest::Contains("cannot be served"), std::invalid_argument);
}
