// A learner whose group has lost its other members, and the snapshots of learners.
#include "tests/doctest_torch.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "actors/protocol/messages.pb.h"
#include "actors/protocol/system.hpp"
#include "actors/roles/learner_actor.hpp"
#include "actors/roles/learner_files.hpp"
#include "collectives/communicator.hpp"
#include "learner/device/safetensors.hpp"
#include "tests/replay/storage/storage_faults.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

/// Counts its updates in its parameters. After some updates its group is gone.
class Counter : public learner::Replica {
public:
  explicit Counter(std::int64_t left_after) : left_after_(left_after) {}
  void build(learner::ReplicaContext&) override {}
  learner::Input input_fn(const learner::InputContext&) override {
    return [] { return learner::TensorMap{{"x", at::zeros({1})}}; };
  }
  learner::Metrics step_fn(learner::ReplicaContext&, const learner::TensorMap&) override {
    if (parameters_[0].item<std::int64_t>() >= left_after_)
      throw collectives::CollectiveError("rank 1 is gone");
    parameters_ += 1;
    return {};
  }
  learner::TensorMap parameters() override { return {{"count", parameters_}}; }
  learner::TensorMap optimizer_state() override {
    return {{"moment", 2 * parameters_}, {"random.state", at::full({1}, random_, at::kLong)}};
  }
  void load(const learner::TensorMap& parameters, const learner::TensorMap& state) override {
    parameters_.copy_(parameters.at("count"));
    random_ = state.at("random.state").item<std::int64_t>();
  }

private:
  std::int64_t left_after_;
  std::int64_t random_ = 77;
  at::Tensor parameters_ = at::zeros({4}, at::kLong);
};

struct ProcessTopology {
  TemporaryFolder folder;
  SystemConfig config{false};
  caf::actor_system system{config};
  caf::scoped_actor self{system};

  LearnerOptions options(std::int64_t left_after) {
    LearnerOptions made;
    made.own_data = true;
    made.make = [left_after] { return std::make_unique<Counter>(left_after); };
    made.snapshot_folder = folder / "learner";
    made.snapshot_period = std::chrono::hours(1);
    made.stranded_period = std::chrono::hours(1);
    return made;
  }

  std::int64_t updates(const LearnerActor& learner) {
    std::int64_t made = -1;
    self->request(learner, kRequestDeadline, report_atom_v)
        .receive(
            [&](const ProtoBytes& told) { made = decode<wire::LearnerReport>(told).updates(); },
            [&](const caf::error& e) { FAIL(explain(system, e)); });
    return made;
  }
  void wait_for(const LearnerActor& learner, std::int64_t wanted) {
    while (updates(learner) < wanted) {
    }
  }
  template <class Answer, class... Args>
  Answer ask(const LearnerActor& learner, Args... args) {
    Answer answer{};
    self->request(learner, kRequestDeadline, args...)
        .receive([&](const Answer& got) { answer = got; },
                 [&](const caf::error& e) { FAIL(explain(system, e)); });
    return answer;
  }
  caf::error end_of(const LearnerActor& learner) {
    caf::error reason;
    self->monitor(learner);
    self->receive([&](const caf::down_msg& down) { reason = down.reason; });
    return reason;
  }
};

TEST_CASE("A learner that lost its group keeps its state for the restart") {
  ProcessTopology place;
  const auto living = place.system.spawn<caf::detached>(learner_actor, [&] {
    auto options = place.options(5);
    options.replica = 1;
    return options;
  }());
  place.self->send(living, grant_atom_v, std::int64_t{100});
  place.wait_for(living, 5);
  CHECK(place.ask<std::int64_t>(living, save_atom_v) == 5);
  CHECK(place.updates(living) == 5); // it waits to be stopped instead of terminating
  const auto saved = learner::read_safetensors(place.folder / "learner/5/learner.safetensors");
  CHECK(at::equal(saved.tensors.at("count"), at::full({4}, 5, at::kLong)));

  // A returning learner gets the survivor's state, but keeps its own random stream.
  auto options = place.options(1000);
  const auto back = place.system.spawn<caf::detached>(learner_actor, options);
  place.ask<done_atom>(back, load_atom_v, (place.folder / "learner/5").string());
  CHECK(place.updates(back) == 5);
  CHECK(place.ask<std::int64_t>(back, save_atom_v) == 5);
  const auto again = read_learner(place.folder / "learner/5", 0, {});
  CHECK(at::equal(again.parameters.at("count"), saved.tensors.at("count")));
  CHECK(at::equal(again.optimizer.at("moment"), at::full({4}, 10, at::kLong)));
  for (const auto& one : {living, back})
    place.self->send_exit(one, caf::exit_reason::user_shutdown);
}

TEST_CASE("A flush lowers a learner's grant to the given number, and a later grant raises it") {
  constexpr std::int64_t kMany = 1'000'000'000'000;
  ProcessTopology place;
  const auto learner = place.system.spawn<caf::detached>(learner_actor, place.options(kMany));
  place.self->send(learner, grant_atom_v, kMany);
  const auto made = place.ask<std::int64_t>(learner, flush_atom_v, std::int64_t{50});
  CHECK(made >= 50);
  CHECK(made < kMany);
  CHECK(place.updates(learner) == made);
  place.self->send(learner, grant_atom_v, made + 10);
  CHECK(place.ask<std::int64_t>(learner, flush_atom_v, kAllGranted) == made + 10);
  place.self->send_exit(learner, caf::exit_reason::user_shutdown);
}

TEST_CASE("A learner that lost its group ends as lost after the stranded period") {
  for (const bool with_folder : {true, false}) {
    ProcessTopology place;
    auto options = place.options(3);
    options.stranded_period = std::chrono::milliseconds(20);
    if (!with_folder)
      options.snapshot_folder.clear();
    const auto learner = place.system.spawn<caf::detached>(learner_actor, options);
    place.self->send(learner, grant_atom_v, std::int64_t{100});
    const caf::error reason = place.end_of(learner);
    CHECK(reason == Fault::lost);
    CHECK(explain(place.system, reason).find("rank 1 is gone") != std::string::npos);
  }
}

TEST_CASE("A learning-rate schedule that a replica does not follow is refused") {
  ProcessTopology place;
  auto options = place.options(3);
  options.learning_rates = {.warmup_steps = 5};
  const caf::error reason = place.end_of(place.system.spawn<caf::detached>(learner_actor, options));
  CHECK(explain(place.system, reason).find("learner.learning_rate is given, but this agent uses")
        != std::string::npos);
}

TEST_CASE("A checkpoint part holds the state at the time of the request") {
  ProcessTopology place;
  const auto learner = place.system.spawn<caf::detached>(learner_actor, place.options(1000));
  place.self->send(learner, grant_atom_v, std::int64_t{10});
  place.wait_for(learner, 10);
  fs::create_directories(place.folder / "part");
  place.ask<done_atom>(learner, save_atom_v, (place.folder / "part").string());
  place.self->send(learner, grant_atom_v, std::int64_t{500});
  place.wait_for(learner, 500);
  place.ask<done_atom>(learner, written_atom_v);
  const auto saved = read_learner(place.folder / "part", 0, {});
  CHECK(saved.updates == 10);
  CHECK(at::equal(saved.parameters.at("count"), at::full({4}, 10, at::kLong)));
  place.self->send_exit(learner, caf::exit_reason::user_shutdown);
}

TEST_CASE("A learner that cannot write continues and reports the failure") {
  ProcessTopology place;
  std::ofstream(place.folder / "learner") << "no folder";
  const auto learner = place.system.spawn<caf::detached>(learner_actor, place.options(1'000'000));
  place.self->send(learner, grant_atom_v, std::int64_t{100});
  place.wait_for(learner, 100);
  std::string problem;
  while (problem.empty())
    problem = decode<wire::LearnerReport>(place.ask<ProtoBytes>(learner, report_atom_v)).problem();
  CHECK(problem.find("learner") != std::string::npos);
  place.ask<done_atom>(learner, save_atom_v, (place.folder / "absent").string());
  place.self->request(learner, kRequestDeadline, written_atom_v)
      .receive([](done_atom) { FAIL("written into a folder that is not there"); },
               [&](const caf::error& e) {
                 CHECK(explain(place.system, e).find("absent") != std::string::npos);
               });
  place.self->send(learner, grant_atom_v, std::int64_t{200});
  place.wait_for(learner, 200);
  place.self->send_exit(learner, caf::exit_reason::user_shutdown);
}

TEST_CASE("A replica without a part in the checkpoint loads another's state but keeps its own "
          "random state") {
  const TemporaryFolder folder;
  write_learner({.folder = folder.path(),
                 .snapshot = false,
                 .parameters = true,
                 .parameter_tensors = {{"w", at::ones({2})}},
                 .optimizer_tensors = {{"m", at::ones({2})}, {"random.state", at::full({1}, 1)}},
                 .updates = 9,
                 .replica = 0});
  const learner::TensorMap own = {{"random.state", at::full({1}, 5)}};
  const auto random = [&](int replica) {
    return read_learner(folder.path(), replica, own).optimizer.at("random.state").item<double>();
  };
  CHECK(random(0) == 1);
  CHECK(random(3) == 5);
  CHECK(read_learner(folder.path(), 3, own).updates == 9);
  CHECK_THROWS_WITH_AS(read_learner(folder / "absent", 0, own),
                       doctest::Contains("learner.safetensors"), std::exception);
}

TEST_CASE("Replicas with their own parameters get them back, and a new one gets replica 0's") {
  const TemporaryFolder folder;
  for (const int replica : {0, 1, 2})
    write_learner({.folder = folder.path(),
                   .snapshot = false,
                   .parameters = true,
                   .parameter_tensors = {{"w", at::full({1}, replica)}},
                   .optimizer_tensors = {{"m", at::ones({2})}},
                   .updates = 9,
                   .replica = replica});
  fs::remove(folder / "learner-2.safetensors"); // as in a checkpoint of an earlier version
  const auto read = [&](int replica, bool own_parameters) {
    return read_learner(folder.path(), replica, {}, own_parameters).parameters.at("w").item<int>();
  };
  for (const int replica : {0, 1, 2, 3}) {
    CHECK(read(replica, true) == (replica == 1 ? 1 : 0));
    CHECK(read(replica, false) == 0);
  }
}

TEST_CASE("A late snapshot of an earlier incarnation does not replace its successor's") {
  const TemporaryFolder folder;
  const auto snapshot = [&](std::int64_t updates, std::uint64_t incarnation, int replica = 0) {
    write_learner({.folder = folder.path(),
                   .snapshot = true,
                   .parameters = true,
                   .parameter_tensors = {{"w", at::full({2}, static_cast<double>(incarnation))}},
                   .optimizer_tensors = {{"m", at::ones({2})}},
                   .updates = updates,
                   .replica = replica,
                   .incarnation = incarnation});
  };
  const auto names = [&] {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      found.insert(entry.path().filename());
    return found;
  };
  using Names = std::set<std::string>;
  snapshot(500, 0);
  snapshot(1500, 1); // by the successor
  CHECK(names() == Names{"1500"});
  snapshot(1600, 0); // late, although with more updates
  snapshot(1000, 0);
  CHECK(names() == Names{"1500"});
  std::filesystem::create_directory(folder / ".partial-0-0"); // left by the first, which was killed
  snapshot(1600, 1);
  CHECK(names() == Names{"1600"});
  snapshot(1600, 2); // with the same number of updates
  CHECK(names() == Names{"1600"});
  CHECK(read_learner(folder / "1600", 0, {}).parameters.at("w")[0].item<double>() == 2);
  snapshot(1400, 0, 1); // by a surviving replica, from whose state all continue
  CHECK(names() == Names{"1400"});
}

TEST_CASE("A new snapshot's name is flushed to disk before the old snapshot is removed") {
  const TemporaryFolder folder;
  const auto snapshot = [&](std::int64_t updates) {
    write_learner({.folder = folder.path(),
                   .snapshot = true,
                   .parameters = true,
                   .parameter_tensors = {{"w", at::ones({2})}},
                   .optimizer_tensors = {{"m", at::ones({2})}},
                   .updates = updates});
  };
  snapshot(1);
  const int flushes = replay::flushes_before_removal([&] {
    snapshot(2);
    return 0;
  });
  CHECK_MESSAGE((flushes == -1 || flushes == 1), flushes); // -1: system calls cannot be traced here
}

} // namespace
} // namespace troupe::actors
