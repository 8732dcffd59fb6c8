#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <set>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/loader.hpp"
#include "tests/learner/data/data_fixture.hpp"

namespace troupe::learner::data {
namespace {

/// Row i is {"number": i, "epoch": the epoch}. Row `bad` cannot be read.
class Numbers final : public Dataset {
public:
  explicit Numbers(std::int64_t size, std::int64_t bad = -1) : size_(size), bad_(bad) {}
  std::int64_t size() const override { return size_; }
  TensorMap rows(const at::Tensor& numbers, std::int64_t epoch) const override {
    ++calls;
    if (numbers.eq(bad_).any().item<bool>())
      throw std::runtime_error("numbers.txt (row " + std::to_string(bad_) + ") is bad");
    return {{"number", numbers.clone()}, {"epoch", at::full_like(numbers, epoch)}};
  }
  mutable std::atomic<int> calls = 0;

private:
  std::int64_t size_, bad_;
};

std::vector<TensorMap> all_of(const Input& input, std::size_t most = 1000) {
  std::vector<TensorMap> batches;
  for (auto batch = input(); !batch.empty() && batches.size() < most; batch = input())
    batches.push_back(batch);
  return batches;
}

std::vector<std::int64_t> numbers_of(const std::vector<TensorMap>& batches) {
  std::vector<std::int64_t> all;
  for (const auto& batch : batches)
    for (std::int64_t i = 0; i < batch.at("number").size(0); ++i)
      all.push_back(batch.at("number")[i].item<std::int64_t>());
  return all;
}

TEST_CASE("Batches come in the same order for any number of threads and end after the last epoch") {
  const auto data = std::make_shared<Numbers>(103);
  const LoaderOptions one{.global_batch = 8, .seed = 4, .epochs = 3};
  const auto expected = all_of(make_input(data, one)({}));
  CHECK(expected.size() == 3 * 12);
  for (const int threads : {2, 7}) {
    auto more = one;
    more.threads = threads;
    more.prefetch = threads + 3;
    const auto got = all_of(make_input(data, more)({}));
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(at::equal(got[i].at("number"), expected[i].at("number")));
      CHECK(got[i].at("epoch")[0].item<std::int64_t>() == static_cast<std::int64_t>(i) / 12);
    }
  }
}

TEST_CASE("Replicas share each epoch without overlap and together see the batches of one replica") {
  const auto data = std::make_shared<Numbers>(96);
  const LoaderOptions options{.global_batch = 12, .epochs = 2};
  const auto whole = all_of(make_input(data, options)({}));
  for (const int replicas : {2, 3, 4}) {
    std::vector<Input> inputs;
    for (int i = 0; i < replicas; ++i)
      inputs.push_back(make_input(data, options)({.num_replicas_in_sync = replicas,
                                                  .input_pipeline_id = i,
                                                  .num_input_pipelines = replicas}));
    for (const auto& expected : whole) {
      std::vector<at::Tensor> parts;
      for (const auto& input : inputs)
        parts.push_back(input().at("number"));
      CHECK(at::equal(at::cat(parts), expected.at("number")));
    }
    for (const auto& input : inputs)
      CHECK(input().empty());
  }
}

TEST_CASE("Asynchronous replicas and sync groups together see each row once per epoch") {
  const auto data = std::make_shared<Numbers>(96);
  for (const int in_sync : {1, 2}) {
    std::multiset<std::int64_t> seen;
    for (int i = 0; i < 4; ++i) {
      const auto input = make_input(data, {.global_batch = 8, .epochs = 1})(
          {.num_replicas_in_sync = in_sync, .input_pipeline_id = i, .num_input_pipelines = 4});
      for (const auto number : numbers_of(all_of(input)))
        seen.insert(number);
    }
    CHECK(seen.size() == 96);
    CHECK(std::set<std::int64_t>(seen.begin(), seen.end()).size() == 96);
  }
  std::set<std::int64_t> seen; // 3 replicas of which the first 2 gradients count
  for (int i = 0; i < 3; ++i)
    for (const auto number : numbers_of(all_of(make_input(data, {.global_batch = 8, .epochs = 1})(
             {.num_replicas_in_sync = 2, .input_pipeline_id = i, .num_input_pipelines = 3}))))
      CHECK(seen.insert(number).second);
  CHECK(seen.size() == 96);
}

TEST_CASE("A resumed pipeline continues exactly in the middle of an epoch") {
  const auto data = std::make_shared<Numbers>(50);
  const LoaderOptions options{
      .global_batch = 6, .seed = 2, .threads = 2, .prefetch = 4, .epochs = 3};
  const auto whole = all_of(make_input(data, options)({}));
  for (const std::int64_t first : {1, 7, 8, 13, 23}) {
    const auto rest = all_of(make_input(data, options)({.first_step = first}));
    REQUIRE(rest.size() == whole.size() - static_cast<std::size_t>(first));
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const auto& expected = whole[i + static_cast<std::size_t>(first)];
      CHECK(at::equal(rest[i].at("number"), expected.at("number")));
      CHECK(at::equal(rest[i].at("epoch"), expected.at("epoch")));
    }
  }
}

TEST_CASE("Every epoch has a new order, and without shuffling it is the file's order") {
  const auto data = std::make_shared<Numbers>(40);
  const auto shuffled = all_of(make_input(data, {.global_batch = 40, .epochs = 2})({}));
  CHECK_FALSE(at::equal(shuffled[0].at("number"), shuffled[1].at("number")));
  const auto plain =
      all_of(make_input(data, {.global_batch = 20, .shuffle = false, .epochs = 1})({}));
  CHECK(at::equal(at::cat({plain[0].at("number"), plain[1].at("number")}),
                  at::arange(40, at::kLong)));
}

TEST_CASE("The batch that contains a bad row throws its message, and the batches before it are "
          "complete") {
  const auto data = std::make_shared<Numbers>(40, 21);
  const auto input =
      make_input(data, {.global_batch = 4, .shuffle = false, .threads = 3, .prefetch = 6})({});
  for (int i = 0; i < 5; ++i)
    CHECK(input().at("number")[0].item<std::int64_t>() == 4 * i);
  CHECK_THROWS_WITH(input(), "numbers.txt (row 21) is bad");
  CHECK_THROWS_WITH(input(), "numbers.txt (row 21) is bad");
}

TEST_CASE("No more batches are prefetched than allowed, and the destructor ends the threads") {
  std::mutex mutex;
  std::condition_variable changed;
  int made = 0;
  {
    Prefetcher ahead(0, std::numeric_limits<std::int64_t>::max(),
                     [&](std::int64_t number) {
                       const std::lock_guard lock(mutex);
                       ++made;
                       changed.notify_all();
                       return TensorMap{{"x", at::full({1}, number, at::kLong)}};
                     },
                     {.threads = 2, .ahead = 5});
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(60), [&] { return made == 5; });
    CHECK(made == 5);
    lock.unlock();
    for (int i = 0; i < 3; ++i)
      CHECK(ahead.next().at("x").item<std::int64_t>() == i);
    lock.lock();
    changed.wait_for(lock, std::chrono::seconds(60), [&] { return made == 8; });
    CHECK(made == 8);
  }
  CHECK(made == 8);
}

TEST_CASE("Waiting for a batch ends at the timeout") {
  std::mutex mutex;
  std::unique_lock held(mutex);
  Prefetcher ahead(0, 1,
                   [&](std::int64_t) {
                     const std::lock_guard lock(mutex);
                     return TensorMap{};
                   },
                   {.timeout = std::chrono::seconds(0)});
  CHECK_THROWS_WITH_AS(ahead.next(), doctest::Contains("batch 0 was not ready after 0 s"),
                       std::runtime_error);
  held.unlock();
}

TEST_CASE("Invalid loader options are refused with an explanation") {
  const auto data = std::make_shared<Numbers>(10);
  CHECK_THROWS_WITH_AS(make_input(data, {.global_batch = 16})({}),
                       doctest::Contains("10 rows, fewer than 1 global batches of 16"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      make_input(data, {.global_batch = 5})({.num_replicas_in_sync = 2, .num_input_pipelines = 2}),
      doctest::Contains("5 cannot be split evenly over 2 replicas"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(make_input(data, {.global_batch = 5, .threads = 0})({}),
                       doctest::Contains("threads 0"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(make_input(data, {.global_batch = 5, .threads = 3})({}),
                       doctest::Contains("ahead 2 must be from the number of threads"),
                       std::invalid_argument);
  CHECK_THROWS_AS(make_input(nullptr, {}), std::invalid_argument);
}

TEST_CASE("Augmented pictures do not depend on replicas, threads or resumption") {
  const TemporaryFolder folder;
  for (int i = 0; i < 24; ++i)
    write_bytes(folder / ("class" + std::to_string(i % 3)) / (std::to_string(i) + ".jpg"),
                encode_jpeg(numbered_picture(i, 20 + i, 30), 90));
  const std::shared_ptr<const Dataset> data =
      open_dataset({.path = folder.path(),
                    .transform = {.crop = Crop::random_resized,
                                  .size = 16,
                                  .flip = true,
                                  .jitter = {.brightness = 0.4, .hue = 0.1}}});
  const LoaderOptions options{.global_batch = 6, .epochs = 2};
  const auto whole = all_of(make_input(data, options)({}));
  REQUIRE(whole.size() == 8);
  CHECK(whole[0].at("picture").sizes() == at::IntArrayRef({6, 3, 16, 16}));
  CHECK(whole[0].at("picture").is_contiguous(at::MemoryFormat::ChannelsLast));
  const auto alone = data->rows(at::full({1}, 5, at::kLong), 1).at("picture");
  CHECK(at::equal(data->rows(at::arange(3, 8, at::kLong), 1).at("picture")[2], alone[0]));
  CHECK_FALSE(at::equal(data->rows(at::full({1}, 5, at::kLong), 2).at("picture"), alone));
  std::vector<Input> inputs;
  for (int i = 0; i < 2; ++i)
    inputs.push_back(
        make_input(data, {.global_batch = 6, .threads = 2, .prefetch = 3, .epochs = 2})(
            {.num_replicas_in_sync = 2,
             .input_pipeline_id = i,
             .num_input_pipelines = 2,
             .first_step = 3}));
  for (std::size_t step = 3; step < whole.size(); ++step) {
    const auto first = inputs[0](), second = inputs[1]();
    for (const std::string name : {"picture", "label"})
      CHECK(at::equal(at::cat({first.at(name), second.at(name)}), whole[step].at(name)));
  }
}

} // namespace
} // namespace troupe::learner::data
