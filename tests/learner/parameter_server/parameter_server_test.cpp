#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <tuple>

#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include "learner/parameter_server/parameter_server.hpp"

namespace troupe::learner {
namespace {

using namespace std::chrono_literals;
using Time = ParameterServer::Time;

const Time kStart{};

ServedSlice sgd_slice(std::int64_t elements = 2, double rate = 1) {
  const torch::optim::SGD sgd({torch::zeros({1})}, torch::optim::SGDOptions(rate));
  return {.recipe = describe(sgd), .segments = {{.count = elements}}, .type = at::kFloat};
}

/// A server that starts from zeros, with SGD of learning rate 1, and whose workers have joined.
struct Fixture {
  explicit Fixture(const ParameterServerOptions& options, const ServedSlice& slice = sgd_slice())
      : server(options, kStart), steps(static_cast<std::size_t>(options.workers)) {
    server.begin(slice, torch::zeros({elements_of(slice.segments)}));
    for (int i = 0; i < options.workers; ++i)
      CHECK(server.join(i, session(i), kStart) == "");
  }
  static std::uint64_t session(int worker) { return static_cast<std::uint64_t>(worker) + 100; }
  Push make(int worker, std::int64_t version, const at::Tensor& gradient) {
    return {.worker = worker,
            .session = session(worker),
            .step = ++steps[static_cast<std::size_t>(worker)],
            .version = version,
            .gradient = gradient,
            .present = std::vector<bool>(server.slice().segments.size(), true)};
  }
  PushAnswer push(int worker, std::int64_t version, double value = 1, Time now = kStart) {
    return server.push(make(worker, version, torch::full({server.parameters().numel()}, value)),
                       now);
  }
  /// Whether the worker gets the parameters after the last step it made.
  bool ready(int worker) const {
    return server.pull(worker, steps[static_cast<std::size_t>(worker)]).ready;
  }
  double value() const { return server.parameters()[0].item<double>(); }

  ParameterServer server;
  std::vector<std::int64_t> steps;
};

} // namespace

TEST_CASE("Asynchronously, each gradient makes a version, and its staleness is reported") {
  Fixture f({.workers = 2});
  CHECK(f.push(0, 0).outcome == Outcome::applied);
  const auto late = f.push(1, 0, 0.5);
  CHECK(late.outcome == Outcome::applied);
  CHECK(late.staleness == 1);
  CHECK(f.server.version() == 2);
  CHECK(f.value() == doctest::Approx(-1.5));
}

TEST_CASE("The learning rate decreases with a gradient's staleness as configured") {
  for (const auto& [rate, expected] :
       {std::pair{StalenessRate::constant, -4.0},
        std::pair{StalenessRate::inverse, -1 - 1 - 0.5 - 1.0 / 3},
        std::pair{StalenessRate::inverse_plus_one, -1 - 0.5 - 1.0 / 3 - 0.25}}) {
    Fixture f({.workers = 1, .staleness_rate = rate});
    for (int i = 0; i < 4; ++i)
      f.push(0, 0);
    CHECK(f.value() == doctest::Approx(expected));
  }
}

TEST_CASE("No gradient older than max_staleness is applied, in any order") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const std::int64_t most = random() % 4;
    Fixture f({.workers = 5, .max_staleness = most});
    std::vector<std::int64_t> has(5);
    for (int i = 0; i < 300; ++i) {
      const auto worker = random() % 5;
      const std::int64_t before = f.server.version();
      const auto answer = f.push(static_cast<int>(worker), has[worker], 0.01);
      CHECK(answer.staleness == before - has[worker]);
      CHECK((answer.outcome == Outcome::applied) == (answer.staleness <= most));
      has[worker] = f.server.version();
    }
    CHECK(f.server.counters().staleness_most <= most);
    CHECK(f.server.counters().applied + f.server.counters().dropped == 300);
  }
}

TEST_CASE("max_lead limits how far workers run ahead, the slowest never waits, and the reason "
          "names the worker") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const std::int64_t lead = 1 + random() % 4;
    Fixture f({.workers = 4, .max_lead = lead});
    for (int i = 0; i < 500; ++i) {
      const int worker = static_cast<int>(random() % 4);
      const auto least = *std::min_element(f.steps.begin(), f.steps.end());
      const auto ahead = f.steps[static_cast<std::size_t>(worker)] - least;
      const auto pull = f.server.pull(worker, 0);
      CHECK(pull.ready == (ahead <= lead));
      if (ahead == 0)
        CHECK(pull.ready);
      if (pull.ready)
        f.push(worker, f.server.version(), 0.01);
      else
        CHECK(pull.why.starts_with("worker " + std::to_string(worker) + " is "
                                   + std::to_string(ahead) + " steps ahead of worker "));
    }
    const auto [least, most] = std::minmax_element(f.steps.begin(), f.steps.end());
    CHECK(*most - *least <= lead + 1);
  }
}

TEST_CASE("The step of N synchronous workers equals that of one on the mean and does not depend on "
          "their order") {
  std::set<double> values;
  for (const auto& order : {std::vector{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    Fixture f(central_storage(3));
    for (const int worker : order) {
      f.push(worker, 0, 0.1 + 0.7 * worker);
      CHECK(f.ready(worker) == (worker == order.back()));
    }
    CHECK(f.server.version() == 1);
    CHECK(f.ready(order.front()));
    CHECK(f.value() == doctest::Approx(-0.8));
    values.insert(f.value());
  }
  CHECK(values.size() == 1);
}

TEST_CASE(
    "A backup worker's gradient is dropped and counted, and the other workers never wait for it") {
  Fixture f(with_backup_workers(4, 1)); // 3 is slow: it pushes once every five versions
  for (std::int64_t version = 0; version < 50; ++version) {
    for (int worker = 0; worker < 3; ++worker)
      f.push(worker, version, 0.1);
    for (int worker = 0; worker < 3; ++worker)
      CHECK(f.ready(worker));
    if (version % 5 == 4) {
      const auto answer = f.push(3, version - 4, 100);
      CHECK(answer.outcome == Outcome::dropped);
      CHECK(answer.staleness == 5);
      CHECK(f.ready(3));
    }
  }
  CHECK(f.server.version() == 50);
  CHECK(f.server.counters().dropped == 10);
  CHECK(f.server.counters().applied == 150);
  CHECK(f.value() == doctest::Approx(-5));
}

TEST_CASE("A step that is sent again counts once and gets the same answer") {
  Fixture f({.workers = 2});
  const auto push = f.make(0, 0, torch::ones({2}));
  f.push(1, 0);
  const auto first = f.server.push(push, kStart);
  f.push(1, 2);
  const auto again = f.server.push(push, kStart);
  CHECK(again.outcome == first.outcome);
  CHECK(again.staleness == first.staleness);
  CHECK(f.server.version() == 3);
  CHECK(f.server.counters().duplicates == 1);
  Fixture synchronous(central_storage(2));
  const auto counted = synchronous.make(0, 0, torch::ones({2}));
  CHECK(synchronous.server.push(counted, kStart).outcome == Outcome::counted);
  CHECK(synchronous.server.push(counted, kStart).outcome == Outcome::counted);
  CHECK(synchronous.server.version() == 0);
}

TEST_CASE("A NaN is refused with the worker and its step and changes nothing") {
  Fixture f({.workers = 2});
  const auto answer = f.push(1, 0, std::numeric_limits<double>::quiet_NaN());
  CHECK(answer.outcome == Outcome::refused);
  CHECK(answer.why.find("of worker 1 at its step 1 is not finite") != std::string::npos);
  CHECK(f.server.version() == 0);
  // Finite numbers count as finite even when their sum is not.
  CHECK(f.push(0, 0, 3e38).outcome == Outcome::applied);
  auto wrong = f.make(0, 1, torch::ones({3}));
  CHECK(f.server.push(wrong, kStart).outcome == Outcome::refused);
}

TEST_CASE("A worker without gradients takes part in a version, and the others share the mean") {
  Fixture f(central_storage(2));
  const auto none = [&](int worker, std::int64_t version) {
    auto push = f.make(worker, version, at::Tensor());
    push.present.clear();
    return f.server.push(push, kStart).outcome;
  };
  CHECK(none(1, 0) == Outcome::counted);
  CHECK(f.push(0, 0, 3).outcome == Outcome::applied);
  CHECK(f.value() == -3); // not half of it
  CHECK(none(0, 1) == Outcome::counted);
  CHECK(none(1, 1) == Outcome::applied);
  CHECK(f.server.version() == 2);
  CHECK(f.value() == -3);
  CHECK(f.server.counters().applied == 1);
  CHECK(f.server.counters().dropped == 3);
  Fixture asynchronous({.workers = 1});
  auto push = asynchronous.make(0, 0, at::Tensor());
  push.present.clear();
  CHECK(asynchronous.server.push(push, kStart).outcome == Outcome::dropped);
  CHECK(asynchronous.server.version() == 0);
}

TEST_CASE("No worker waits for one that is silent or has left, and it can return") {
  auto options = central_storage(3);
  options.worker_timeout = 100ms;
  options.join_timeout = 500ms;
  Fixture f(options);
  f.push(0, 0, 1, kStart + 50ms);
  f.push(1, 0, 1, kStart + 60ms);
  CHECK(f.server.next_silence_deadline() == kStart + 100ms);
  CHECK(f.server.drop_silent_workers(kStart + 99ms).empty());
  const auto words = f.server.drop_silent_workers(kStart + 100ms);
  REQUIRE(words.size() == 1);
  CHECK(words[0].starts_with("worker 2 was silent for 100 ms"));
  CHECK(f.server.version() == 1); // from the two workers that were present
  CHECK(f.push(2, 0, 1, kStart + 120ms).outcome == Outcome::dropped);
  CHECK(f.push(0, 1, 1, kStart + 130ms).outcome == Outcome::counted);
  CHECK(f.push(1, 1, 1, kStart + 130ms).outcome == Outcome::counted); // 2 is back
  f.server.leave(2, Fixture::session(2));
  CHECK(f.server.version() == 2);
  f.server.suspend_participation(0, Fixture::session(0), f.steps[0],
                                 kStart); // a resting worker announces it
  CHECK(f.server.drop_silent_workers(kStart + 230ms).size() == 2);
}

TEST_CASE("A slow worker left at the end of a run neither waits nor makes versions alone") {
  Fixture f(with_backup_workers(3, 1));
  std::int64_t version = 0;
  for (int run = 0; run < 3; ++run) {
    for (int step = 0; step < 4; ++step, ++version) {
      CHECK(f.push(0, version).outcome == Outcome::counted); // including the first after a rest
      CHECK_FALSE(f.ready(0));
      CHECK(f.push(1, version).outcome == Outcome::applied);
      if (step == 0)
        CHECK(f.push(2, version).outcome == Outcome::dropped); // too late
    }
    f.server.suspend_participation(0, Fixture::session(0), f.steps[0], kStart);
    CHECK(f.server.heartbeat(0, Fixture::session(0), kStart)); // a late heartbeat
    if (run == 1) { // before the last of the others rests, because that one is ahead, too
      CHECK(f.push(2, version).outcome == Outcome::dropped);
      CHECK(f.ready(2));
    }
    f.server.suspend_participation(1, Fixture::session(1), f.steps[1], kStart);
    CHECK(f.ready(2));
    for (int left = run == 1 ? 2 : 3; left > 0; --left) {
      CHECK(f.push(2, version).outcome != Outcome::applied);
      CHECK(f.ready(2));
    }
    f.server.suspend_participation(2, Fixture::session(2), f.steps[2], kStart);
    CHECK(f.server.version() == version);
  }
}

TEST_CASE("A worker that has not joined yet is waited for until join_timeout") {
  auto options = central_storage(2);
  options.join_timeout = 500ms;
  ParameterServer server(options, kStart);
  server.begin(sgd_slice(), torch::zeros({2}));
  server.join(0, 1, kStart + 400ms);
  CHECK(server.drop_silent_workers(kStart + 499ms).empty());
  CHECK(server.drop_silent_workers(kStart + 500ms).size() == 1);
}

TEST_CASE("A process that replaces a worker is accepted, and the old process is refused") {
  Fixture f({.workers = 1});
  f.push(0, 0);
  CHECK(f.server.join(0, 7, kStart) == "");
  CHECK(f.push(0, 1).outcome == Outcome::unknown);
  CHECK(f.server.join(0, Fixture::session(0), kStart).find("another process") != std::string::npos);
  auto push = f.make(0, 1, torch::ones({2}));
  push.session = 7;
  push.step = 1; // its own count
  CHECK(f.server.push(push, kStart).outcome == Outcome::applied);
  CHECK(f.server.join(1, 8, kStart).find("there is no worker 1") != std::string::npos);
}

TEST_CASE("A server restored from a snapshot continues bit for bit and recognises steps that it "
          "has seen") {
  const torch::optim::Adam adam({torch::zeros({1})}, torch::optim::AdamOptions(0.1));
  const ServedSlice slice{
      .recipe = describe(adam),
      .segments = {{.parameter = 0, .count = 2}, {.parameter = 3, .begin = 4, .count = 3}},
      .type = at::kFloat};
  const ParameterServerOptions options{.workers = 2};
  Fixture f(options, slice);
  for (int i = 0; i < 5; ++i)
    f.push(i % 2, i, 0.3 * i);
  const auto last = f.make(1, 5, torch::ones({5}));
  f.server.push(last, kStart);
  const auto snapshot = f.server.snapshot();
  ParameterServer restored(options, kStart);
  restored.restore(snapshot);
  CHECK(restored.version() == 6);
  CHECK(restored.push(last, kStart).outcome == Outcome::applied); // a repetition counts once
  CHECK(restored.version() == 6);
  const auto next = f.make(0, 6, torch::full({5}, 0.7));
  f.server.push(next, kStart);
  restored.push(next, kStart);
  CHECK(restored.parameters().equal(f.server.parameters()));

  // A worker with newer parameters must rewind, and gets those of the server.
  ParameterServer older(options, kStart);
  older.restore(snapshot);
  const auto ahead = f.make(0, 9, torch::ones({5}));
  CHECK(older.push(ahead, kStart).outcome == Outcome::rewound);
  CHECK(older.pull(0, ahead.step).ready);

  auto damaged = snapshot;
  damaged.erase("parameters");
  ParameterServer empty(options, kStart);
  CHECK_THROWS_WITH_AS(empty.restore(damaged), doctest::Contains("\"parameters\""),
                       std::invalid_argument);
  damaged = snapshot;
  damaged["header"] = torch::full({3}, 255, at::kByte);
  ParameterServer other(options, kStart);
  CHECK_THROWS_WITH_AS(other.restore(damaged), doctest::Contains("\"header\""),
                       std::invalid_argument);
}

TEST_CASE("A snapshot with a changed header is either refused or restored to a server that works") {
  Fixture f({.workers = 2});
  f.push(0, 0);
  const auto snapshot = f.server.snapshot();
  std::mt19937 random(3);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    auto changed = snapshot;
    auto& header = changed["header"] = snapshot.at("header").clone();
    for (std::size_t j = 0; j < 1 + random() % 3; ++j)
      header[static_cast<std::int64_t>(random() % static_cast<std::size_t>(header.numel()))] =
          static_cast<std::int64_t>(random() % 256);
    ParameterServer server({.workers = 2}, kStart);
    try {
      server.restore(changed);
      CHECK(server.join(1, 77, kStart) == "");
      CHECK(server.version() >= 0);
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("A gradient that was waiting when the snapshot was made is accepted again after it") {
  Fixture f(central_storage(2));
  const auto push = f.make(0, 0, torch::ones({2}));
  f.server.push(push, kStart);
  ParameterServer restored(central_storage(2), kStart);
  restored.restore(f.server.snapshot());
  CHECK(restored.push(push, kStart).outcome == Outcome::counted);
  restored.push(f.make(1, 0, torch::ones({2})), kStart);
  CHECK(restored.version() == 1);
}

TEST_CASE("After a restart, no worker waits for one whose step was answered before") {
  Fixture f(central_storage(2));
  f.push(0, 0);
  f.push(1, 0);
  const auto snapshot = f.server.snapshot(); // of version 1
  f.make(0, 1, torch::ones({2}));
  const auto lost = f.make(1, 1, torch::ones({2}));
  ParameterServer restored(central_storage(2), kStart);
  restored.restore(snapshot);
  // Version 2 existed before: worker 0 has it, and is busy with another optimizer.
  CHECK(restored.push(lost, kStart).outcome == Outcome::counted);
  restored.set_worker_version(0, Fixture::session(1), 2, 2); // from another session
  restored.set_worker_version(0, Fixture::session(0), 1, 1); // it will push
  restored.set_worker_version(0, Fixture::session(0), 0, 2); // outdated
  restored.set_worker_version(7, Fixture::session(0), 2, 2);
  CHECK_FALSE(restored.pull(1, lost.step).ready);
  restored.set_worker_version(0, Fixture::session(0), 2, 2);
  CHECK(restored.version() == 2);
  CHECK(restored.pull(1, lost.step).ready);
  // From here on the server waits for both again.
  CHECK(restored.push(f.make(1, 2, torch::ones({2})), kStart).outcome == Outcome::counted);
  CHECK(restored.push(f.make(0, 2, torch::ones({2})), kStart).outcome == Outcome::applied);
  CHECK(restored.version() == 3);
}

TEST_CASE("A restarted server learns which workers rest and which are behind them") {
  ParameterServer server(with_backup_workers(3, 1), kStart);
  Fixture f(with_backup_workers(3, 1));
  server.begin(f.server.slice(), torch::zeros({2}), 400);
  for (const int worker : {0, 2}) {
    REQUIRE(server.join(worker, Fixture::session(worker), kStart, 409) == "");
    server.set_worker_version(worker, Fixture::session(worker), 408, 408);
  }
  REQUIRE(server.join(1, Fixture::session(1), kStart, 382) == "");
  for (const int worker : {0, 2})
    server.suspend_participation(worker, Fixture::session(worker), 408, kStart);
  f.steps = {408, 381, 408};
  const auto late = server.push(f.make(1, 408, torch::ones({2})), kStart);
  CHECK(late.outcome == Outcome::dropped); // two are needed, and no other worker makes these steps
  CHECK(server.pull(1, 382).ready);
  f.steps[1] = 408;
  CHECK(server.push(f.make(1, 408, torch::ones({2})), kStart).outcome == Outcome::counted);
}

TEST_CASE("If so many workers rest that all others are needed, none waits for one that was late") {
  Fixture f(with_backup_workers(3, 1));
  f.push(0, 0);
  f.push(2, 0);
  CHECK(f.push(1, 0).outcome == Outcome::dropped); // no worker rests
  f.push(0, 1);
  f.push(2, 1);
  f.server.suspend_participation(0, Fixture::session(0), 3, kStart);
  CHECK(f.push(2, 2).outcome == Outcome::counted);
  CHECK(f.push(1, 1).outcome == Outcome::dropped);
  CHECK_FALSE(f.ready(2)); // worker 1 has yet to make the step
  CHECK(f.push(1, 1).outcome == Outcome::dropped);
  CHECK(f.ready(2)); // otherwise 2 would wait here, and 1 for 2 elsewhere
  CHECK(f.push(1, 2).outcome == Outcome::applied);
}

TEST_CASE("A worker that is behind does not wait for those that may wait for it elsewhere") {
  Fixture f(with_backup_workers(4, 1));
  for (std::int64_t version = 0; version < 2; ++version)
    for (const int worker : {0, 1, 2})
      f.push(worker, version);
  CHECK(f.push(3, 0).outcome == Outcome::dropped);
  CHECK(f.push(3, 2).outcome == Outcome::counted); // the others have made this step before
  CHECK(f.ready(3));
  CHECK(f.push(0, 2).outcome == Outcome::counted);
  CHECK_FALSE(f.ready(0));                         // workers 1 and 2 have yet to make the step
  CHECK(f.push(1, 2).outcome == Outcome::applied); // together with 0 and 3
  CHECK(f.server.counters().applied == 9);
}

TEST_CASE("A restarted server learns the steps of workers that are elsewhere") {
  Fixture f(with_backup_workers(4, 1));
  ParameterServer restored(with_backup_workers(4, 1), kStart);
  restored.restore(f.server.snapshot());
  f.steps = {4, 4, 4, 4};
  const auto late = f.make(0, 4, torch::ones({2})); // reached the server that was lost
  const auto push = f.make(3, 5, torch::ones({2}));
  CHECK(restored.push(push, kStart).outcome == Outcome::counted);
  restored.set_worker_version(0, Fixture::session(0), 5, 5);
  CHECK_FALSE(restored.pull(3, push.step).ready);
  restored.set_worker_version(1, Fixture::session(1), 5, 5);
  CHECK(restored.pull(3, push.step).ready); // three are needed, and two have made the step
  CHECK(restored.push(late, kStart).outcome == Outcome::dropped);
  CHECK(restored.version() == 5);
}

TEST_CASE("Without backup workers, all wait for a new process, also while another worker rests") {
  Fixture f(central_storage(3));
  for (int worker = 0; worker < 3; ++worker)
    f.push(worker, 0);
  f.server.suspend_participation(0, Fixture::session(0), f.steps[0], kStart);
  CHECK(f.push(1, 1).outcome == Outcome::counted);
  REQUIRE(f.server.join(2, 999, kStart) == ""); // its steps are counted from the others'
  CHECK_FALSE(f.ready(1));
}

TEST_CASE("Synchronous gradients on parameters newer than a restarted server's count together") {
  Fixture f(central_storage(2));
  ParameterServer restored(central_storage(2), kStart);
  restored.restore(f.server.snapshot()); // of version 0
  const auto push = [&](int worker, std::int64_t version) {
    return restored.push(f.make(worker, version, torch::ones({2})), kStart).outcome;
  };
  f.steps = {50, 50};
  CHECK(push(0, 50) == Outcome::counted);
  CHECK_FALSE(restored.pull(0, 51).ready);
  restored.set_worker_version(1, Fixture::session(1), 50, 50); // on its way
  CHECK(restored.version() == 50);                             // the numbers continue from it
  CHECK(push(1, 50) == Outcome::applied);
  CHECK(restored.pull(0, 51).ready);
  restored.parameters_sent(0);
  restored.parameters_sent(1);
  CHECK(push(1, 51) == Outcome::counted);
  CHECK(push(0, 51) == Outcome::applied);
  CHECK(restored.version() == 52);
  CHECK(restored.counters().dropped == 0);
  CHECK(restored.counters().rewound == 1);
}

TEST_CASE("A parameter without a gradient keeps its value and its moments") {
  const torch::optim::SGD sgd({torch::zeros({1})}, torch::optim::SGDOptions(1).momentum(0.9));
  const ServedSlice slice{.recipe = describe(sgd),
                          .segments = {{.parameter = 0, .count = 1}, {.parameter = 1, .count = 1}},
                          .type = at::kFloat};
  Fixture f({.workers = 1}, slice);
  f.push(0, 0);
  auto push = f.make(0, 1, torch::tensor({0.F, 1.F}));
  push.present = {false, true};
  f.server.push(push, kStart);
  CHECK(f.server.parameters()[0].item<double>() == doctest::Approx(-1));
  CHECK(f.server.parameters()[1].item<double>() == doctest::Approx(-2.9));
}

TEST_CASE("Learning rates arrive with a gradient and stay in effect") {
  Fixture f({.workers = 1});
  auto push = f.make(0, 0, torch::ones({2}));
  push.learning_rates = {0.25};
  f.server.push(push, kStart);
  f.push(0, 1);
  CHECK(f.value() == doctest::Approx(-0.5));
}

TEST_CASE("Contradictory options are refused with an explanation") {
  CHECK_THROWS_WITH(check(with_backup_workers(3, 3)), doctest::Contains("less than workers, 3"));
  CHECK_THROWS_AS(check(ParameterServerOptions{.workers = 0}), std::invalid_argument);
  CHECK_THROWS_AS(check(ParameterServerOptions{.workers = 3, .backup_workers = 1}),
                  std::invalid_argument);
  auto mixed = central_storage(2);
  mixed.max_staleness = 3;
  CHECK_THROWS_WITH(check(mixed), doctest::Contains("need the asynchronous strategy"));
}

TEST_CASE("Steps that another process reported before a worker joined are not the worker's") {
  ParameterServer server(with_backup_workers(3, 1), kStart);
  server.begin(sgd_slice(), torch::zeros({2}));
  const auto push = [&](int worker, std::int64_t step) {
    return server
        .push({.worker = worker,
               .session = Fixture::session(worker),
               .step = step,
               .gradient = torch::ones({2}),
               .present = {true}},
              kStart)
        .outcome;
  };
  REQUIRE(server.join(1, Fixture::session(1), kStart) == "");
  for (const int worker : {0, 2})
    server.set_worker_version(worker, 7, 100, 0);
  SUBCASE("its own report is newer") {
    server.set_worker_version(0, Fixture::session(0), 5, 0);
    REQUIRE(server.join(0, Fixture::session(0), kStart, 6) == "");
    CHECK(push(0, 6) == Outcome::counted);
  }
  SUBCASE("it reports nothing") {
    for (const int worker : {0, 2})
      REQUIRE(server.join(worker, Fixture::session(worker), kStart) == "");
    CHECK(push(1, 1) == Outcome::counted);
    CHECK_FALSE(server.pull(1, 1).ready); // waits for another worker's first step
    CHECK(push(0, 1) == Outcome::applied);
    CHECK(server.pull(1, 1).ready);
    CHECK(server.version() == 1);
  }
}

} // namespace troupe::learner
