#include "replay/table/item_shapes.hpp"

#include <doctest/doctest.h>

#include "replay/table/table.hpp"
#include "replay/writers/writer.hpp"
#include "tests/replay/table/saved_table.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::replay {
namespace {

const Signature kNumbers{.columns = {{"x", env::ElementType::float32, {}}}, .items = "numbers"};

/// Adds items that each have a different shape, numbered from `next` on.
struct Shapes {
  Writer writer = Writer(kNumbers, 3, {.chunk_rows = 64, .reach = 400});
  std::uint32_t next = 0;

  InsertionPtr insertion(int items) {
    for (int i = 0; i < items; ++i, ++next) {
      while (writer.rows() < 300 || i == 0) {
        writer.next(0);
        writer.append();
        if (writer.rows() >= 300)
          break;
      }
      const Slice first{.first = next % 290, .count = 1};
      const Slice second{.first = next / 290 % 290, .count = 1};
      const Slice third{.first = next / 290 / 290, .count = 1};
      writer.add_item(writer.rows() - 295, 295, 0,
                      std::make_shared<ItemShape>(ItemShape{{{first, second, third}}}), 1);
    }
    return writer.take();
  }
};

TEST_CASE("A shape is removed with its last item, so that a table accepts any number of successive "
          "shapes") {
  Shapes shapes;
  Table table({.max_items = 500, .limiter = {.minimum_items = 1}}, kNumbers, 1);
  std::int64_t most = 0;
  for (int i = 0; i < 800; ++i) {
    table.insert(*shapes.insertion(100));
    most = std::max(most, table.stats().bytes);
  }
  CHECK_EQ(table.stats().inserted, 80'000); // more than kMaxShapes
  CHECK_EQ(table.stats().items, 500);
  CHECK_LT(most, 1 << 20);
}

TEST_CASE("A table at its limit of shapes removes items to make room for new shapes") {
  Shapes shapes;
  Table table({.max_items = 1'000'000, .limiter = {.minimum_items = 1}}, kNumbers, 1);
  for (int i = 0; i < 700; ++i)
    table.insert(*shapes.insertion(100));
  CHECK_EQ(table.stats().inserted, 70'000);
  CHECK_EQ(table.stats().items, static_cast<std::int64_t>(kMaxShapes));
}

TEST_CASE("Shapes count towards max_bytes") {
  Shapes shapes;
  Table table({.max_items = 1'000'000, .max_bytes = 1 << 20, .limiter = {.minimum_items = 1}},
              kNumbers, 1);
  for (int i = 0; i < 200; ++i)
    table.insert(*shapes.insertion(100));
  CHECK_LE(table.stats().bytes, (1 << 20) + (1 << 16));
  CHECK_LT(table.stats().items, 6000);
}

TEST_CASE("A table saved with unused shape numbers continues like the original") {
  const TemporaryFolder folder;
  Shapes shapes;
  const TableConfig config{.max_items = 300, .limiter = {.minimum_items = 1}};
  Table table(config, kNumbers, 1);
  for (int i = 0; i < 5; ++i)
    table.insert(*shapes.insertion(90));
  save(table, folder / "first");
  Table restored(config, kNumbers, 2);
  restored.load(folder / "first");
  CHECK(restored.stats() == table.stats());
  const InsertionPtr more = shapes.insertion(50);
  table.insert(*more);
  restored.insert(*more);
  std::vector<Item> items;
  std::vector<Item> again;
  table.sample(100, items);
  restored.sample(100, again);
  for (std::size_t i = 0; i < items.size(); ++i) {
    CHECK_EQ(items[i].key, again[i].key);
    CHECK(*items[i].shape == *again[i].shape);
  }
}

TEST_CASE("Equal shapes share a number, and a new shape gets the lowest free number") {
  ItemShapes shapes;
  std::vector<ShapePtr> made; // the shapes of an insertion live while the insertion does
  const auto shape = [&made](std::uint32_t first) {
    return made.emplace_back(std::make_shared<ItemShape>(ItemShape{{{Slice{first, 1}}}}));
  };
  shapes.begin_insertion();
  CHECK_EQ(shapes.use(nullptr), 0);
  CHECK_EQ(shapes.use(shape(5)), 1);
  CHECK_EQ(shapes.use(shape(6)), 2);
  CHECK_EQ(shapes.use(shape(5)), 1);
  CHECK_EQ(shapes.numbers(), 3);
  shapes.release(1);
  CHECK(shapes[1]);
  shapes.release(1);
  CHECK_FALSE(shapes[1]);
  CHECK_EQ(shapes.use(shape(7)), 1);
  CHECK_EQ(shapes.use(shape(6)), 2);
  CHECK_EQ(shapes.use(shape(5)), 3);
}

} // namespace
} // namespace troupe::replay
