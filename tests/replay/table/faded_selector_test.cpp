#include "replay/table/faded_selector.hpp"

#include <cmath>
#include <deque>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "replay/table/table_config_wire.hpp"

using namespace troupe::replay;

namespace {

constexpr SelectorConfig kFading{
    .kind = SelectorKind::prioritized, .exponent = 0.6, .fade = 0.98, .least_fade = 0.2};

/// A list from the oldest place to the newest, with the priorities that the probabilities follow.
struct Model {
  std::deque<std::pair<std::uint32_t, double>> entries; // places and priorities

  double weight(std::size_t index) const {
    const auto age = static_cast<double>(entries.size() - 1 - index);
    const double priority = entries[index].second;
    return priority == 0 ? 0
                         : std::pow(priority, kFading.exponent)
                               * std::max(std::pow(kFading.fade, age), kFading.least_fade);
  }
  double total() const {
    double sum = 0;
    for (std::size_t i = 0; i < entries.size(); ++i)
      sum += weight(i);
    return sum;
  }
};

/// Inserts, erases the oldest or changes a priority, like a table that removes the oldest item.
void operate(std::mt19937_64& random, Selector& selector, Model& model, std::uint32_t& next,
             std::size_t most) {
  const auto choice = random() % 8;
  const double priority = static_cast<double>(random() % 50) / 7;
  if (model.entries.empty() || (choice < 4 && model.entries.size() < most)) {
    selector.insert(next, priority);
    model.entries.emplace_back(next++, priority);
  } else if (choice < 5) {
    selector.erase(model.entries.front().first);
    model.entries.pop_front();
  } else {
    auto& entry = model.entries[random() % model.entries.size()];
    entry.second = priority;
    selector.update(entry.first, priority);
  }
}

} // namespace

// Items go to four shards in turn, and batches take equal shares of each. Four consecutive items
// have the same priority, so that all shards have the same priorities. A shard counts the age of an
// item in its own insertions only.
TEST_CASE("Items in several shards are chosen as often as in one table, including fading") {
  constexpr std::uint32_t kShards = 4, kItems = 2000;
  SelectorConfig config = kFading;
  config.fade = 0.998;
  const auto weight = [&](std::uint32_t item) {
    return std::pow(1 + item / kShards % 7, config.exponent)
           * std::max(std::pow(config.fade, kItems - 1 - item), config.least_fade);
  };
  double total = 0;
  for (std::uint32_t item = 0; item < kItems; ++item)
    total += weight(item);
  SelectorConfig of_shard = config;
  of_shard.fade = fade_of_shard(config.fade, kShards);
  Random draws(5);
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    const auto selector = make_selector(of_shard);
    for (std::uint32_t place = 0; place < kItems / kShards; ++place)
      selector->insert(place, 1 + place % 7);
    for (int i = 0; i < 500; ++i) {
      const Selected chosen = selector->select(draws);
      const double whole = weight(chosen.place * kShards + shard) / total;
      REQUIRE_EQ(chosen.probability / kShards / whole, doctest::Approx(1).epsilon(0.004));
    }
  }
}

TEST_CASE("Old places fade as in a linear reference list after any operations") {
  std::mt19937_64 random(3);
  Random draws(5);
  const auto selector = make_selector(kFading);
  Model model;
  std::uint32_t next = 0;
  for (int step = 0; step < 20000; ++step) {
    operate(random, *selector, model, next, 300); // 80 of them fade
    REQUIRE_EQ(selector->size(), model.entries.size());
    if (!(model.total() > 0))
      continue;
    REQUIRE_EQ(selector->total(), doctest::Approx(model.total()).epsilon(1e-12));
    for (int i = 0; i < 3; ++i) {
      const Selected chosen = selector->select(draws);
      const std::size_t index = chosen.place - model.entries.front().first;
      REQUIRE_LT(index, model.entries.size());
      REQUIRE_EQ(chosen.probability,
                 doctest::Approx(model.weight(index) / model.total()).epsilon(1e-12));
    }
  }
}

TEST_CASE("Fading places are chosen with their stated probabilities") {
  constexpr std::size_t kItems = 150;
  constexpr int kDraws = 300'000;
  const auto selector = make_selector(kFading);
  Model model;
  for (std::uint32_t i = 0; i < kItems; ++i) {
    const double priority = 0.5 + i % 3;
    selector->insert(i, priority);
    model.entries.emplace_back(i, priority);
  }
  Random draws(11);
  std::vector<Selected> chosen(kDraws);
  selector->select(draws, chosen);
  std::vector<double> count(kItems);
  for (const Selected& one : chosen)
    ++count[one.place];
  double chi_square = 0;
  for (std::size_t i = 0; i < kItems; ++i) {
    const double expected = model.weight(i) / model.total() * kDraws;
    chi_square += (count[i] - expected) * (count[i] - expected) / expected;
  }
  CHECK_GT(chi_square, 149 - 5 * std::sqrt(2 * 149.0));
  CHECK_LT(chi_square, 149 + 5 * std::sqrt(2 * 149.0));
}

TEST_CASE("Fading places inserted again in their order are chosen as before") {
  std::mt19937_64 random(4);
  const auto selector = make_selector(kFading);
  Model model;
  std::uint32_t next = 0;
  for (int step = 0; step < 5000; ++step)
    operate(random, *selector, model, next, 250);
  const auto again = make_selector(kFading);
  std::vector<std::uint32_t> order;
  selector->order(order);
  REQUIRE_EQ(order.size(), model.entries.size());
  for (const std::uint32_t place : order)
    again->insert(place, model.entries[place - model.entries.front().first].second);
  Random draws(5);
  Random same(5);
  for (int step = 0; step < 2000; ++step) {
    const Selected a = selector->select(draws);
    const Selected b = again->select(same);
    REQUIRE_EQ(a.place, b.place);
    REQUIRE_EQ(a.probability, doctest::Approx(b.probability).epsilon(1e-12));
  }
}

TEST_CASE("Fading places are chosen equally while all priorities are zero") {
  const auto selector = make_selector(kFading);
  for (std::uint32_t i = 0; i < 200; ++i)
    selector->insert(i, 0);
  Random draws(1);
  std::vector<bool> seen(200);
  for (int i = 0; i < 5000; ++i) {
    const Selected one = selector->select(draws);
    REQUIRE_EQ(one.probability, doctest::Approx(1.0 / 200));
    seen[one.place] = true;
  }
  CHECK(seen == std::vector<bool>(200, true));
  CHECK_GT(selector->total(), 0);
}

TEST_CASE("Invalid fading options are refused, and the error names the key") {
  const auto refused = [](const TableConfig& config, const char* why) {
    CHECK_THROWS_WITH_AS(check(config), doctest::Contains(why), std::invalid_argument);
  };
  CHECK_NOTHROW(check(TableConfig{.sampler = kFading}));
  SelectorConfig other = kFading;
  other.fade = 0.4;
  refused({.sampler = other}, "replay.sampler's priority fade is 0.4");
  other.fade = std::nan("");
  refused({.sampler = other}, "replay.sampler's priority fade is nan");
  other = kFading;
  other.least_fade = 0;
  refused({.sampler = other}, "replay.sampler's least fade is 0");
  other = kFading;
  other.kind = SelectorKind::uniform;
  refused({.sampler = other}, "replay.sampler is uniform");
  refused({.remover = kFading}, "replay.remover");
  refused({.sampler = kFading, .remover = {.kind = SelectorKind::uniform}}, "replay.remover");
  refused({.sampler = kFading,
           .max_times_sampled = 4,
           .limiter = {.kind = RateLimiterKind::minimum_size}},
          "replay.max_times_sampled");
}

TEST_CASE("Fading is transmitted with a table's configuration and appears in its differences") {
  const TableConfig config{.sampler = kFading};
  wire::Config sent;
  put(config, sent);
  CHECK(config_of(sent) == config);
  sent.mutable_sampler()->clear_fade(); // as sent before fading existed
  sent.mutable_sampler()->clear_least_fade();
  const TableConfig other = config_of(sent);
  CHECK_EQ(other.sampler.fade, 1);
  CHECK_EQ(difference(config, other),
           "replay.sampler was prioritized (exponent 0.6, fade 0.98 to 0.2) and is prioritized "
           "(exponent 0.6)");
}
