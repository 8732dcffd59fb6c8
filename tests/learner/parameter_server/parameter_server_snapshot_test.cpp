#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include "learner/gradients/optimizer_state.hpp"
#include "learner/parameter_server/parameter_server.hpp"
#include "learner/parameter_server/parameter_server_snapshot.hpp"

namespace troupe::learner {
namespace {

const ParameterServer::Time kBegin{};
const std::vector<ParameterSize> kSizes{
    {.elements = 7}, {.elements = 40}, {.elements = 1}, {.elements = 12, .group = 1}};
constexpr std::int64_t kElements = 60;

OptimizerRecipe adam_recipe() {
  const torch::optim::Adam adam({torch::zeros({1})}, torch::optim::AdamOptions(0.1));
  auto recipe = describe(adam);
  recipe.groups.push_back(recipe.groups.front());
  recipe.groups.back()["lr"] = 0.03;
  return recipe;
}

/// The position of a segment among all parameters in the order of kSizes.
std::int64_t place(const Segment& segment) {
  std::int64_t before = segment.begin;
  for (std::int64_t i = 0; i < segment.parameter; ++i)
    before += kSizes[static_cast<std::size_t>(i)].elements;
  return before;
}

/// Gathers the part of `whole` [60] that the server of these segments holds.
at::Tensor slice_of(const at::Tensor& whole, const std::vector<Segment>& segments) {
  std::vector<at::Tensor> pieces;
  for (const Segment& segment : segments)
    pieces.push_back(whole.narrow(0, place(segment), segment.count));
  return torch::cat(pieces);
}

at::Tensor gradient(int step) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(step));
  return torch::randn({kElements}, generator);
}

/// All servers of one optimizer, and one worker that pushes to each.
class Servers {
public:
  explicit Servers(int shards) : plan_(plan_shards(kSizes, shards)) {
    for (const auto& segments : plan_) {
      servers_.push_back(std::make_unique<ParameterServer>(ParameterServerOptions{}, kBegin));
      servers_.back()->begin({.recipe = adam_recipe(), .segments = segments},
                             slice_of(torch::arange(kElements, at::kFloat), segments));
    }
    join();
  }
  explicit Servers(const std::vector<TensorMap>& snapshots)
      : plan_(plan_shards(kSizes, static_cast<int>(snapshots.size()))) {
    for (const auto& snapshot : snapshots) {
      servers_.push_back(std::make_unique<ParameterServer>(ParameterServerOptions{}, kBegin));
      servers_.back()->restore(snapshot);
    }
    join();
  }
  void join() {
    for (const auto& server : servers_)
      CHECK(server->join(0, 9, kBegin) == "");
  }
  void step(int number) {
    ++pushed_;
    for (std::size_t i = 0; i < servers_.size(); ++i)
      push(i, gradient(number));
  }
  void push(std::size_t shard, const at::Tensor& whole) {
    const auto& segments = plan_[shard];
    const auto answer = servers_[shard]->push({.worker = 0,
                                               .session = 9,
                                               .step = pushed_,
                                               .version = servers_[shard]->version(),
                                               .gradient = slice_of(whole, segments),
                                               .present = std::vector<bool>(segments.size(), true)},
                                              kBegin);
    CHECK(answer.outcome == Outcome::applied);
  }
  void push_to_first_alone(int number) {
    ++pushed_;
    push(0, gradient(number));
  }
  std::vector<TensorMap> snapshots() const {
    std::vector<TensorMap> all;
    for (const auto& server : servers_)
      all.push_back(server->snapshot());
    return all;
  }
  at::Tensor whole() const {
    auto result = torch::empty({kElements});
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      std::int64_t at = 0;
      for (const Segment& segment : plan_[i]) {
        result.narrow(0, place(segment), segment.count)
            .copy_(servers_[i]->parameters().narrow(0, at, segment.count));
        at += segment.count;
      }
    }
    return result;
  }
  std::int64_t version(std::size_t shard) const { return servers_[shard]->version(); }

private:
  ShardPlan plan_;
  std::vector<std::unique_ptr<ParameterServer>> servers_;
  std::int64_t pushed_ = 0;
};

} // namespace

TEST_CASE("Servers continue from what any number of servers saved, as if uninterrupted") {
  for (const int before : {1, 2, 3, 5}) {
    Servers first(before);
    for (int i = 0; i < 6; ++i)
      first.step(i);
    const auto saved = first.snapshots();
    const auto held = first.whole();
    first.step(6);
    for (const int after : {1, 2, 4, 5}) {
      CAPTURE(before);
      CAPTURE(after);
      Servers second(reshard(saved, after));
      CHECK(second.version(0) == 6);
      CHECK(second.whole().equal(held));
      second.step(6); // moments, counters and rates of both param groups are in this step
      CHECK(second.whole().allclose(first.whole(), 1e-6, 1e-7));
    }
  }
}

TEST_CASE(
    "The same number of servers is restored bit for bit, each with its own counters and version") {
  Servers first(3);
  first.step(0);
  first.push_to_first_alone(1); // in asynchronous mode, servers have different versions
  const auto saved = first.snapshots();
  const auto again = reshard(saved, 3);
  Servers second(again);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(second.version(i) == (i == 0 ? 2 : 1));
    for (const auto& [name, tensor] : saved[i])
      if (name != "header") // the header does not keep the workers
        CHECK(again[i].at(name).equal(tensor));
  }
  std::vector<TensorMap> turned{saved[2], saved[0], saved[1]};
  const auto sorted = reshard(turned, 3); // ordered by the plan, not by the files
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(sorted[i].at("parameters").equal(saved[i].at("parameters")));
  Servers one(reshard(saved, 1));
  CHECK(one.version(0) == 2); // the largest of the parts
}

TEST_CASE(
    "A new worker's first step counts after a restoration, whatever the old worker's number") {
  Servers first(1);
  for (int i = 0; i < 6; ++i)
    first.step(i);
  Servers second(reshard(first.snapshots(), 1)); // its worker has the old one's session
  second.step(6);                                // its own step 1
  CHECK(second.version(0) == 7);
}

TEST_CASE(
    "A missing or duplicate part, or one of another optimizer, is refused with an explanation") {
  Servers three(3);
  three.step(0);
  auto saved = three.snapshots();
  auto fewer = saved;
  fewer.erase(fewer.begin());
  CHECK_THROWS_WITH_AS(reshard(fewer, 2), doctest::Contains("do not hold parameter"),
                       std::invalid_argument);
  auto doubled = saved;
  doubled.push_back(saved[1]);
  CHECK_THROWS_WITH_AS(reshard(doubled, 2), doctest::Contains("each element once"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(reshard({}, 2), doctest::Contains("no snapshot"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(reshard(saved, 61), doctest::Contains("Use fewer shards"),
                       std::invalid_argument);
  auto own = saved;
  own[0]["optimizer.archive"] = torch::zeros({3}, at::kByte);
  CHECK_THROWS_WITH_AS(reshard(own, 2), doctest::Contains("resume with 3"), std::invalid_argument);
  CHECK(reshard(own, 3)[0].contains("optimizer.archive"));
  auto torn = saved;
  torn[1]["parameters"] = torch::zeros({3});
  CHECK_THROWS_WITH_AS(check_snapshot(torn[1]), doctest::Contains("for a slice of"),
                       std::invalid_argument);
}

TEST_CASE("A server in use loads a snapshot once for all workers, and keeps its version") {
  Servers first(1);
  first.step(0);
  const auto saved = first.snapshots().at(0);
  const ServedSlice slice{.recipe = adam_recipe(), .segments = plan_shards(kSizes, 1).at(0)};
  ParameterServer server({.workers = 2}, kBegin);
  server.begin(slice, torch::zeros({kElements}));
  CHECK(server.join(1, 9, kBegin) == "");
  CHECK(server.has_workers(1));
  server.replace(saved, 1);
  CHECK(server.parameters().equal(saved.at("parameters")));
  CHECK(server.version() == 0);
  const auto answer = server.push({.worker = 1,
                                   .session = 9,
                                   .step = 1,
                                   .version = 0,
                                   .gradient = gradient(1),
                                   .present = std::vector<bool>(slice.segments.size(), true)},
                                  kBegin);
  CHECK(answer.outcome == Outcome::applied);
  first.step(1); // with the same moments
  CHECK(server.parameters().equal(first.snapshots().at(0).at("parameters")));
  server.replace(saved, 1); // the other worker's first load
  CHECK_FALSE(server.parameters().equal(saved.at("parameters")));
  server.replace(saved, 2);
  CHECK(server.parameters().equal(saved.at("parameters")));
  auto other = saved;
  other["parameters"] = torch::zeros({3});
  CHECK_THROWS_AS(server.replace(other, 3), std::invalid_argument);
  CHECK(server.parameters().equal(saved.at("parameters")));
  server.leave(1, 9);
  CHECK_FALSE(server.has_workers(0));
}

TEST_CASE("A gradient that waits while a snapshot is loaded is not part of the next version") {
  ParameterServer server({.synchrony = Synchrony::synchronous, .workers = 2}, {});
  const torch::optim::SGD sgd({torch::zeros({1})}, torch::optim::SGDOptions(1));
  server.begin({.recipe = describe(sgd), .segments = {{.count = 2}}, .type = at::kFloat},
               torch::zeros({2}));
  const TensorMap saved = server.snapshot();
  const auto push = [&](int worker, std::int64_t step, double value) {
    return server
        .push({.worker = worker,
               .session = static_cast<std::uint64_t>(worker) + 1,
               .step = step,
               .gradient = torch::full({2}, value),
               .present = {true}},
              {})
        .outcome;
  };
  for (int worker = 0; worker < 2; ++worker)
    REQUIRE(server.join(worker, static_cast<std::uint64_t>(worker) + 1, {}) == "");
  CHECK(push(0, 1, 100) == Outcome::counted);
  server.replace(saved, 1);
  CHECK(server.counters().dropped == 1);
  CHECK(push(1, 1, 1) == Outcome::counted);
  CHECK(server.version() == 0);
  CHECK(push(0, 2, 3) == Outcome::applied);
  CHECK(server.version() == 1);
  CHECK(server.parameters()[0].item<double>() == doctest::Approx(-2));
}

} // namespace troupe::learner
