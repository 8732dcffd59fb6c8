#include "tests/actor_fixture.hpp"

#include "actors/run/control_actor.hpp"
#include "actors/run/metrics_actor.hpp"
#include "learner/agents/d4pg/d4pg.hpp"
#include "tests/text.hpp"

namespace troupe::actors {
namespace {

constexpr std::uint64_t kEpoch = 7;

wire::SupervisorReport three_processes() {
  wire::SupervisorReport report;
  const auto add = [&](const std::string& role, int index, const std::string& node,
                       const std::string& state) {
    auto& one = *report.add_processes();
    one.set_role(role);
    one.set_index(index);
    one.set_node(node);
    one.set_state(state);
  };
  add("replay", 0, "n-0", "up");
  add("environment", 0, "n-0", "up");
  add("environment", 3, "n-1", "waiting");
  report.mutable_processes(2)->set_waits("it waits for a node: environment 3 needs 2 cores");
  return report;
}

RunConfig controlled_config() {
  RunConfig config;
  config.agent = learner::make_d4pg_agent({.batch_size = 64});
  return config;
}

struct ControlFixture : tests::ActorFixture {
  ControlActor control = system.spawn(control_actor, ControlOptions{.config = controlled_config(),
                                                                    .head = caf::actor(self),
                                                                    .epoch = kEpoch,
                                                                    .folder = "/runs/a"});

  ~ControlFixture() {
    caf::anon_send_exit(control, caf::exit_reason::user_shutdown);
    deliver_all();
  }

  struct Outcome {
    std::string bytes, refusal;
    Fault fault = {};
  };
  template <class Pending>
  Outcome outcome_of(Pending& pending) {
    Outcome outcome;
    pending.receive([&](const ProtoBytes& got) { outcome.bytes = got.bytes; },
                    [&](const caf::error& error) {
                      outcome.refusal = explain(system, error);
                      outcome.fault = error == Fault::bad_request ? Fault::bad_request
                                      : error == Fault::stopping  ? Fault::stopping
                                                                  : Fault::failed;
                    });
    return outcome;
  }
  auto begin(const ProtoBytes& request) {
    auto pending =
        self->request(control, caf::infinite, control_atom_v, request, encode(three_processes()));
    deliver_all();
    return pending;
  }
  Outcome answer(const ProtoBytes& request) {
    auto pending = begin(request);
    return outcome_of(pending);
  }
};

wire::ControlRequest scale(const std::string& role, int count) {
  wire::ControlRequest request;
  request.set_folder("/runs/a");
  request.mutable_scale()->set_role(role);
  request.mutable_scale()->set_count(count);
  return request;
}

TEST_CASE("Unsupported scaling of a live run is refused with the reason and a remedy") {
  const RunConfig config;
  RunConfig deterministic, on_data, sharded;
  sharded.replay.shards = 3;
  deterministic.deterministic = true;
  on_data.workload = [] { return std::unique_ptr<learner::Replica>(); };
  CHECK(why_not_scaled(config, "environment", 16).empty());
  struct Row {
    const RunConfig& config;
    std::string role;
    int count;
    std::string word;
  };
  for (const Row& row :
       {Row{config, "evaluator", 2, "one evaluator"}, Row{config, "replay", 4, "`troupe resume`"},
        Row{config, "learner", 4, "learner.replicas"},
        Row{config, "parameter_server", 4, "learner.parameter_servers"},
        Row{config, "actor", 4, "it must be replay"}, Row{config, "environment", 0, "from 1 to"},
        Row{config, "environment", -3, "from 1 to"},
        Row{config, "environment", 70'000, "from 1 to"},
        Row{deterministic, "environment", 4, "deterministic"},
        Row{sharded, "environment", 2, "3 replay shards"},
        Row{on_data, "environment", 4, "data"}}) {
    CAPTURE(row.role);
    CHECK(has(why_not_scaled(row.config, row.role, row.count), row.word));
  }
}

TEST_CASE("A restart covers the selected processes, and a selection without any is refused with "
          "the list of processes") {
  const auto chosen = [](const std::string& role, const std::string& node) {
    wire::ControlRequest::Restart wanted;
    wanted.set_role(role);
    wanted.set_node(node);
    std::string names;
    const auto order = restart_order({}, wanted, three_processes());
    for (const auto& one : order.processes())
      names += one.role() + std::to_string(one.index()) + " ";
    return names;
  };
  CHECK(chosen("", "") == "replay0 environment0 environment3 ");
  CHECK(chosen("environment", "") == "environment0 environment3 ");
  CHECK(chosen("environment/3", "") == "environment3 ");
  CHECK(chosen("", "n-0") == "replay0 environment0 ");
  CHECK(chosen("environment", "n-0") == "environment0 ");
  for (const auto& [role, node] : {std::pair{"environment", "n-7"}, {"environment/1", ""}}) {
    const auto words = error_of<std::invalid_argument>([&] { chosen(role, node); });
    CHECK(has(words, "there are: replay/0 on n-0, environment/0 on n-0, environment/3 on n-1"));
  }
  for (const char* bad : {"environments", "environment/", "environment/x", "environment/-1",
                          "environment/99999999999", "/3"})
    CHECK_THROWS_AS(chosen(bad, ""), std::invalid_argument);
  RunConfig deterministic;
  deterministic.deterministic = true;
  CHECK_THROWS_AS(restart_order(deterministic, {}, three_processes()), std::invalid_argument);
}

TEST_CASE_FIXTURE(
    ControlFixture,
    "A status request is answered without the head and lists what each process waits for") {
  wire::HeadReport head;
  head.set_phase("training");
  head.set_waits("waiting for a learner");
  self->send(control, report_atom_v, encode(head));
  auto update = std::make_shared<Update>();
  update->progress.updates = 12;
  update->progress.episode_return = std::nan("");
  update->progress.waits = {"learner 0: waiting for samples from replay 1"};
  self->send(control, update_atom_v, UpdatePtr(update));
  wire::ControlRequest request;
  request.set_folder("/runs/a");
  request.set_status(true);
  const auto status = decode<wire::RunStatus>(ProtoBytes{answer(encode(request)).bytes});
  CHECK(status.epoch() == kEpoch);
  CHECK(status.head().phase() == "training");
  CHECK(status.counters().updates() == 12);
  CHECK(std::isnan(status.counters().episode_return()));
  CHECK(status.supervisor().processes_size() == 3);
  CHECK(std::vector<std::string>(status.operations().begin(), status.operations().end())
        == std::vector<std::string>{"stop", "checkpoint", "pause", "timeline", "limit", "picture",
                                    "restart", "scale"});
  REQUIRE(status.waits_size() == 3);
  CHECK(status.waits(0) == "head: waiting for a learner");
  CHECK(status.waits(1) == "environment 3: it waits for a node: environment 3 needs 2 cores");
  CHECK(status.waits(2) == "learner 0: waiting for samples from replay 1");
}

TEST_CASE_FIXTURE(ControlFixture,
                  "Garbage, empty requests and requests for another head are refused") {
  wire::ControlRequest other, nothing;
  other.set_folder("/runs/b");
  other.set_stop(true);
  for (const ProtoBytes& request :
       {ProtoBytes{"garbage"}, encode(nothing), encode(other), encode(scale("learner", 3)),
        encode(scale("environment", -1))}) {
    const auto outcome = answer(request);
    CHECK(outcome.fault == Fault::bad_request);
    CHECK_FALSE(outcome.refusal.empty());
  }
  CHECK_FALSE(self->has_next_message()); // the head received none of it
}

TEST_CASE_FIXTURE(ControlFixture,
                  "A request that changes the run must name it, but a status request need not") {
  wire::ControlRequest stop, restart, status, pause, checkpoint, grow = scale("environment", 3);
  stop.set_stop(true);
  pause.set_pause(false);
  checkpoint.set_checkpoint(true);
  restart.mutable_restart()->set_role("environment");
  grow.clear_folder();
  for (const auto& request : {stop, restart, grow, pause, checkpoint}) {
    const auto outcome = answer(encode(request));
    CHECK(outcome.fault == Fault::bad_request);
    CHECK(has(outcome.refusal, "must name the folder of its run"));
  }
  CHECK_FALSE(self->has_next_message());
  status.set_status(true);
  CHECK(answer(encode(status)).refusal.empty());
}

TEST_CASE("A rate limiter change is refused for invalid values, deterministic runs and runs "
          "without a limiter") {
  RunConfig config, deterministic, on_data, recorded, once;
  for (RunConfig* one : {&config, &deterministic, &recorded, &once})
    one->agent = learner::make_d4pg_agent({.batch_size = 64});
  deterministic.deterministic = true;
  recorded.recording = "/recordings/a";
  once.replay.max_times_sampled = 4;
  on_data.workload = [] { return std::unique_ptr<learner::Replica>(); };
  struct Row {
    const RunConfig& config;
    double ratio, buffer;
    std::string word;
  };
  const auto why = [](const Row& row) {
    wire::ControlRequest::Limit wanted;
    wanted.set_samples_per_insert(row.ratio);
    wanted.set_error_buffer(row.buffer);
    return why_not_limited(row.config, wanted);
  };
  CHECK(why({config, 16, 0, ""}).empty());
  CHECK(why({config, 0.25, 64, ""}).empty());
  for (const Row& row :
       {Row{config, 0, 0, "above 0"}, Row{config, std::nan(""), 0, "above 0"},
        Row{config, 2e6, 0, "at most 1000000"}, Row{config, 8, -1, "from 0"},
        Row{config, 8, std::nan(""), "from 0"}, Row{config, 8, 63, "at least 64"},
        Row{config, 100, 99, "at least 100"}, Row{once, 5, 0, "replay.max_times_sampled"},
        Row{deterministic, 8, 0, "`troupe resume --set"}, Row{recorded, 8, 0, "recorded episodes"},
        Row{on_data, 8, 0, "no replay"}}) {
    CAPTURE(row.word);
    CHECK(has(why(row), row.word));
  }
}

TEST_CASE_FIXTURE(ControlFixture, "A timeline covers 1 to 1000 updates of a training run") {
  wire::ControlRequest request;
  request.set_folder("/runs/a");
  request.set_timeline(10);
  wire::HeadReport head;
  head.set_held(true);
  self->send(control, report_atom_v, encode(head));
  deliver_all();
  CHECK(has(answer(encode(request)).refusal, "no updates to record"));
  head.set_held(false);
  self->send(control, report_atom_v, encode(head));
  deliver_all();
  for (const std::int64_t updates : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1001}}) {
    request.set_timeline(updates);
    CHECK(has(answer(encode(request)).refusal, "from 1 to 1000"));
  }
  CHECK_FALSE(self->has_next_message());
}

TEST_CASE_FIXTURE(
    ControlFixture,
    "A stop request reaches the head at once, and other requests wait for the head's answer") {
  wire::ControlRequest request;
  request.set_folder("/runs/a");
  request.set_stop(true);
  CHECK(answer(encode(request)).refusal.empty());
  bool told = false;
  self->receive([&](stop_atom) { told = true; });
  CHECK(told);

  std::vector<std::uint64_t> numbers;
  const auto take = [&] {
    self->receive(
        [&](control_atom, std::uint64_t number, const ProtoBytes& asked, const ProtoBytes&) {
          numbers.push_back(number);
          CHECK(decode<wire::ControlRequest>(asked).scale().count() == 16);
        });
  };
  auto first = begin(encode(scale("environment", 16)));
  take();
  auto second = begin(encode(scale("environment", 16)));
  take();
  auto third = begin(encode(scale("environment", 16)));
  take();
  wire::ControlDone done;
  done.set_text("16 now");
  self->send(control, answer_atom_v, numbers[1], std::string("no room"), ProtoBytes());
  self->send(control, answer_atom_v, numbers[0], std::string(), encode(done));
  self->send(control, answer_atom_v, std::uint64_t{99}, std::string(), encode(done));
  deliver_all();
  CHECK(decode<wire::ControlDone>(ProtoBytes{outcome_of(first).bytes}).text() == "16 now");
  CHECK(outcome_of(second).refusal == "no room");
  self->send_exit(control, caf::exit_reason::user_shutdown); // the run ends
  deliver_all();
  CHECK(outcome_of(third).fault == Fault::stopping);
}

} // namespace
} // namespace troupe::actors
