#include "replay/table/rate_limiter.hpp"

#include <cmath>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "replay/table/shard.hpp"
#include "tests/replay/table/saved_table.hpp"
#include "tests/replay/table/transition_source.hpp"

namespace troupe::replay {
namespace {

using std::chrono::milliseconds;
using Time = std::chrono::steady_clock::time_point;

TEST_CASE("Each kind of rate limiter follows its definition after any insertions and samples") {
  std::mt19937_64 random(5);
  for (const RateLimiterKind kind :
       {RateLimiterKind::minimum_size, RateLimiterKind::samples_per_insert, RateLimiterKind::queue,
        RateLimiterKind::stack})
    for (int trial = 0; trial < 50; ++trial) {
      CAPTURE(limiter_name(kind));
      const double ratio = std::ldexp(1.0, static_cast<int>(random() % 8) - 2);
      const RateLimiterConfig config{.kind = kind,
                                     .minimum_items = 1 + static_cast<std::int64_t>(random() % 20),
                                     .samples_per_insert = ratio,
                                     .error_buffer = std::max(1.0, ratio) + 0.5,
                                     .queue_items = 1 + static_cast<std::int64_t>(random() % 20)};
      RateLimiter limiter(config);
      std::int64_t held = 0, inserted = 0, sampled = 0;
      for (int step = 0; step < 500; ++step) {
        const auto n = 1 + static_cast<std::int64_t>(random() % 8);
        bool insert = true, sample = true;
        const double drift = ratio * static_cast<double>(inserted - config.minimum_items)
                             - static_cast<double>(sampled);
        switch (kind) {
        case RateLimiterKind::minimum_size:
          sample = held >= config.minimum_items;
          break;
        case RateLimiterKind::queue:
        case RateLimiterKind::stack:
          insert = held < config.queue_items;
          sample = held >= n;
          break;
        case RateLimiterKind::samples_per_insert: {
          const double floor =
              std::max(config.error_buffer, static_cast<double>(n) + ratio - config.error_buffer);
          insert = inserted < config.minimum_items || drift + ratio <= config.error_buffer;
          sample = held > 0 && inserted >= config.minimum_items
                   && drift - static_cast<double>(n) >= -floor;
          break;
        }
        }
        REQUIRE_EQ(limiter.can_insert(held), insert);
        REQUIRE_EQ(limiter.can_sample(held, n), sample);
        REQUIRE_EQ(limiter.why_no_insert(held).empty(), insert);
        REQUIRE_EQ(limiter.why_no_sample(held, n).empty(), sample);
        if (insert && random() % 2 == 0) {
          limiter.note_inserted(1);
          ++inserted;
          ++held;
        } else if (sample) {
          limiter.note_sampled(n);
          sampled += n;
          if (kind == RateLimiterKind::queue || kind == RateLimiterKind::stack)
            held -= n;
        }
      }
    }
}

TableConfig queue_of(std::int64_t items, bool stack = false) {
  const SelectorKind kind = stack ? SelectorKind::lifo : SelectorKind::fifo;
  return {.max_items = 1000,
          .sampler = {.kind = kind},
          .remover = {.kind = kind},
          .max_times_sampled = 1,
          .limiter = {.kind = stack ? RateLimiterKind::stack : RateLimiterKind::queue,
                      .queue_items = items}};
}

TEST_CASE(
    "A queue gives each item once, oldest first, a stack newest first, and both block when full") {
  for (const bool stack : {false, true}) {
    CAPTURE(stack);
    TransitionSource source;
    Shard shard(queue_of(3, stack), source.spec, 1);
    std::mt19937_64 random(2);
    std::vector<std::uint64_t> model; // keys in the table
    std::uint64_t next_key = 0;
    std::vector<std::uint64_t> got;
    for (int step = 0; step < 3000; ++step) {
      if (random() % 2 == 0 && model.size() < 3) {
        const InsertionPtr made = source.next();
        shard.insert(made, {});
        for (std::size_t i = 0; i < made->items.size(); ++i)
          model.push_back(next_key++);
      } else if (!model.empty()) {
        std::vector<Item> items;
        shard.sample(1, [&](std::vector<Item> answer) { items = std::move(answer); });
        REQUIRE_EQ(items.size(), 1);
        const std::uint64_t expected = stack ? model.back() : model.front();
        REQUIRE_EQ(items[0].key, expected);
        CHECK_EQ(items[0].times_sampled, 1);
        CHECK_EQ(items[0].table_items, model.size());
        model.erase(std::find(model.begin(), model.end(), expected));
      }
      REQUIRE_EQ(shard.table().stats().items, std::ssize(model));
    }
    while (shard.table().stats().items < 3)
      shard.insert(source.next(), {});
    bool accepted = false;
    shard.insert(source.next(), [&] { accepted = true; });
    CHECK_FALSE(accepted);
    CHECK(shard.why_waiting().find("queue_items are 3") != std::string::npos);
    while (!accepted)
      shard.sample(1, [](const std::vector<Item>& items) { CHECK_EQ(items.size(), 1); });
  }
}

TEST_CASE("A sample larger than the queue admits insertions until it is served") {
  TransitionSource source;
  Shard shard(queue_of(2), source.spec, 1);
  std::size_t got = 0;
  shard.sample(10, [&](const std::vector<Item>& items) { got = items.size(); });
  for (int i = 0; i < 20 && got == 0; ++i)
    shard.insert(source.next(), {});
  CHECK_EQ(got, 10);
  std::string why;
  shard.sample(5000, {}, {.refused = [&](const std::string& words) { why = words; }});
  CHECK(why.find("1 to 1000 are possible") != std::string::npos);
}

TEST_CASE("A queue or stack gives every item, also if one insertion exceeds max_items") {
  for (const bool stack : {false, true}) {
    CAPTURE(stack);
    TableConfig config = queue_of(4, stack);
    config.max_items = 5;
    const TransitionSpec spec = state_spec(1, 2);
    Source source(spec);
    Shard shard(config, spec, 1);
    std::int64_t inserted = 0;
    const auto insert = [&](std::int64_t items) {
      const InsertionPtr made = source.next(items);
      inserted += std::ssize(made->items);
      shard.insert(made, {});
    };
    std::set<std::uint64_t> keys;
    const auto take = [&](const std::vector<Item>& items) {
      for (const Item& item : items)
        keys.insert(item.key);
    };
    insert(4);
    insert(9);
    CHECK_EQ(shard.waiting_insertions(), 1);
    shard.sample(5, take); // admits the second insertion
    CHECK_EQ(keys.size(), 5);
    CHECK_EQ(shard.waiting_insertions(), 0);

    const StorageFolder folder;
    save(shard.table(), folder.path / "queue");
    Table loaded(config, spec, 1);
    CHECK_EQ(loaded.load(folder.path / "queue"), "");
    CHECK_EQ(loaded.stats().items, inserted - 5);

    while (shard.table().stats().items > 0)
      shard.sample(1, take);
    CHECK_EQ(std::ssize(keys), inserted);
  }
}

TEST_CASE("A request past its deadline is refused with a list of the waiting requests") {
  TransitionSource source;
  TransitionSource other(state_spec(1, 2), 7);
  Shard shard({.limiter = {.minimum_items = 1, .samples_per_insert = 1, .error_buffer = 2}},
              source.spec, 1);
  const Time start{};
  while (shard.table().can_insert())
    shard.insert(source.next(), {});
  std::string why;
  bool stored = false;
  const auto before = shard.table().stats().inserted;
  shard.insert(source.next(), [&] { stored = true; },
               {.deadline = start + milliseconds(50),
                .refused = [&](const std::string& words) { why = words; }});
  shard.insert(other.next(), {});
  CHECK_EQ(shard.next_deadline(), start + milliseconds(50));
  shard.expire(start + milliseconds(49));
  CHECK_EQ(why, "");
  shard.expire(start + milliseconds(50));
  CHECK(why.find("the deadline passed; 2 insertions wait (writers 1, 7): inserts wait for samples")
        != std::string::npos);
  CHECK_FALSE(stored);
  CHECK_EQ(shard.waiting_insertions(), 1);
  CHECK_EQ(shard.table().stats().inserted, before);
  CHECK_EQ(shard.next_deadline(), std::nullopt);

  Shard young({.limiter = {.minimum_items = 10}}, source.spec, 1);
  std::size_t answered = 0;
  young.sample(4, [&](const std::vector<Item>&) { ++answered; },
               {.deadline = start + milliseconds(5),
                .who = "learner 0",
                .refused = [&](const std::string& words) { why = words; }});
  young.expire(start + milliseconds(6));
  CHECK_EQ(why, "the deadline passed; 1 samples of 4 wait (learner 0): samples wait for inserts: 0 "
                "of minimum_items 10 inserted");
  CHECK_EQ(answered, 0);
}

TEST_CASE("A rate limiter replaced at run time serves the requests that it allows") {
  TransitionSource source;
  Shard shard({.max_items = 100, .limiter = {.minimum_items = 50}}, source.spec, 1);
  std::size_t got = 0;
  shard.sample(4, [&](const std::vector<Item>& items) { got = items.size(); });
  shard.insert(source.next(), {});
  CHECK_EQ(got, 0);
  CHECK_THROWS_WITH_AS(shard.set_limiter({.minimum_items = 101}),
                       doctest::Contains("replay.minimum_items is 101"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(shard.set_limiter({.kind = RateLimiterKind::queue}),
                       doctest::Contains("replay.sampler is uniform"), std::invalid_argument);
  CHECK_EQ(got, 0);
  shard.set_limiter({.kind = RateLimiterKind::minimum_size, .minimum_items = 1});
  CHECK_EQ(got, 4);
  CHECK_EQ(shard.table().config().limiter.kind, RateLimiterKind::minimum_size);
}

TEST_CASE("The rate limiter never blocks both sides, whatever items are removed") {
  std::mt19937_64 random(9);
  for (const std::int64_t times : {1, 2, 5})
    for (const SelectorKind remover : {SelectorKind::fifo, SelectorKind::lifo})
      for (const std::int64_t batch : {1, 7, 20}) {
        TransitionSource source;
        Shard shard({.max_items = 30,
                     .remover = {.kind = remover},
                     .max_times_sampled = times,
                     .limiter = {.minimum_items = 5,
                                 .samples_per_insert = static_cast<double>(times),
                                 .error_buffer = static_cast<double>(times) + 1}},
                    source.spec, 3);
        int waiting = 0;
        for (int step = 0; step < 3000; ++step) {
          if (random() % 2 == 0 && shard.waiting_insertions() == 0)
            shard.insert(source.next(), {});
          else if (waiting == 0) {
            ++waiting;
            shard.sample(batch, [&](const std::vector<Item>& items) {
              --waiting;
              REQUIRE_EQ(std::ssize(items), batch);
            });
          }
          REQUIRE_FALSE((waiting > 0 && shard.waiting_insertions() > 0));
        }
        CHECK_GT(shard.table().stats().sampled, 100);
      }
}

TEST_CASE("Items that expire by use never leave the table empty, and a bypassed limiter serves any "
          "sample") {
  TransitionSource source;
  Shard shard({.max_items = 100,
               .max_times_sampled = 2,
               .limiter = {.samples_per_insert = 2, .error_buffer = 1e6}},
              source.spec, 3);
  while (shard.table().stats().items < 10)
    shard.insert(source.next(), {});
  std::int64_t got = 0;
  const auto count = [&](const std::vector<Item>& items) { got += std::ssize(items); };
  for (int i = 0; i < 100; ++i)
    shard.sample(3, count);
  CHECK_GT(got, 2 * 10 - 4);
  CHECK_GE(shard.table().stats().items, 1);
  CHECK(shard.why_waiting().find("samples are left in the table (max_times_sampled 2)")
        != std::string::npos);
  const std::int64_t items = shard.table().stats().items;
  shard.bypass_rate_limiter(true);
  CHECK_EQ(got, 300);
  CHECK_EQ(shard.table().stats().items, items);
  shard.bypass_rate_limiter(false);
  shard.sample(3, count);
  CHECK_EQ(got, 300);
  while (got == 300)
    shard.insert(source.next(), {});
  CHECK_EQ(got, 303);
}

TEST_CASE("Rate limiter values out of range are refused, and the error names the key") {
  const auto refused = [](const RateLimiterConfig& config, const char* words) {
    CHECK_THROWS_WITH_AS(check(config, 100), doctest::Contains(words), std::invalid_argument);
  };
  refused({.kind = RateLimiterKind::queue, .queue_items = 101}, "replay.queue_items is 101");
  refused({.kind = RateLimiterKind::minimum_size, .minimum_items = 0}, "replay.minimum_items is 0");
  refused({.samples_per_insert = -1}, "replay.samples_per_insert is -1");
  refused({.kind = static_cast<RateLimiterKind>(9)}, "replay.limiter is 9");
  CHECK_THROWS_WITH_AS(limiter_named("que"), doctest::Contains("minimum_size"),
                       std::invalid_argument);
}

} // namespace
} // namespace troupe::replay
