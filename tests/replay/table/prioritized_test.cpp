// Tables with every sampler and remover, compared with a slow model; and the effects of priorities.
#include <cmath>
#include <limits>
#include <map>

#include <doctest/doctest.h>

#include "replay/table/table.hpp"
#include "tests/replay/table/saved_table.hpp"
#include "tests/replay/table/set_priority.hpp"
#include "tests/replay/writers/episodes.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::replay {
namespace {

constexpr SelectorKind kKinds[] = {SelectorKind::uniform,  SelectorKind::prioritized,
                                   SelectorKind::fifo,     SelectorKind::lifo,
                                   SelectorKind::min_heap, SelectorKind::max_heap};

struct PrioritySource {
  explicit PrioritySource(const TransitionSpec& spec = pixel_spec(2, 2))
      : writer(transition_writer(spec, 1, 12)), player(spec, 5) {}
  Insertion next(std::int64_t least, std::mt19937_64& random) {
    while (writer.pending_items() < least)
      player.step(writer);
    Insertion made = *writer.take();
    for (Item& item : made.items)
      item.priority = static_cast<double>(random() % 6) * 0.5;
    return made;
  }
  Writer writer;
  Player player;
};

/// A simple model of a table: its items by key.
struct TableModel {
  struct Entry {
    double priority = 0;
    std::int64_t times = 0;
  };
  TableConfig config;
  std::map<std::uint64_t, Entry> items;

  /// The items that a selector may choose; for prioritized selection, with their probabilities.
  std::map<std::uint64_t, double> choices(const SelectorConfig& selector) const {
    std::map<std::uint64_t, double> made;
    double total = 0;
    std::uint64_t least = items.begin()->first;
    std::uint64_t most = least;
    for (const auto& [key, entry] : items) {
      total += entry.priority == 0 ? 0 : std::pow(entry.priority, selector.exponent);
      if (entry.priority < items.at(least).priority)
        least = key;
      if (entry.priority > items.at(most).priority)
        most = key;
    }
    const auto all = static_cast<double>(items.size());
    switch (selector.kind) {
    case SelectorKind::uniform:
      for (const auto& [key, entry] : items)
        made[key] = 1 / all;
      break;
    case SelectorKind::prioritized:
      for (const auto& [key, entry] : items)
        if (total == 0 || entry.priority > 0)
          made[key] = total == 0 ? 1 / all : std::pow(entry.priority, selector.exponent) / total;
      break;
    case SelectorKind::fifo:
      made[items.begin()->first] = 1;
      break;
    case SelectorKind::lifo:
      made[items.rbegin()->first] = 1;
      break;
    case SelectorKind::min_heap:
      made[least] = 1;
      break;
    case SelectorKind::max_heap:
      made[most] = 1;
      break;
    }
    return made;
  }
};

/// Compares the keys of table and model, and erases from the model what the remover may have
/// removed.
void follow_removals(const Table& table, TableModel& model, std::size_t removals) {
  for (std::size_t i = 0; i < removals; ++i) {
    bool found = false;
    for (const auto& [key, probability] : model.choices(model.config.remover))
      if (!table.contains(key)) {
        model.items.erase(key);
        found = true;
        break;
      }
    REQUIRE(found);
  }
}

TEST_CASE("Every sampler with every remover agrees with a slow reference model") {
  std::mt19937_64 random(7);
  for (const SelectorKind sampler : kKinds)
    for (const SelectorKind remover : kKinds)
      for (const std::int64_t times : {0, 3}) {
        CAPTURE(std::string(selector_name(sampler)));
        CAPTURE(std::string(selector_name(remover)));
        CAPTURE(times);
        PrioritySource source;
        const TableConfig config{.max_items = 40,
                                 .sampler = {.kind = sampler, .exponent = 0.8},
                                 .remover = {.kind = remover, .exponent = 1.5},
                                 .max_times_sampled = times,
                                 .limiter = {.kind = RateLimiterKind::minimum_size}};
        const bool counts = uses_priorities(sampler) || uses_priorities(remover);
        TableModel model{.config = config, .items = {}};
        Table table(config, pixel_spec(2, 2), 3);
        std::uint64_t next_key = 0;
        std::vector<Item> items;
        for (int step = 0; step < 400; ++step) {
          const auto choice = random() % 4;
          if (model.items.empty() || choice == 0) {
            Insertion made = source.next(1, random);
            made.items.resize(1);
            const std::size_t removals = model.items.size() == 40 ? 1 : 0;
            table.insert(made);
            follow_removals(table, model, removals);
            model.items[next_key++] = {counts ? made.items[0].priority : 1, 0};
          } else if (choice == 1) {
            auto at = model.items.begin();
            std::advance(at, random() % model.items.size());
            const std::uint64_t keys[] = {at->first, next_key + 5};
            const double priorities[] = {static_cast<double>(random() % 4), 1};
            table.update_priorities(keys, priorities);
            if (counts)
              at->second.priority = priorities[0];
          } else {
            table.sample(1, items);
            REQUIRE_EQ(items.size(), 1);
            const auto allowed = model.choices(config.sampler);
            REQUIRE(allowed.contains(items[0].key));
            TableModel::Entry& entry = model.items.at(items[0].key);
            ++entry.times;
            CHECK_EQ(items[0].probability, doctest::Approx(allowed.at(items[0].key)));
            CHECK_EQ(items[0].priority, entry.priority);
            CHECK_EQ(items[0].times_sampled, entry.times);
            CHECK_EQ(items[0].table_items, model.items.size());
            if (entry.times == times)
              model.items.erase(items[0].key);
          }
          REQUIRE_EQ(table.stats().items, std::ssize(model.items));
          for (const auto& [key, entry] : model.items)
            REQUIRE(table.contains(key));
        }
        while (table.stats().items < 40)
          table.insert(source.next(1, random));
        table.sample(times == 0 ? 100 : 30, items);
        Batch batch(pixel_spec(2, 2), std::ssize(items));
        gather(pixel_spec(2, 2), items, batch.view(), 0);
        for (std::size_t row = 0; row < batch.rows; ++row)
          source.player.check_row(batch, row); // chunks still belong to their items
      }
}

TEST_CASE("A loaded table with any selectors continues exactly and saves to the same bytes") {
  const TemporaryFolder folder;
  std::mt19937_64 random(7);
  for (const SelectorKind sampler : kKinds)
    for (const SelectorKind remover : kKinds)
      for (const std::int64_t times : {0, 4}) {
        CAPTURE(std::string(selector_name(sampler)));
        CAPTURE(std::string(selector_name(remover)));
        CAPTURE(times);
        PrioritySource source;
        const TableConfig config{.max_items = 1500,
                                 .sampler = {.kind = sampler, .exponent = 0.8},
                                 .remover = {.kind = remover},
                                 .max_times_sampled = times,
                                 .limiter = {.samples_per_insert = 2, .error_buffer = 1e9}};
        Table table(config, pixel_spec(2, 2), 3);
        const auto play = [&](Table& on, Table* also, int steps) {
          std::vector<Item> items;
          std::vector<Item> same;
          for (int i = 0; i < steps; ++i) {
            const Insertion made = source.next(5, random);
            on.insert(made);
            on.sample(4, items);
            std::vector<std::uint64_t> keys;
            std::vector<double> priorities;
            for (const Item& item : items) {
              keys.push_back(item.key);
              priorities.push_back(static_cast<double>(random() % 9));
            }
            on.update_priorities(keys, priorities);
            if (also == nullptr)
              continue;
            also->insert(made);
            also->sample(4, same);
            also->update_priorities(keys, priorities);
            REQUIRE_EQ(same.size(), items.size());
            for (std::size_t k = 0; k < items.size(); ++k) {
              REQUIRE_EQ(same[k].key, items[k].key);
              REQUIRE_EQ(same[k].probability, items[k].probability);
              REQUIRE_EQ(same[k].times_sampled, items[k].times_sampled);
            }
          }
        };
        play(table, nullptr, 450); // beyond the ring's initial size, and full
        save(table, folder / "one");
        Table restored(config, pixel_spec(2, 2), 99);
        CHECK_EQ(restored.load((folder / "one").string()), "");
        CHECK(restored.stats() == table.stats());
        save(restored, folder / "two");
        CHECK((contents_of_folder(folder / "one") == contents_of_folder(folder / "two")));
        play(table, &restored, 100);
      }
}

TEST_CASE(
    "A table restored with other selectors and limiter reports the difference and uses its own") {
  const TemporaryFolder folder;
  const std::string path = (folder / "table").string();
  std::mt19937_64 random(7);
  PrioritySource source;
  TableConfig config{.max_items = 500,
                     .sampler = {.kind = SelectorKind::prioritized, .exponent = 0.6},
                     .limiter = {.error_buffer = 1e9}};
  Table table(config, pixel_spec(2, 2), 3);
  for (int i = 0; i < 100; ++i)
    table.insert(source.next(3, random));
  save(table, path);
  config.sampler = {.kind = SelectorKind::max_heap};
  config.remover = {.kind = SelectorKind::lifo};
  config.max_times_sampled = 7;
  config.limiter = {.kind = RateLimiterKind::minimum_size};
  Table other(config, pixel_spec(2, 2), 3);
  CHECK_THROWS_WITH_AS(other.load(path),
                       doctest::Contains("replay.sampler was prioritized (exponent 0.6) and is "
                                         "max_heap, replay.remover was fifo and is lifo, "
                                         "replay.max_times_sampled was 0 and is 7, replay.limiter "
                                         "was samples_per_insert and is minimum_size"),
                       std::runtime_error);
  CHECK_EQ(other.stats().items, 0);
  const std::string difference = other.load(path, Table::ConfigChange::accept);
  CHECK(difference.find("replay.max_times_sampled was 0 and is 7") != std::string::npos);
  CHECK_EQ(other.stats().items, table.stats().items);
  std::vector<Item> items;
  other.sample(1, items);
  CHECK_EQ(items.at(0).priority, 2.5); // the item of greatest priority was kept
  // Back to the first configuration: the items are in a ring again, fewer of them and with gaps
  // between the keys.
  other.sample(20, items);
  save(other, path);
  Table back({.max_items = 100, .limiter = {.minimum_items = 5}}, pixel_spec(2, 2), 3);
  CHECK_NE(back.load(path, Table::ConfigChange::accept), "");
  CHECK_EQ(back.stats().items, 100);
  back.sample(50, items);
  Batch batch(pixel_spec(2, 2), 50);
  gather(pixel_spec(2, 2), items, batch.view(), 0);
  for (std::size_t row = 0; row < batch.rows; ++row)
    source.player.check_row(batch, row);
}

TEST_CASE("New items get the highest priority so far") {
  std::mt19937_64 random(7);
  PrioritySource source;
  Table table({.sampler = {.kind = SelectorKind::prioritized}, .insert_at_maximum = true},
              pixel_spec(2, 2), 3);
  table.insert(source.next(4, random));
  CHECK_EQ(table.item(0).priority, 1);
  CHECK(set_priority(table, 0, 8));
  CHECK(set_priority(table, 0, 0.5));
  table.insert(source.next(4, random));
  CHECK_EQ(table.item(static_cast<std::uint64_t>(table.stats().inserted - 1)).priority, 8);
  CHECK_EQ(table.item(0).priority, 0.5);
  CHECK_FALSE(set_priority(table, 1000, 1));
}

TEST_CASE("Invalid priorities are refused as a whole, and late ones are counted") {
  std::mt19937_64 random(7);
  PrioritySource source;
  Table table({.max_items = 10, .sampler = {.kind = SelectorKind::prioritized}}, pixel_spec(2, 2),
              3);
  table.insert(source.next(20, random));
  const auto newest = static_cast<std::uint64_t>(table.stats().inserted - 1);
  const double was = table.item(newest).priority;
  const std::uint64_t keys[] = {newest, newest - 1};
  const double bad[] = {5, std::nan("")};
  const double negative[] = {5, -1};
  CHECK_THROWS_WITH_AS(
      table.update_priorities(keys, bad),
      doctest::Contains(("item " + std::to_string(newest - 1) + " is nan").c_str()),
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(table.update_priorities(keys, negative), doctest::Contains("is -1"),
                       std::invalid_argument);
  CHECK_THROWS_AS(table.update_priorities(keys, std::span(bad).first(1)), std::invalid_argument);
  CHECK_EQ(table.item(newest).priority, was);
  const std::uint64_t gone[] = {0, newest};
  const double fine[] = {3, 4};
  table.update_priorities(gone, fine);
  CHECK_EQ(table.stats().late_priorities, 1);
  CHECK_EQ(table.stats().updated_priorities, 1);
  CHECK_EQ(table.item(newest).priority, 4);
  Insertion made = source.next(3, random);
  made.items[1].priority = std::numeric_limits<double>::infinity();
  const auto inserted = table.stats().inserted;
  CHECK_THROWS_AS(table.insert(made), std::invalid_argument);
  CHECK_EQ(table.stats().inserted, inserted);
  made.items[1].priority = 1;
  table.insert(made); // it was refused before, so it is not a duplicate
  CHECK_GT(table.stats().inserted, inserted);
}

TEST_CASE("Invalid options and combinations of options are refused with the required values") {
  const auto refused = [](const TableConfig& config, const char* words) {
    CHECK_THROWS_WITH_AS(Table(config, state_spec(1), 1), doctest::Contains(words),
                         std::invalid_argument);
  };
  refused({.max_times_sampled = -1}, "replay.max_times_sampled is -1");
  refused({.max_times_sampled = 2, .limiter = {.samples_per_insert = 3}},
          "replay.samples_per_insert is 3 but must be at most max_times_sampled");
  refused({.sampler = {.kind = SelectorKind::prioritized, .exponent = std::nan("")}},
          "replay.sampler's priority exponent is nan");
  refused({.limiter = {.kind = RateLimiterKind::stack}},
          "replay.sampler is uniform but must be lifo");
}

} // namespace
} // namespace troupe::replay
