#include "replay/table/shard.hpp"

#include <atomic>
#include <memory>

#include <doctest/doctest.h>

#include "tests/replay/table/transition_source.hpp"

namespace troupe::replay {
namespace {

TEST_CASE("A sample waits for minimum_items and an insertion for samples, and both are answered in "
          "order") {
  TransitionSource source;
  Shard shard({.limiter = {.minimum_items = 4, .samples_per_insert = 1, .error_buffer = 30}},
              source.spec, 1);
  std::vector<int> answered;
  for (int i = 0; i < 3; ++i)
    shard.sample(2, [&answered, i](const std::vector<Item>& items) {
      CHECK_EQ(items.size(), 2);
      answered.push_back(i);
    });
  CHECK_EQ(shard.waiting_samples(), 3);
  CHECK_EQ(shard.why_waiting(),
           "3 samples of 2 wait: samples wait for inserts: 0 of minimum_items 4 inserted");
  int accepted = 0;
  while (shard.waiting_samples() > 0)
    shard.insert(source.next(), [&accepted] { ++accepted; });
  CHECK_EQ(answered, std::vector<int>{0, 1, 2});
  CHECK_GE(shard.table().stats().inserted, 4);
  CHECK_EQ(shard.why_waiting(), "");
  int sent = accepted;
  while (shard.waiting_insertions() < 2) {
    shard.insert(source.next(), [&accepted] { ++accepted; });
    ++sent;
  }
  CHECK_EQ(accepted, sent - 2);
  CHECK_EQ(shard.why_waiting().substr(0, 38), "2 insertions wait (writer 1): inserts ");
  for (int i = 0; accepted < sent; ++i) {
    REQUIRE_LT(i, 100);
    shard.sample(4, [](const std::vector<Item>& items) { CHECK_EQ(items.size(), 4); });
  }
  CHECK_EQ(shard.waiting_insertions(), 0);
}

TEST_CASE("Full queues refuse requests, and cancelling answers the waiting ones") {
  TransitionSource source;
  Shard shard({.limiter = {.minimum_items = 1, .samples_per_insert = 1, .error_buffer = 1}},
              source.spec, 1, {.waiting_insertions = 2, .waiting_samples = 2});
  int empty = 0;
  const auto count_empty = [&empty](const std::vector<Item>& items) {
    empty += items.empty() ? 1 : 0;
  };
  shard.sample(0, count_empty);
  CHECK_EQ(empty, 1);
  for (int i = 0; i < 3; ++i)
    shard.sample(1, count_empty);
  CHECK_EQ(empty, 2);
  shard.cancel_all();
  CHECK_EQ(empty, 4);
  bool refused = false;
  for (int i = 0; i < 50 && !refused; ++i)
    refused = !shard.insert(source.next(), {});
  CHECK(refused);
  CHECK_EQ(shard.waiting_insertions(), 2);
  shard.cancel_all();
  CHECK_EQ(shard.waiting_insertions(), 0);
}

TEST_CASE("A cancelled sample is refused and takes no items") {
  TransitionSource source;
  Shard shard({.limiter = {.minimum_items = 1}}, source.spec, 1);
  const auto cancelled = std::make_shared<std::atomic<bool>>(false);
  std::string refusal;
  std::int64_t got = 0;
  shard.sample(4, [](const std::vector<Item>&) { FAIL("a cancelled sample"); },
               {.refused = [&](const std::string& why) { refusal = why; }, .cancelled = cancelled});
  shard.sample(2, [&](const std::vector<Item>& items) { got += std::ssize(items); });
  shard.expire({});
  CHECK_EQ(shard.waiting_samples(), 2);
  *cancelled = true;
  shard.expire({});
  CHECK_EQ(refusal, "the request was cancelled");
  CHECK_EQ(shard.waiting_samples(), 1);
  shard.insert(source.next(), {});
  CHECK_EQ(got, 2);
  CHECK_EQ(shard.table().stats().sampled, 2);
}

TEST_CASE("Waiting requests are bounded in bytes, but one insertion may always wait") {
  TransitionSource source;
  Shard shard({.limiter = {.minimum_items = 1, .samples_per_insert = 1, .error_buffer = 1}},
              source.spec, 1, {.waiting_bytes = 1});
  while (shard.waiting_insertions() == 0)
    REQUIRE(shard.insert(source.next(), [] {}));
  CHECK_FALSE(shard.insert(source.next(), [] {}));
  CHECK_EQ(shard.waiting_insertions(), 1);
  while (shard.waiting_insertions() > 0)
    shard.sample(1, [](const std::vector<Item>&) {});
  while (shard.waiting_insertions() == 0) // and again
    REQUIRE(shard.insert(source.next(), [] {}));
  shard.cancel_all();
  while (shard.waiting_insertions() == 0)
    REQUIRE(shard.insert(source.next(), [] {}));
}

TEST_CASE("A bypassed rate limiter accepts every insertion but no sample before minimum_items") {
  TransitionSource source;
  Shard shard({.limiter = {.minimum_items = 3, .samples_per_insert = 1, .error_buffer = 1}},
              source.spec, 1);
  int accepted = 0;
  int sampled = 0;
  while (shard.waiting_insertions() < 5)
    shard.insert(source.next(), [&accepted] { ++accepted; });
  const int before = accepted;
  shard.bypass_rate_limiter(true);
  CHECK_EQ(accepted, before + 5);
  for (int i = 0; i < 50; ++i) {
    shard.insert(source.next(), [&accepted] { ++accepted; });
    shard.sample(256, [&sampled](const std::vector<Item>& items) {
      sampled += static_cast<int>(items.size());
    });
  }
  CHECK_EQ(accepted, before + 55);
  CHECK_EQ(sampled, 50 * 256);
  Shard fresh({.limiter = {.minimum_items = 3}}, source.spec, 1);
  fresh.bypass_rate_limiter(true);
  fresh.sample(1, [](const std::vector<Item>&) { FAIL("nothing was inserted"); });
}

} // namespace
} // namespace troupe::replay
