#include "tests/doctest_torch.hpp"

#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <latch>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "experiments/serving/batcher.hpp"
#include "tests/experiments/serving/summing_policy.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments::serving;

namespace {

/// Throws if the first number of an observation is above 100. If it is below -100, the memory
/// becomes NaN.
class FragilePolicy : public SummingPolicy {
public:
  FragilePolicy() : SummingPolicy(2, 1) {}
  void act(const learner::Observations& observations, std::span<float> actions) override {
    SummingPolicy::act(observations, actions);
    for (std::size_t row = 0; row < actions.size(); ++row) {
      float number = 0;
      std::memcpy(&number, observations.frames[row], sizeof number);
      if (number > 100)
        throw std::runtime_error("row " + std::to_string(row));
      if (number < -100)
        observations.state[row] = std::numeric_limits<float>::quiet_NaN();
    }
  }
};

} // namespace

TEST_CASE("Jobs that arrive during a computation are batched, and too many are refused") {
  std::vector<std::size_t> sizes;
  std::latch began(1);
  std::latch go(1);
  Batcher batcher(summing(), {.batch = 8, .queued = 10},
                  [&](std::size_t size) { sizes.push_back(size); });
  std::atomic<int> done = 0;
  const auto jobs = [&](std::size_t count, bool waits) {
    std::vector<Job> made(count);
    for (Job& job : made) {
      job.observation.resize(8);
      job.done = [&, waits](Job& finished) {
        CHECK(finished.action.size() == 1);
        ++done;
        if (waits) {
          began.count_down();
          go.wait();
        }
      };
    }
    return made;
  };
  std::thread first([&] { CHECK(batcher.submit(jobs(1, true))); });
  began.wait();
  CHECK(batcher.submit(jobs(3, false)));
  CHECK(batcher.submit(jobs(7, false)));
  CHECK(batcher.queued() == 10);
  CHECK_FALSE(batcher.submit(jobs(1, false)));
  go.count_down();
  first.join();
  CHECK(done == 11);
  CHECK(sizes == std::vector<std::size_t>{1, 8, 2});
}

TEST_CASE("A thread that submits jobs computes only its own, and tasks compute those that follow") {
  std::deque<std::function<void()>> tasks;
  const auto batcher = std::make_shared<Batcher>(
      summing(), Batcher::Limits{.batch = 2, .queued = 10}, [](std::size_t) {},
      [&](std::function<void()> task) { tasks.push_back(std::move(task)); });
  int done = 0;
  const auto jobs = [&](std::size_t count, const std::function<void()>& then) {
    std::vector<Job> made(count);
    for (Job& job : made) {
      job.observation.resize(8);
      job.done = [&done, then](Job&) {
        ++done;
        then();
      };
    }
    return made;
  };
  const auto nothing = [] {};
  const auto more = [&] { CHECK(batcher->submit(jobs(3, nothing))); };
  CHECK(batcher->submit(jobs(1, more)));
  CHECK(done == 1); // the others would keep this thread while they arrive
  CHECK(batcher->queued() == 3);
  REQUIRE(tasks.size() == 1);
  tasks[0]();
  CHECK(done == 3);
  REQUIRE(tasks.size() == 2);
  tasks[1]();
  CHECK(done == 4);
  CHECK(tasks.size() == 2);
  CHECK(batcher->submit(jobs(1, nothing))); // idle again: at once
  CHECK(done == 5);
}

TEST_CASE("An action that is not finite fails its own job only, not the others of the batch") {
  std::vector<std::size_t> sizes;
  Batcher batcher(summing(), {}, [&](std::size_t size) { sizes.push_back(size); });
  std::vector<Job> done;
  std::vector<Job> jobs;
  for (const float number : {0.25F, 3e38F, 0.5F}) {
    const float numbers[] = {number, number};
    const auto bytes = std::as_bytes(std::span(numbers));
    jobs.push_back({.observation = {bytes.begin(), bytes.end()},
                    .state = {},
                    .action = {},
                    .error = {},
                    .done = [&](Job& job) { done.push_back(job); }});
  }
  CHECK(batcher.submit(std::move(jobs)));
  CHECK(sizes == std::vector<std::size_t>{3});
  REQUIRE(done.size() == 3);
  CHECK(done[0].error.empty());
  CHECK(done[0].action == std::vector<float>{5});
  CHECK(has(done[1].error, "the policy's number 0 is not finite"));
  CHECK(done[2].error.empty());
  CHECK(done[2].action == std::vector<float>{10});
}

TEST_CASE("An observation for which the policy throws fails its own job only") {
  std::vector<std::size_t> sizes;
  Batcher batcher(served(std::make_unique<FragilePolicy>(), 5, 1, "state", {1, 1}), {},
                  [&](std::size_t size) { sizes.push_back(size); });
  std::vector<Job> done;
  std::vector<Job> jobs;
  for (const float number : {1.25F, 200.F, 1.5F, -200.F}) {
    const float numbers[] = {number, 1};
    const auto bytes = std::as_bytes(std::span(numbers));
    jobs.push_back({.observation = {bytes.begin(), bytes.end()},
                    .state = {0.5F},
                    .action = {},
                    .error = {},
                    .done = [&](Job& job) { done.push_back(job); }});
  }
  CHECK(batcher.submit(std::move(jobs)));
  CHECK(sizes == std::vector<std::size_t>{4});
  REQUIRE(done.size() == 4);
  CHECK(done[0].error.empty());
  CHECK(done[0].action == std::vector<float>{7.5F}); // memory and observation counted once
  CHECK(done[0].state == std::vector<float>{0.75F});
  CHECK(done[1].error == "row 0");
  CHECK(done[2].error.empty());
  CHECK(done[2].action == std::vector<float>{10});
  CHECK(has(done[3].error, "the policy's memory is not finite"));
}
