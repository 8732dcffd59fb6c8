#include "tests/doctest_torch.hpp"

#include <atomic>
#include <latch>
#include <span>
#include <thread>

#include "experiments/serving/batcher.hpp"
#include "tests/experiments/serving/summing_policy.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments::serving;

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
