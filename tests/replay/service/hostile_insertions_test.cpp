#include "replay/service/dropped_kinds.hpp"
#include "replay/service/insertion_decoder.hpp"
#include "replay/service/wire_format.hpp"
#include "replay/table/table.hpp"

#include <doctest/doctest.h>

#include "replay/table/table_config_wire.hpp"
#include "replay/writers/writer.hpp"

// Messages of a few KB that once made a shard hold gigabytes or hang.
namespace troupe::replay {
namespace {

using env::wire::Frame;
using env::wire::Message;
using Result = InsertionDecoder::Result;

constexpr std::size_t kMiB = std::size_t{1} << 20;
const Signature kNumbers{.columns = {{"x", env::ElementType::float32, {}}}, .items = "numbers"};
const std::size_t kRowBytes = RowLayout(kNumbers).row_bytes;

/// An insertion built by hand.
struct Forged {
  wire::Insert header;
  std::vector<Frame> frames;

  explicit Forged(std::uint64_t writer, std::uint32_t capacity = 4) {
    header.set_writer(writer);
    header.set_sequence(1);
    header.set_complete(true);
    header.set_capacity(capacity);
    frames.emplace_back();
  }
  void add_rows(std::uint64_t chunk, std::uint32_t first, std::uint32_t count) {
    wire::Rows& rows = *header.add_rows();
    rows.set_chunk(chunk);
    rows.set_first(first);
    rows.set_count(count);
    rows.set_flags(std::string(count, '\0'));
    frames.emplace_back(count * kRowBytes);
  }
  void set_items(const std::vector<ItemRecord>& records) {
    frames[0] = Frame(std::as_bytes(std::span(records)));
  }
  void add_shape(const ItemShape& shape) { put(shape, *header.add_shapes()); }
  Result decode(InsertionDecoder& decoder) {
    return decoder.decode(header, frames, insertion, why);
  }
  InsertionPtr insertion;
  std::string why;
};

TEST_CASE("A refused insertion leaves nothing behind") {
  InsertionDecoder decoder(kNumbers, {.max_chunk_bytes = 64 * kMiB, .max_writers = 8});
  for (std::uint64_t n = 0; n < 20; ++n) {
    Forged forged(7, 1000);
    for (std::uint64_t i = 0; i < 512; ++i)
      forged.add_rows(n * 1000 + i, 0, 1);
    forged.header.add_chunks(n * 1000);
    forged.set_items({{.chunk = 9, .begin = 0, .rows = 1}});
    CHECK(forged.decode(decoder) == Result::garbage);
    CHECK_EQ(forged.why, "an item outside its chunks");
    forged.header.set_complete(false);
    forged.set_items({{.chunk = 0, .begin = 5, .rows = 1}});
    CHECK(forged.decode(decoder) == Result::missing);
    CHECK_EQ(decoder.held_bytes(), 0);
  }
}

TEST_CASE(
    "The chunks that a message opens and the chunks that all writers keep are limited in size") {
  InsertionDecoder decoder(
      kNumbers, {.max_chunk_bytes = 64 * kMiB, .max_writers = 1024, .max_bytes = 16 * kMiB});
  Forged large(1, 1 << 20);
  for (std::uint64_t i = 0; i < 20; ++i)
    large.add_rows(i, 0, 1);
  large.header.add_chunks(0);
  large.set_items({{.chunk = 0, .begin = 0, .rows = 1}});
  CHECK(large.decode(decoder) == Result::garbage);
  CHECK_NE(large.why.find("opens chunks of"), std::string::npos);
  CHECK_EQ(decoder.held_bytes(), 0);
  for (std::uint64_t writer = 0; writer < 500; ++writer) {
    Forged forged(writer, 10'000);
    for (std::uint64_t i = 0; i < 5; ++i)
      forged.add_rows(i, 0, 1);
    forged.header.add_chunks(0);
    forged.set_items({{.chunk = 0, .begin = 0, .rows = 1}});
    REQUIRE(forged.decode(decoder) == Result::insertion);
    forged.insertion.reset(); // as if its items had left the table
    REQUIRE_LE(decoder.held_bytes(), 17 * kMiB);
  }
  // A writer that the decoder has forgotten is asked to send its rows again.
  Forged later(0, 10'000);
  later.header.set_complete(false);
  later.add_rows(4, 1, 1);
  later.header.add_chunks(3);
  later.set_items({{.chunk = 0, .begin = 0, .rows = 1}});
  CHECK(later.decode(decoder) == Result::missing);
}

TEST_CASE(
    "Repeated rows of one chunk are refused because the memory between them is uninitialised") {
  InsertionDecoder decoder(kNumbers, {.max_chunk_bytes = kMiB, .max_writers = 8});
  Forged forged(3, 100);
  forged.add_rows(0, 0, 5);
  forged.add_rows(0, 50, 5);
  forged.header.add_chunks(0);
  forged.set_items({{.chunk = 0, .begin = 0, .rows = 55}});
  CHECK(forged.decode(decoder) == Result::garbage);
  CHECK_EQ(forged.why, "rows of one chunk twice");
}

TEST_CASE("Items keep their chunks if an insertion that was lost arrives after a later one") {
  InsertionDecoder decoder(kNumbers, {.max_chunk_bytes = kMiB, .max_writers = 8});
  Table table({.max_items = 3}, kNumbers, 1);
  const auto insert = [&](Forged& forged, std::uint64_t sequence, const ItemRecord& item) {
    forged.header.set_sequence(sequence);
    forged.header.add_chunks(0);
    forged.header.add_chunks(1);
    forged.set_items({item});
    REQUIRE(forged.decode(decoder) == Result::insertion);
    table.insert(*forged.insertion);
  };
  const auto check = [&](std::uint64_t key, const Forged& from) {
    const Item item = table.item(key);
    const Item& sent = from.insertion->items[0];
    REQUIRE_EQ(item.chunks.size(), sent.chunks.size());
    for (std::size_t i = 0; i < item.chunks.size(); ++i)
      REQUIRE(item.chunks[i] == sent.chunks[i]);
  };
  Forged first(7, 8);
  first.add_rows(0, 0, 8);
  first.add_rows(1, 0, 2);
  insert(first, 1, {.chunk = 0, .begin = 6, .rows = 4});
  Forged third(7, 8);
  third.add_rows(1, 6, 2); // after a gap
  insert(third, 3, {.chunk = 1, .begin = 6, .rows = 2});
  Forged second(7, 8);
  second.add_rows(0, 7, 1);
  second.add_rows(1, 0, 3);
  insert(second, 2, {.chunk = 0, .begin = 7, .rows = 4});
  check(0, first);
  check(1, third);
  check(2, second);
  Forged other(8, 8);
  other.add_rows(0, 0, 1);
  insert(other, 1, {.chunk = 0, .begin = 0, .rows = 1}); // removes the oldest item
  CHECK_FALSE(table.contains(0));
  check(1, third);
  check(2, second);
}

TEST_CASE("Items that together span too many chunks are refused") {
  InsertionDecoder decoder(kNumbers, {.max_chunk_bytes = kMiB, .max_writers = 8});
  Forged forged(3, 1);
  for (std::uint64_t i = 0; i < 512; ++i)
    forged.add_rows(i, 0, 1);
  forged.header.add_chunks(0);
  forged.set_items(std::vector<ItemRecord>(65536, {.chunk = 0, .begin = 0, .rows = 512}));
  CHECK(forged.decode(decoder) == Result::garbage);
  CHECK_EQ(decoder.held_bytes(), 0);
  forged.set_items(std::vector<ItemRecord>(500, {.chunk = 0, .begin = 0, .rows = 512}));
  CHECK(forged.decode(decoder) == Result::insertion);
}

TEST_CASE("A shape is checked once and has a bounded number of slices") {
  InsertionDecoder decoder(kNumbers, {.max_chunk_bytes = kMiB, .max_writers = 8});
  Forged forged(3, 10);
  forged.add_rows(0, 0, 10);
  forged.header.add_chunks(0);
  forged.add_shape({{std::vector<Slice>(520'000)}});
  forged.set_items(std::vector<ItemRecord>(65536, {.chunk = 0, .begin = 0, .rows = 1, .shape = 1}));
  CHECK(forged.decode(decoder) == Result::garbage);
  CHECK_EQ(forged.why, "items of a shape that the columns do not have");
  // As many slices as allowed, for as many items as allowed; they are compared with the table's
  // shapes only once.
  std::vector<Slice> slices(kMostSlices, {.first = 2, .count = 0});
  slices.back() = {.first = 2, .count = 3};
  forged.header.clear_shapes();
  forged.add_shape({{slices}});
  CHECK(forged.decode(decoder) == Result::garbage); // the shape needs more than one row
  forged.set_items(std::vector<ItemRecord>(65536, {.chunk = 0, .begin = 0, .rows = 5, .shape = 1}));
  REQUIRE(forged.decode(decoder) == Result::insertion);
  Table table({.max_items = 100'000, .limiter = {.minimum_items = 1}}, kNumbers, 1);
  table.insert(*forged.insertion);
  CHECK_EQ(table.stats().items, 65536);
}

TEST_CASE(
    "An insertion too large for a message is refused where it is encoded, with an explanation") {
  Writer writer(kNumbers, 3, {.chunk_rows = 65536, .reach = 4'000'000});
  for (int i = 0; i < 2'200'000; ++i) {
    writer.next(0);
    writer.append();
  }
  writer.add_item(writer.rows() - 1, 1, 0, nullptr, 1);
  const InsertionPtr insertion = writer.take();
  CHECK_THROWS_WITH_AS(encode_insertion(*insertion, 17, false),
                       doctest::Contains("take() items from the writer more often"),
                       std::invalid_argument);
}

TEST_CASE("The first dropped message of a kind is logged at once, and later ones once a minute") {
  DroppedKinds drops;
  const DroppedKinds::Time begin{};
  CHECK_EQ(drops.note("a", begin), 1);
  for (int i = 0; i < 1000; ++i)
    CHECK_EQ(drops.note("a", begin + std::chrono::seconds(1)), 0);
  CHECK_EQ(drops.note("b", begin + std::chrono::seconds(1)), 1);
  CHECK_EQ(drops.note("a", begin + std::chrono::seconds(60)), 1001);
  CHECK_EQ(drops.note("a", begin + std::chrono::seconds(61)), 0);
  std::int64_t told = 0;
  for (int i = 0; i < 10'000; ++i) // ever new shapes
    told += drops.note("kind " + std::to_string(i), begin + std::chrono::seconds(62)) > 0 ? 1 : 0;
  CHECK_LE(told, 64);
}

} // namespace
} // namespace troupe::replay
