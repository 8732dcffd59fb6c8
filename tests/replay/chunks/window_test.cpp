#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "replay/chunks/window_reader.hpp"
#include "replay/replay.pb.h"
#include "replay/service/insertion_decoder.hpp"
#include "replay/service/wire_format.hpp"
#include "replay/storage/checkpoint_reader.hpp"
#include "replay/table/table.hpp"
#include "replay/writers/writer.hpp"
#include "tests/replay/table/saved_table.hpp"
#include "tests/replay/windows.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::replay {
namespace {

/// Whether every row of the window has the content that belongs to its number.
bool right(const Item& item) {
  WindowReader window;
  window.open(item);
  const RowLayout& layout = item.chunks[0]->layout();
  std::int64_t first = 0;
  std::memcpy(&first, window.row(0) + layout.columns[2].offset, sizeof first);
  for (std::uint32_t k = 0; k < item.rows; ++k)
    for (std::size_t column = 0; column < layout.columns.size(); ++column)
      for (std::size_t byte = 0; column != 2 && byte < layout.columns[column].bytes; ++byte)
        if (window.row(k)[layout.columns[column].offset + byte] != content(first + k, column, byte))
          return false;
  return true;
}

TEST_CASE("Windows of any length over any number of chunks keep their rows while other items are "
          "removed") {
  for (const SelectorKind remover : {SelectorKind::fifo, SelectorKind::uniform, SelectorKind::lifo})
    for (const int chunk_rows : {1, 3, 16})
      for (const Compression compression :
           {Compression::none, Compression::zstd, Compression::automatic}) {
        CAPTURE(std::string(selector_name(remover)));
        CAPTURE(chunk_rows);
        CAPTURE(std::string(compression_name(compression)));
        WindowSource source(1, chunk_rows, 40, 5);
        Table table({.max_items = 50, .remover = {.kind = remover}, .compression = compression},
                    kSignature, 3);
        std::vector<Item> items;
        std::int64_t most_encoded = 0;
        for (int i = 0; i < 600; ++i) {
          table.insert(*source.next(1 + i % 4, 1 + i % 3));
          table.sample(5, items);
          for (const Item& item : items)
            REQUIRE(right(item));
          items.clear(); // chunks still in use cannot be encoded
          most_encoded = std::max(most_encoded, table.stats().encoded_chunks);
        }
        CHECK_EQ(most_encoded > 0, compression != Compression::none);
      }
}

TEST_CASE("A chunk is kept while any window uses it and is counted once") {
  WindowSource source(1, 4, 40, 5);
  const auto chunk =
      static_cast<std::int64_t>(Chunk(std::make_shared<const RowLayout>(kSignature), 0, 4).bytes());
  Table table({.max_items = 1}, kSignature, 3);
  for (int i = 0; i < 40; ++i)
    source.step();
  source.writer.add_item(0, 40);
  source.writer.add_item(8, 4);
  source.writer.add_item(9, 4);
  const Insertion all = *source.writer.take();
  for (std::size_t i = 0; i < 3; ++i) {
    Insertion one = all;
    one.sequence = i + 1;
    one.items = {all.items[i]};
    table.insert(one);
    CHECK_EQ(table.stats().bytes, chunk * std::vector<int>{10, 1, 2}[i]);
  }
}

TEST_CASE("A saved table of long windows is loaded completely, and a damaged one or another "
          "signature is refused") {
  const TemporaryFolder folder;
  const std::string path = (folder / "table").string();
  WindowSource source(1, 3, 30, 5);
  const TableConfig config{.max_items = 60, .remover = {.kind = SelectorKind::uniform}};
  Table table(config, kSignature, 3);
  for (int i = 0; i < 200; ++i)
    table.insert(*source.next(2, 1));
  save(table, path);
  Table restored(config, kSignature, 9);
  restored.load(path);
  CHECK(restored.stats() == table.stats());
  std::vector<Item> items;
  std::vector<Item> same;
  for (int i = 0; i < 50; ++i) {
    table.sample(20, items);
    restored.sample(20, same);
    for (std::size_t k = 0; k < items.size(); ++k) {
      REQUIRE_EQ(items[k].key, same[k].key);
      REQUIRE_EQ(items[k].rows, same[k].rows);
      REQUIRE_EQ(items[k].history, same[k].history);
      REQUIRE(bool(items[k].shape) == bool(same[k].shape));
      REQUIRE((!items[k].shape || *items[k].shape == *same[k].shape));
      REQUIRE(right(same[k]));
    }
    const InsertionPtr more = source.next(1, 1);
    table.insert(*more);
    restored.insert(*more);
  }
  const TableStats before = restored.stats();
  const CheckpointReader saved(path);
  for (const CheckpointBlob& blob : saved.blobs()) {
    const std::filesystem::path segment = saved.segments()[blob.segment]->path();
    const std::string whole = read_text(segment);
    std::string damaged = whole;
    damaged.at(blob.place.offset) ^= '\1';
    write_bytes(segment, damaged);
    CHECK_THROWS_WITH_AS(restored.load(path), doctest::Contains("is damaged"), std::runtime_error);
    write_bytes(segment, whole);
  }
  CHECK(restored.stats() == before);
  Signature other = kSignature;
  other.columns[1].shape = {3};
  Table wrong(config, other, 1);
  CHECK_THROWS_WITH_AS(wrong.load(path),
                       doctest::Contains("column 1: expected state float64 [3], got state"),
                       std::runtime_error);
}

TEST_CASE("A writer's state restores its newest rows and its items of any shape") {
  WindowSource source(1, 5, 23, 5);
  source.next(100, 1);
  for (int i = 0; i < 12; ++i) {
    source.step();
    source.add_item();
  }
  std::vector<std::byte> state;
  source.writer.save_state(state);
  WindowSource other(2, 5, 23, 6);
  other.step();
  CHECK(other.writer.load_state(state).empty());
  other.row = source.row;
  other.random = source.random;
  for (WindowSource* one : {&source, &other})
    for (int i = 0; i < 5; ++i) {
      one->step();
      one->add_item();
    }
  const InsertionPtr a = source.writer.take();
  const InsertionPtr b = other.writer.take();
  CHECK_EQ(a->writer_id, b->writer_id);
  CHECK_EQ(a->sequence, b->sequence);
  REQUIRE_EQ(a->items.size(), b->items.size());
  for (std::size_t i = 0; i < a->items.size(); ++i) {
    CHECK_EQ(a->items[i].key, b->items[i].key);
    CHECK_EQ(a->items[i].rows, b->items[i].rows);
    CHECK_EQ(a->items[i].priority, b->items[i].priority);
    CHECK(right(a->items[i]));
    CHECK(right(b->items[i]));
    CHECK_EQ(std::memcmp(a->items[i].row(0), b->items[i].row(0),
                         a->items[i].chunks[0]->layout().row_bytes),
             0);
  }
  for (std::size_t length = 0; length < state.size(); length += 7)
    CHECK_THROWS_AS(other.writer.load_state(std::span(state).first(length)), std::runtime_error);
}

TEST_CASE("The newest rows stay accessible while the next row is written") {
  for (const int chunk_rows : {1, 2, 3}) {
    WindowSource source(1, chunk_rows, 3, 5);
    for (int rows = 0; rows < 20; ++rows) {
      const std::int64_t kept = source.writer.kept_rows();
      source.writer.next(0);
      std::vector<std::byte> state;
      source.writer.save_state(state);
      CHECK(WindowSource(2, chunk_rows, 3, 5).writer.load_state(state).empty());
      if (kept > 0) {
        std::int64_t number = 0;
        std::memcpy(&number, source.writer.at(source.writer.rows() - kept, 2).data(), 8);
        CHECK_EQ(number, source.row - kept);
        source.writer.add_item(source.writer.rows() - kept, kept);
        CHECK(right(source.writer.take()->items[0]));
        CHECK_THROWS_AS(source.writer.rewrite(source.writer.rows() - 1, 0), std::out_of_range);
      }
      CHECK_THROWS_AS(source.writer.at(source.writer.rows() - kept - 1, 0), std::out_of_range);
      CHECK_THROWS_AS(source.writer.at(source.writer.rows(), 0), std::out_of_range);
      source.step();
    }
  }
}

TEST_CASE("Windows over many chunks are transmitted, and are resent completely after a loss") {
  WindowSource source(1, 4, 60, 5);
  const InsertionDecoder::Limits limits{.max_chunk_bytes = 1 << 20, .max_writers = 4};
  InsertionDecoder decoder(kSignature, limits);
  std::mt19937_64 random(3);
  int resent = 0;
  for (int i = 0; i < 300; ++i) {
    const InsertionPtr made = source.next(1 + i % 5, 2);
    if (random() % 10 == 0)
      continue; // the message is lost
    InsertionPtr got;
    const auto decode = [&](bool complete) {
      const auto message = encode_insertion(*made, 7, complete);
      std::string why;
      const auto head = decode_envelope(message.header, why);
      REQUIRE(head);
      return decoder.decode(head->insert(), message.frames, got, why);
    };
    InsertionDecoder::Result result = decode(false);
    if (result == InsertionDecoder::Result::missing) {
      ++resent;
      result = decode(true);
    }
    REQUIRE(result == InsertionDecoder::Result::insertion);
    REQUIRE_EQ(got->items.size(), made->items.size());
    for (std::size_t k = 0; k < got->items.size(); ++k) {
      REQUIRE(right(got->items[k]));
      REQUIRE_EQ(got->items[k].rows, made->items[k].rows);
      REQUIRE_EQ(got->items[k].priority, made->items[k].priority);
      REQUIRE(bool(got->items[k].shape) == bool(made->items[k].shape));
    }
  }
  CHECK_GT(resent, 10);
}

TEST_CASE("A sample sends only the rows of each column that its items show") {
  WindowSource source(1, 4, 30, 5);
  const InsertionPtr made = source.next(50, 40);
  const RowLayout layout(kSignature);
  const auto message = encode_sample(layout, 7, 1, 0, made->items,
                                     [](std::size_t bytes) { return env::wire::Frame(bytes); });
  REQUIRE_EQ(message.frames.size(), 1 + layout.columns.size());
  for (std::size_t column = 0; column < layout.columns.size(); ++column) {
    const std::span<const std::byte> got = message.frames[column + 1].bytes();
    std::size_t at = 0;
    for (const Item& item : made->items) {
      const std::vector<Slice> all{{0, item.rows}};
      for (const Slice& slice : item.shape ? item.shape->columns[column] : all)
        for (std::uint32_t k = 0; k < slice.count; ++k, at += layout.columns[column].bytes) {
          REQUIRE_LE(at + layout.columns[column].bytes, got.size());
          REQUIRE_EQ(std::memcmp(got.data() + at,
                                 item.row(slice.first + k) + layout.columns[column].offset,
                                 layout.columns[column].bytes),
                     0);
        }
    }
    CHECK_EQ(at, got.size());
  }
}

TEST_CASE("Names that are not UTF-8 are refused because no message could carry them") {
  for (const std::string& fine : {std::string("x"), std::string("é€𝄞"), std::string("\0x", 2)}) {
    CHECK(is_utf8(fine));
    check(Signature{.columns = {{fine, env::ElementType::float32, {}}}, .items = ""});
  }
  for (const std::string& bad :
       {std::string("x\xff"), std::string("\xc3"), std::string("\x80"), std::string("\xc0\x80"),
        std::string("\xe0\x80\x80"), std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80"),
        std::string("\xf0\x9d\x84"), std::string("\xf8\x88\x80\x80\x80")}) {
    CHECK_FALSE(is_utf8(bad));
    CHECK_THROWS_WITH_AS(
        check(Signature{.columns = {{bad, env::ElementType::float32, {}}}, .items = ""}),
        doctest::Contains("UTF-8"), std::invalid_argument);
  }
}

TEST_CASE("A mismatched signature is refused with the expected and actual column, and invalid "
          "items are refused") {
  Table table({}, kSignature, 1);
  Signature other = kSignature;
  other.columns[3].type = env::ElementType::float64;
  Writer writer(other, 1);
  writer.append();
  writer.add_item(0, 1);
  CHECK_THROWS_WITH_AS(
      table.insert(*writer.take()),
      doctest::Contains("column 3: expected reward float32 [], got reward float64 []"),
      std::invalid_argument);
  CHECK_EQ(table.stats().items, 0);
  CHECK_EQ(difference(kSignature, kSignature), "");
  Signature fewer = kSignature;
  fewer.columns.pop_back();
  CHECK_EQ(difference(kSignature, fewer), "column 3: expected reward float32 [], got nothing");

  Writer fine(kSignature, 1, {.reach = 4});
  for (int i = 0; i < 10; ++i)
    fine.append();
  CHECK_THROWS_AS(fine.add_item(5, 2), std::invalid_argument);    // beyond its reach
  CHECK_THROWS_AS(fine.add_item(8, 3), std::invalid_argument);    // not written yet
  CHECK_THROWS_AS(fine.add_item(8, 0), std::invalid_argument);    // no rows
  CHECK_THROWS_AS(fine.add_item(8, 2, 2), std::invalid_argument); // nothing but history
  CHECK_THROWS_AS(fine.add_item(6, 4, 0, std::make_shared<const ItemShape>()),
                  std::invalid_argument);
  const ItemShape outside{{{{0, 5}}, {}, {}, {}}};
  CHECK_THROWS_AS(fine.add_item(6, 4, 0, std::make_shared<const ItemShape>(outside)),
                  std::invalid_argument);
  fine.add_item(6, 4);
  CHECK_EQ(fine.pending_items(), 1);

  const auto refused = [](Signature signature, const char* words) {
    CHECK_THROWS_WITH_AS(Writer(signature, 1), doctest::Contains(words), std::invalid_argument);
  };
  refused({}, "must have 1 to 256");
  refused({.columns = {{"a", env::ElementType::uint8, {0}}}, .items = ""}, "extent of 0");
  refused({.columns = {{"a", env::ElementType::uint8, {1}}, {"a", env::ElementType::uint8, {1}}},
           .items = ""},
          "exists twice");
  refused({.columns = {{"", env::ElementType::uint8, {1}}}, .items = ""}, "name of 0");
  refused({.columns = {{"a", env::ElementType::float64, {1 << 28}}}, .items = ""},
          "at most 256 MiB");
}

} // namespace
} // namespace troupe::replay
