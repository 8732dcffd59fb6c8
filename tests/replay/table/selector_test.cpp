#include "replay/table/selector.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "replay/table/key_index.hpp"
#include "replay/table/sum_tree.hpp"

namespace troupe::replay {
namespace {

constexpr SelectorKind kSelectors[] = {SelectorKind::uniform,  SelectorKind::prioritized,
                                       SelectorKind::fifo,     SelectorKind::lifo,
                                       SelectorKind::min_heap, SelectorKind::max_heap};

/// A selector as its header describes it: a list in order of insertion that is searched linearly.
struct SelectorModel {
  struct Entry {
    std::uint32_t place;
    double priority;
  };
  SelectorConfig config;
  std::vector<Entry> entries;

  auto find(std::uint32_t place) {
    return std::find_if(entries.begin(), entries.end(),
                        [&](const Entry& e) { return e.place == place; });
  }
  double weight(const Entry& entry) const {
    return entry.priority == 0 ? 0 : std::pow(entry.priority, config.exponent);
  }
  /// The probability of each place.
  std::map<std::uint32_t, double> probabilities() const {
    std::map<std::uint32_t, double> made;
    const auto before = [](const Entry& a, const Entry& b) { return a.priority < b.priority; };
    double total = 0;
    for (const Entry& e : entries)
      total += weight(e);
    switch (config.kind) {
    case SelectorKind::uniform:
      for (const Entry& e : entries)
        made[e.place] = 1.0 / static_cast<double>(entries.size());
      break;
    case SelectorKind::prioritized:
      for (const Entry& e : entries)
        if (total == 0 || weight(e) > 0)
          made[e.place] = total > 0 ? weight(e) / total : 1.0 / static_cast<double>(entries.size());
      break;
    case SelectorKind::fifo:
      made[entries.front().place] = 1;
      break;
    case SelectorKind::lifo:
      made[entries.back().place] = 1;
      break;
    case SelectorKind::min_heap:
      made[std::min_element(entries.begin(), entries.end(), before)->place] = 1;
      break;
    case SelectorKind::max_heap:
      made[std::max_element(entries.begin(), entries.end(), before)->place] = 1;
      break;
    }
    return made;
  }
};

/// Applies one random operation to both; priorities are often equal and often 0.
void operate(std::mt19937_64& random, Selector& selector, SelectorModel& model, std::size_t most) {
  const double priority = static_cast<double>(random() % 5) * 0.5;
  const auto choice = random() % 4;
  if (model.entries.empty() || (choice < 2 && model.entries.size() < most)) {
    std::uint32_t place = 0;
    do
      place = static_cast<std::uint32_t>(random() % (2 * most));
    while (model.find(place) != model.entries.end());
    selector.insert(place, priority);
    model.entries.push_back({place, priority});
    return;
  }
  const std::uint32_t place = model.entries[random() % model.entries.size()].place;
  if (choice == 2) {
    selector.update(place, priority);
    model.find(place)->priority = priority;
  } else {
    selector.erase(place);
    model.entries.erase(model.find(place));
  }
}

TEST_CASE("Each kind of selector chooses like a linear reference list after any operations") {
  for (const SelectorKind kind : kSelectors) {
    CAPTURE(selector_name(kind));
    std::mt19937_64 random(3);
    Random draws(5);
    SelectorModel model{.config = {.kind = kind, .exponent = 0.6}, .entries = {}};
    const auto selector = make_selector(model.config);
    for (int step = 0; step < 20000; ++step) {
      operate(random, *selector, model, 1 + static_cast<std::size_t>(step) / 100);
      REQUIRE_EQ(selector->size(), model.entries.size());
      if (model.entries.empty())
        continue;
      const auto probabilities = model.probabilities();
      double total = static_cast<double>(model.entries.size());
      if (kind == SelectorKind::prioritized) {
        total = 0;
        for (const SelectorModel::Entry& e : model.entries)
          total += model.weight(e);
        CHECK_GT(selector->total(), 0); // however small, there is something to choose from
      }
      REQUIRE_EQ(selector->total(), doctest::Approx(total).epsilon(1e-12));
      for (int i = 0; i < 3; ++i) {
        const Selected chosen = selector->select(draws);
        REQUIRE(probabilities.contains(chosen.place));
        REQUIRE_EQ(chosen.probability,
                   doctest::Approx(probabilities.at(chosen.place)).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("A selector rebuilt from its order makes the same choices") {
  for (const SelectorKind kind : kSelectors) {
    CAPTURE(selector_name(kind));
    std::mt19937_64 random(4);
    SelectorModel model{.config = {.kind = kind, .exponent = 0.7}, .entries = {}};
    const auto selector = make_selector(model.config);
    for (int step = 0; step < 3000; ++step)
      operate(random, *selector, model, 200);
    const auto again = make_selector(model.config);
    std::vector<std::uint32_t> order;
    selector->order(order);
    REQUIRE_EQ(order.size(), model.entries.size());
    for (const std::uint32_t place : order)
      again->insert(place, model.find(place)->priority);
    Random draws(5);
    Random same(5);
    for (int step = 0; step < 2000; ++step) {
      auto fork = random;
      SelectorModel copy = model;
      operate(random, *selector, model, 200);
      operate(fork, *again, copy, 200);
      if (model.entries.empty())
        continue;
      const Selected a = selector->select(draws);
      const Selected b = again->select(same);
      REQUIRE_EQ(a.place, b.place);
      REQUIRE_EQ(a.probability, b.probability);
    }
  }
}

TEST_CASE("A batch of choices equals the same choices made one by one") {
  for (const SelectorKind kind : kSelectors) {
    std::mt19937_64 random(4);
    SelectorModel model{.config = {.kind = kind, .exponent = 0.7}, .entries = {}};
    const auto selector = make_selector(model.config);
    for (int step = 0; step < 3000; ++step)
      operate(random, *selector, model, 700);
    Random draws(5);
    Random same(5);
    std::vector<Selected> many(101);
    selector->select(draws, many);
    for (const Selected& one : many)
      CHECK_EQ(one.place, selector->select(same).place);
  }
}

// With k - 1 degrees of freedom, chi-square has mean k - 1 and standard deviation sqrt(2 (k - 1)).
TEST_CASE("A batch of updates equals the same updates made one by one") {
  for (const SelectorKind kind : kSelectors) {
    const auto single = make_selector({.kind = kind, .exponent = 0.7});
    const auto many = make_selector({.kind = kind, .exponent = 0.7});
    std::mt19937_64 random(3);
    for (std::uint32_t place = 0; place < 5000; ++place) {
      single->insert(place, 1);
      many->insert(place, 1);
    }
    for (const std::size_t count : {1U, 7U, 256U, 300U, 9000U}) { // some places occur twice
      std::vector<std::uint32_t> places(count);
      std::vector<double> priorities(count);
      for (std::size_t i = 0; i < count; ++i) {
        places[i] = static_cast<std::uint32_t>(random() % 5000);
        priorities[i] = static_cast<double>(random() % 100);
        single->update(places[i], priorities[i]);
      }
      many->update(places, priorities);
      CHECK_EQ(single->total(), many->total());
      Random first(count);
      Random second(count);
      for (int i = 0; i < 500; ++i) {
        const Selected expected = single->select(first);
        const Selected got = many->select(second);
        REQUIRE_EQ(expected.place, got.place);
        REQUIRE_EQ(expected.probability, got.probability);
      }
    }
  }
}

TEST_CASE("Choices occur with their stated probabilities") {
  for (const SelectorKind kind : {SelectorKind::uniform, SelectorKind::prioritized})
    for (const double exponent : {0.0, 0.5, 1.0, 2.0}) {
      CAPTURE(exponent);
      constexpr std::uint32_t kItems = 300;
      constexpr int kDraws = 600'000;
      SelectorModel model{.config = {.kind = kind, .exponent = exponent}, .entries = {}};
      const auto selector = make_selector(model.config);
      for (std::uint32_t i = 0; i < kItems; ++i) {
        const double priority = 0.2 + static_cast<double>(i % 7);
        selector->insert(i, priority);
        model.entries.push_back({i, priority});
      }
      Random draws(11);
      std::vector<Selected> chosen(kDraws);
      selector->select(draws, chosen);
      std::vector<double> count(kItems);
      for (const Selected& one : chosen)
        ++count[one.place];
      double chi_square = 0;
      for (const auto& [place, probability] : model.probabilities()) {
        const double expected = probability * kDraws;
        chi_square += (count[place] - expected) * (count[place] - expected) / expected;
      }
      CHECK_GT(chi_square, 299 - 5 * std::sqrt(2 * 299.0));
      CHECK_LT(chi_square, 299 + 5 * std::sqrt(2 * 299.0));
    }
}

TEST_CASE("A priority of zero is never chosen while another is positive, however small") {
  const auto selector = make_selector({.kind = SelectorKind::prioritized, .exponent = 1});
  for (std::uint32_t i = 0; i < 5000; ++i)
    selector->insert(i, i == 4321 ? 1e-12 : 0);
  Random draws(1);
  for (int i = 0; i < 5000; ++i)
    REQUIRE_EQ(selector->select(draws).place, 4321);
  selector->update(4321, 0);
  std::vector<bool> seen(5000);
  for (int i = 0; i < 50000; ++i)
    seen[selector->select(draws).place] = true;
  CHECK_GT(std::count(seen.begin(), seen.end(), true), 4900); // all are equally likely again
}

TEST_CASE("After ten million operations, a sum tree equals a fresh tree bit for bit and agrees "
          "with a linear scan") {
  constexpr std::size_t kItems = 3000;
  std::mt19937_64 random(8);
  SumTree tree;
  std::vector<double> weights;
  const auto some = [&] { // 20 orders of magnitude: sums updated by differences would drift
    return random() % 8 == 0 ? 0
                             : std::ldexp(static_cast<double>(random() >> 11U),
                                          -20 - static_cast<int>(random() % 64));
  };
  for (int step = 0; step < 10'000'000; ++step) {
    const auto choice = random() % 64;
    if (weights.empty() || (choice == 0 && weights.size() < kItems)) {
      weights.push_back(some());
      tree.push_back(weights.back());
    } else if (choice == 1) {
      weights.pop_back();
      tree.pop_back();
    } else {
      const std::size_t position = random() % weights.size();
      weights[position] = some();
      tree.set(position, weights[position]);
    }
  }
  SumTree fresh;
  long double total = 0;
  for (const double weight : weights) {
    fresh.push_back(weight);
    total += static_cast<long double>(weight);
  }
  REQUIRE_EQ(tree.size(), weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    REQUIRE_EQ(tree.weight(i), weights[i]);
  CHECK_EQ(tree.total(), doctest::Approx(static_cast<double>(total)).epsilon(1e-14));
  // A tree that has grown less has fewer zeros to add, so the sums are the same.
  CHECK_EQ(tree.total(), fresh.total());
  for (int i = 0; i < 20000; ++i) {
    const double value = static_cast<double>(random() >> 11U) * 0x1p-53 * tree.total();
    const std::size_t found = tree.find(value);
    long double before = 0;
    std::size_t scanned = 0;
    while (before + static_cast<long double>(weights[scanned]) <= static_cast<long double>(value))
      before += static_cast<long double>(weights[scanned++]);
    REQUIRE_GT(weights[found], 0);
    if (found != scanned) // only if the value is on the boundary, within rounding
      REQUIRE_EQ(static_cast<double>(before),
                 doctest::Approx(value).epsilon(1e-12).scale(tree.total()));
  }
}

TEST_CASE("Invalid priorities, exponents and names are refused with the valid values") {
  const double bad[] = {std::nan(""), -1e-9, std::numeric_limits<double>::infinity(), 2e12};
  for (const double priority : bad)
    CHECK_THROWS_WITH_AS(check_priority(priority, "an item"),
                         doctest::Contains("must be 0 to 1e+12"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(make_selector({.kind = SelectorKind::prioritized, .exponent = -1}),
                       doctest::Contains("exponent is -1"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(selector_named("priorized"), doctest::Contains("uniform, prioritized, fifo"),
                       std::invalid_argument);
  for (const SelectorKind kind : kSelectors)
    CHECK_EQ(selector_named(selector_name(kind)), kind);
}

TEST_CASE("The key index behaves like a map") {
  std::mt19937_64 random(2);
  KeyIndex index;
  std::map<std::uint64_t, std::uint32_t> model;
  for (int step = 0; step < 200000; ++step) {
    const std::uint64_t key = random() % 3000;
    if (model.contains(key)) {
      REQUIRE_EQ(index.find(key), model.at(key));
      index.erase(key);
      model.erase(key);
    } else {
      REQUIRE_EQ(index.find(key), KeyIndex::kAbsent);
      const auto place = static_cast<std::uint32_t>(random() % 1000);
      index.insert(key, place);
      model[key] = place;
    }
    REQUIRE_EQ(index.size(), model.size());
  }
  for (const auto& [key, place] : model)
    CHECK_EQ(index.find(key), place);
}

} // namespace
} // namespace troupe::replay
