#include "replay/service/wire_format.hpp"

#include <doctest/doctest.h>

#include "replay/chunks/window_reader.hpp"
#include "replay/service/insertion_decoder.hpp"
#include "tests/replay/windows.hpp"
#include "tests/replay/writers/episodes.hpp"
#include "tests/replay/writers/goal_episodes.hpp"

namespace troupe::replay {
namespace {

env::wire::Frame new_frame(std::size_t bytes) {
  return env::wire::Frame(bytes);
}

using env::wire::Frame;
using env::wire::Message;
using Result = InsertionDecoder::Result;

constexpr std::uint64_t kSpec = 17;
constexpr InsertionDecoder::Limits kLimits{.max_chunk_bytes = 1 << 20, .max_writers = 4};

wire::Envelope head_of(const Message& message) {
  std::string why;
  const auto head = decode_envelope(message.header, why);
  REQUIRE(head);
  return *head;
}

Result decode(InsertionDecoder& decoder, const Message& message, InsertionPtr& out) {
  std::string why;
  return decoder.decode(head_of(message).insert(), message.frames, out, why);
}

Batch gathered(const TransitionSpec& spec, const InsertionPtr& insertion) {
  Batch batch(spec, std::ssize(insertion->items));
  gather(spec, insertion->items, batch.view(), 0);
  return batch;
}

TEST_CASE("Insertions arrive unchanged in the receiver's own chunks") {
  const TransitionSpec spec = pixel_spec(3, 4);
  Source source(spec);
  InsertionDecoder decoder(spec, kLimits);
  for (int i = 0; i < 200; ++i) {
    const InsertionPtr sent = source.next(1 + i % 40);
    InsertionPtr got;
    REQUIRE(decode(decoder, encode_insertion(*sent, kSpec, false), got) == Result::insertion);
    CHECK_EQ(got->writer_id, sent->writer_id);
    CHECK_EQ(got->sequence, sent->sequence);
    CHECK(gathered(spec, got) == gathered(spec, sent));
    CHECK_NE(got->items[0].chunks[0], sent->items[0].chunks[0]);
    CHECK_EQ(got->items[0].chunks[0]->id(), sent->items[0].chunks[0]->id());
  }
}

TEST_CASE("A receiver requests missing rows, and a complete insertion depends on no earlier one") {
  const TransitionSpec spec = pixel_spec(3, 4);
  Source source(spec);
  std::mt19937_64 random(1);
  InsertionDecoder decoder(spec, kLimits);
  int missing = 0;
  for (int i = 0; i < 500; ++i) {
    const InsertionPtr sent = source.next(1 + static_cast<int>(random() % 4));
    if (random() % 3 == 0)
      continue; // lost on the way
    InsertionPtr got;
    Result result = decode(decoder, encode_insertion(*sent, kSpec, false), got);
    if (result == Result::missing) {
      ++missing;
      result = decode(decoder, encode_insertion(*sent, kSpec, true), got);
    }
    REQUIRE(result == Result::insertion);
    CHECK(gathered(spec, got) == gathered(spec, sent));
  }
  CHECK_GT(missing, 10);
}

TEST_CASE("Rows that are already present are not written again") {
  const TransitionSpec spec = pixel_spec(1, 1);
  Source source(spec);
  InsertionDecoder decoder(spec, kLimits);
  const InsertionPtr sent = source.next(3);
  InsertionPtr first;
  InsertionPtr second;
  REQUIRE(decode(decoder, encode_insertion(*sent, kSpec, false), first) == Result::insertion);
  const Batch before = gathered(spec, first);
  Message other = encode_insertion(*sent, kSpec, false);
  for (std::byte& b : other.frames[1].bytes())
    b = std::byte{0};
  REQUIRE(decode(decoder, other, second) == Result::insertion);
  CHECK(gathered(spec, first) == before);
}

TEST_CASE("Sampled batches arrive as gather() would write them") {
  for (const int stack : {1, 3, 4})
    for (const int n_step : {1, 2, 3, 8}) {
      CAPTURE(stack);
      CAPTURE(n_step);
      const TransitionSpec spec = pixel_spec(stack, n_step);
      Source source(spec);
      const InsertionPtr made = source.next(150);
      const std::span<const Item> items(made->items);
      Batch direct(spec, std::ssize(items));
      Batch sent(spec, std::ssize(items));
      gather(spec, items, direct.view(), 0);
      std::size_t first = 0;
      while (first < items.size()) {
        const std::size_t count = std::min<std::size_t>(37, items.size() - first);
        const Message message =
            encode_sample(RowLayout(spec), kSpec, 8, static_cast<std::int64_t>(first),
                          items.subspan(first, count), new_frame);
        const wire::Envelope head = head_of(message);
        REQUIRE(head.has_sample_part());
        REQUIRE(decode_sample(spec, RowLayout(spec), head.sample_part(), message.frames,
                              sent.view(), head.sample_part().first()));
        first += count;
      }
      CHECK(sent == direct);
    }
}

TEST_CASE("Parts have a size of about one mebibyte") {
  TransitionSpec spec = pixel_spec(3, 1);
  spec.frame.shape = {3, 84, 84};
  Writer writer = transition_writer(spec, 1);
  const std::vector<float> action(3);
  begin_episode(writer);
  for (int i = 0; i < 100; ++i)
    append_step(writer, action, 0, 1, false);
  const InsertionPtr made = writer.take();
  const std::size_t count = part_size(RowLayout(spec), made->items);
  CHECK_GE(count, 10);
  CHECK_LE(count * 4 * spec.frame.bytes(), std::size_t{1} << 21);
  CHECK_EQ(part_size(RowLayout(spec), std::span(made->items).first(1)), 1);
}

TEST_CASE("Another protocol and noise are distinguished") {
  std::string why;
  wire::Envelope head = envelope(kSpec);
  head.set_protocol(99);
  CHECK_FALSE(decode_envelope(head.SerializeAsString(), why));
  CHECK_EQ(why, "protocol 99 where this side speaks 6; run the same version on both");
  CHECK_FALSE(decode_envelope("\xff\xff\xff", why));
}

/// The rows of a column that an item shows, one after another.
std::vector<std::byte> shown(const Item& item, std::size_t column) {
  WindowReader window;
  window.open(item);
  const RowLayout::Column& at = item.chunks[0]->layout().columns[column];
  std::vector<std::byte> bytes;
  const std::vector<Slice> all{{0, item.rows}};
  for (const Slice& slice : item.shape ? item.shape->columns[column] : all)
    for (std::uint32_t k = slice.first; k < slice.first + slice.count; ++k)
      bytes.insert(bytes.end(), window.row(k) + at.offset, window.row(k) + at.offset + at.bytes);
  return bytes;
}

Message some_windows(WindowSource& source, InsertionPtr& made, int items) {
  made = source.next(7, items);
  return encode_sample(RowLayout(kSignature), kSpec, 8, 0, made->items, new_frame);
}

TEST_CASE("Items of any window and shape arrive as columns that point into the message") {
  WindowSource source(1, 5, 30, 4);
  for (int round = 0; round < 60; ++round) {
    InsertionPtr made;
    Message message = some_windows(source, made, 1 + round % 23);
    const wire::Envelope head = head_of(message);
    std::vector<const std::byte*> before;
    for (const Frame& frame : message.frames)
      before.push_back(frame.bytes().data());
    ColumnPart part;
    REQUIRE(
        decode_columns(RowLayout(kSignature), head.sample_part(), std::move(message.frames), part));
    REQUIRE_EQ(part.items.size(), made->items.size());
    for (std::size_t column = 0; column < kSignature.columns.size(); ++column) {
      if (part.columns[column].bytes.size() > 64) // smaller ones are in the frame itself
        CHECK_EQ(part.columns[column].bytes.data(), before[column + 1]);
      for (std::size_t i = 0; i < part.items.size(); ++i) {
        const std::span<const std::byte> got = part.rows(column, i);
        CHECK(std::vector<std::byte>(got.begin(), got.end()) == shown(made->items[i], column));
      }
    }
    for (std::size_t i = 0; i < part.items.size(); ++i) {
      CHECK_EQ(part.items[i].key, made->items[i].key);
      CHECK_EQ(part.items[i].rows, made->items[i].rows);
      CHECK_EQ(part.items[i].history, made->items[i].history);
      CHECK_EQ(part.items[i].priority, made->items[i].priority);
    }
  }
}

TEST_CASE("A message with fields of a later version is refused with the field's number") {
  std::string why;
  std::string later = envelope(kSpec).SerializeAsString();
  later += "\xf0\x07\x01"; // field 126, the number 1
  CHECK_FALSE(decode_envelope(later, why));
  CHECK(why.find("number 126") != std::string::npos);
  wire::Envelope head = envelope(kSpec);
  head.mutable_sample()->set_count(3);
  std::string inside = head.sample().SerializeAsString() + "\xf0\x07\x01";
  wire::Envelope other = envelope(kSpec);
  REQUIRE(other.mutable_sample()->ParseFromString(inside));
  CHECK_FALSE(decode_envelope(other.SerializeAsString(), why));
  CHECK(why.find("number 126") != std::string::npos);
}

TEST_CASE("Transitions with hindsight arrive as gather() would write them or are refused") {
  const TransitionSpec spec = goal_spec(3);
  Writer writer = hindsight_transition_writer(spec, 3, 5, line_goal());
  GoalPlayer player(9);
  for (int i = 0; i < 20; ++i)
    player.episode(writer);
  const InsertionPtr made = writer.take();
  Batch direct(spec, std::ssize(made->items));
  Batch sent(spec, std::ssize(made->items));
  gather(spec, made->items, direct.view(), 0);
  const Message message = encode_sample(RowLayout(spec), kSpec, 8, 0, made->items, new_frame);
  const wire::Envelope head = head_of(message);
  REQUIRE(decode_sample(spec, RowLayout(spec), head.sample_part(), message.frames, sent.view(), 0));
  CHECK(sent == direct);
  CHECK_FALSE(decode_sample(goal_spec(2), RowLayout(goal_spec(2)), head.sample_part(),
                            message.frames, sent.view(), 0));
}

TEST_CASE("A writer above the limit replaces the one silent for longest, and oversized chunks are "
          "refused") {
  const TransitionSpec spec = pixel_spec(1, 1);
  InsertionDecoder decoder(spec, kLimits);
  std::vector<Writer> writers;
  for (std::uint64_t id = 0; id < 6; ++id) {
    writers.push_back(transition_writer(spec, id, 12));
    begin_episode(writers.back());
  }
  const std::vector<float> action(3);
  InsertionPtr got;
  const auto insert = [&](std::size_t writer) { // its item needs the last row of the one before
    append_step(writers[writer], action, 0, 1, false);
    return decode(decoder, encode_insertion(*writers[writer].take(), kSpec, false), got);
  };
  for (const std::size_t writer : {0U, 1U, 2U, 3U, 0U, 4U, 5U}) // 4 replaces 1, then 5 replaces 2
    CHECK(insert(writer) == Result::insertion);
  for (const std::size_t writer : {1U, 2U})
    CHECK(insert(writer) == Result::missing);
  for (const std::size_t writer : {0U, 3U, 4U, 5U})
    CHECK(insert(writer) == Result::insertion);
  InsertionDecoder tight(spec, {.max_chunk_bytes = 100, .max_writers = 4});
  append_step(writers[0], action, 0, 1, false);
  CHECK(decode(tight, encode_insertion(*writers[0].take(), kSpec, true), got) == Result::garbage);
}

} // namespace
} // namespace troupe::replay
