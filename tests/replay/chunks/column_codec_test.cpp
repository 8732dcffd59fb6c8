#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "replay/chunks/column_codec.hpp"
#include "tests/allocation_counter.hpp"

using namespace troupe;
using namespace troupe::replay;

namespace {

enum class Content { random, smooth, constant, sparse };

constexpr Content kContents[] = {Content::random, Content::smooth, Content::constant,
                                 Content::sparse};
constexpr Compression kChoices[] = {Compression::none, Compression::packed, Compression::lz4,
                                    Compression::zstd, Compression::automatic};

/// Rows with a gap after each, which must not be read as part of a row.
struct Rows {
  Rows(const ColumnShape& column, std::size_t count, std::size_t gap, Content content,
       unsigned seed)
      : shape(column),
        stride(column.row_bytes + gap),
        bytes(count * stride, std::byte{0xee}),
        view{bytes.data(), stride, count} {
    std::mt19937 random(seed);
    for (std::size_t row = 0; row < count; ++row)
      for (std::size_t i = 0; i < shape.row_bytes; ++i)
        bytes[row * stride + i] = value(content, row, i, random);
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  static std::byte value(Content content, std::size_t row, std::size_t i, std::mt19937& random) {
    switch (content) {
    case Content::random:
      return static_cast<std::byte>(random());
    case Content::smooth:
      return static_cast<std::byte>(i / 16 + row + random() % 8 / 7);
    case Content::constant:
      return std::byte{7};
    default:
      return static_cast<std::byte>(random() % 50 == 0 ? random() : i % 97);
    }
  }

  bool row_equals(std::size_t row, const std::byte* other) const {
    return shape.row_bytes == 0 || std::memcmp(&bytes[row * stride], other, shape.row_bytes) == 0;
  }

  ColumnShape shape;
  std::size_t stride;
  std::vector<std::byte> bytes;
  ColumnRows view;
};

std::vector<ColumnShape> shapes() {
  return {{.element_bytes = 1, .row_bytes = 1},
          {.element_bytes = 4, .row_bytes = 4},
          {.element_bytes = 4, .row_bytes = 24 * 4},
          {.element_bytes = 8, .row_bytes = 5 * 8},
          {.element_bytes = 2, .row_bytes = 6002},
          {.element_bytes = 4, .row_bytes = 4096 * 5},
          {.element_bytes = 1, .row_bytes = 0},
          {.element_bytes = 1, .row_bytes = 3 * 9 * 7, .line_bytes = 7, .plane_bytes = 63},
          {.element_bytes = 1, .row_bytes = 64 * 65, .line_bytes = 65, .plane_bytes = 64 * 65},
          {.element_bytes = 1, .row_bytes = 5 * 30 * 31, .line_bytes = 31, .plane_bytes = 30 * 31},
          {.element_bytes = 1, .row_bytes = 5000 * 2, .line_bytes = 5, .plane_bytes = 10},
          {.element_bytes = 1, .row_bytes = 3 * 84 * 84, .line_bytes = 84, .plane_bytes = 84 * 84}};
}

EncodedColumn encoded(const ColumnShape& shape, const ColumnRows& rows, Compression wanted,
                      CodecScratch& scratch) {
  return EncodedColumn::encode(shape, rows, plan_column(shape, rows, wanted, scratch), scratch);
}

/// Checks decode() of a window: it gives the rows and leaves the gaps between them unchanged.
void check_window(const EncodedColumn& column, const Rows& rows, std::size_t first,
                  std::size_t count, CodecScratch& scratch) {
  const std::size_t stride = rows.shape.row_bytes + 3;
  std::vector<std::byte> out(count * stride, std::byte{0x55});
  column.decode(first, count, out.data(), stride, scratch);
  for (std::size_t k = 0; k < count; ++k) {
    REQUIRE(rows.row_equals(first + k, &out[k * stride]));
    for (std::size_t gap = rows.shape.row_bytes; gap < stride; ++gap)
      REQUIRE(out[k * stride + gap] == std::byte{0x55});
  }
}

} // namespace

TEST_CASE("Rows of any shape, stride, count and content are decoded from any window with any "
          "compression") {
  CodecScratch scratch;
  std::mt19937 random(1);
  for (const ColumnShape& shape : shapes())
    for (const std::size_t count : {0, 1, 2, 5, 16, 50})
      for (const Content content : kContents)
        for (const Compression choice : kChoices) {
          CAPTURE(shape.row_bytes);
          CAPTURE(count);
          CAPTURE(static_cast<int>(content));
          CAPTURE(static_cast<int>(choice));
          const Rows rows(shape, count, random() % 2 * 13, content, random());
          const auto column = encoded(shape, rows.view, choice, scratch);
          REQUIRE(column.rows() == count);
          REQUIRE(column.serialized().size() <= 32 + count * shape.row_bytes);
          check_window(column, rows, 0, count, scratch);
          for (int window = 0; window < 4 && count > 0; ++window) {
            const std::size_t first = random() % count;
            check_window(column, rows, first, random() % (count - first + 1), scratch);
          }
        }
}

TEST_CASE("Any combination of delta and shuffle is decoded correctly") {
  CodecScratch scratch;
  for (const ColumnShape& shape : shapes())
    for (const Compression compression : {Compression::packed, Compression::lz4, Compression::zstd})
      for (const bool delta : {false, true})
        for (const bool shuffle : {false, true}) {
          if (shuffle && shape.element_bytes == 1)
            continue;
          const Rows rows(shape, 37, 5, Content::smooth, 3);
          const auto column = EncodedColumn::encode(
              shape, rows.view, ColumnPlan{compression, delta, shuffle}, scratch);
          check_window(column, rows, 0, 37, scratch);
          check_window(column, rows, 30, 6, scratch);
        }
}

TEST_CASE("A parsed column decodes to the same rows and serializes to the same bytes") {
  CodecScratch scratch;
  for (const ColumnShape& shape : shapes())
    for (const Compression choice : kChoices) {
      const Rows rows(shape, 20, 0, Content::sparse, 9);
      const auto column = encoded(shape, rows.view, choice, scratch);
      const auto parsed = EncodedColumn::parse(column.serialized(), shape, 20);
      REQUIRE(parsed.rows() == 20);
      REQUIRE(parsed.compression() == column.compression());
      REQUIRE(parsed.bytes() == column.bytes());
      REQUIRE(std::ranges::equal(parsed.serialized(), column.serialized()));
      check_window(parsed, rows, 0, 20, scratch);
      check_window(parsed, rows, 11, 6, scratch);
    }
}

TEST_CASE("Automatic compression leaves noise alone and shrinks repeated content") {
  CodecScratch scratch;
  for (const ColumnShape& shape : shapes()) {
    if (shape.row_bytes < 64)
      continue;
    const Rows noise(shape, 32, 0, Content::random, 1);
    CHECK(plan_column(shape, noise.view, Compression::automatic, scratch) == ColumnPlan{});
    const Rows constant(shape, 32, 0, Content::constant, 1);
    const auto column = encoded(shape, constant.view, Compression::automatic, scratch);
    CHECK(column.compression() != Compression::none);
    CHECK(column.serialized().size() * 10 < 32 * shape.row_bytes);
    CHECK(plan_column(shape, constant.view, Compression::none, scratch) == ColumnPlan{});
  }
}

TEST_CASE("A picture that hardly changes costs a small fraction of one that does") {
  CodecScratch scratch;
  const ColumnShape shape = shapes().back();
  Rows rows(shape, 32, 0, Content::random, 4);
  for (std::size_t row = 1; row < 32; ++row) { // a noisy picture; one byte changes per row
    std::memcpy(&rows.bytes[row * rows.stride], rows.bytes.data(), shape.row_bytes);
    rows.bytes[row * rows.stride + row * 600] = std::byte{1};
  }
  const auto column = encoded(shape, rows.view, Compression::zstd, scratch);
  CHECK(column.serialized().size() < 3 * shape.row_bytes); // it has two key rows
  check_window(column, rows, 13, 6, scratch);
}

TEST_CASE("Pictures that brighten evenly pack into a few bits per pixel without a compressor") {
  CodecScratch scratch;
  const ColumnShape shape = shapes().back();
  Rows rows(shape, 16, 0, Content::random, 4);
  for (std::size_t row = 1; row < 16; ++row)
    for (std::size_t i = 0; i < shape.row_bytes; ++i)
      rows.bytes[row * rows.stride + i] =
          static_cast<std::byte>(std::to_integer<unsigned>(rows.bytes[i]) + row);
  const auto column = encoded(shape, rows.view, Compression::packed, scratch);
  REQUIRE(column.compression() == Compression::packed);
  CHECK(column.serialized().size() < (1 + 15 * .15) * 21168 * 1.05);
  check_window(column, rows, 2, 6, scratch);
}

TEST_CASE("Slowly drifting float32 states shrink by delta or shuffle") {
  CodecScratch scratch;
  const ColumnShape shape{.element_bytes = 4, .row_bytes = 24 * 4};
  Rows rows(shape, 50, 0, Content::constant, 1);
  for (std::size_t row = 0; row < 50; ++row)
    for (std::size_t i = 0; i < 24; ++i) {
      const float value = 1.5F + static_cast<float>(row * (i + 1)) / 1024;
      std::memcpy(&rows.bytes[row * rows.stride + i * 4], &value, sizeof value);
    }
  const ColumnPlan plan = plan_column(shape, rows.view, Compression::zstd, scratch);
  CHECK((plan.delta || plan.shuffle));
  const auto column = EncodedColumn::encode(shape, rows.view, plan, scratch);
  CHECK(column.serialized().size() * 2 < 50 * shape.row_bytes);
}

TEST_CASE("Counts and windows out of range are refused") {
  CodecScratch scratch;
  CHECK_THROWS_WITH_AS(
      encoded({.row_bytes = 0}, {.count = kMostColumnRows + 1}, Compression::zstd, scratch),
      doctest::Contains("1048577 rows"), std::invalid_argument);
  const std::vector<std::byte> bytes(100);
  const auto column = encoded({.row_bytes = 10}, {.first = bytes.data(), .stride = 10, .count = 9},
                              Compression::zstd, scratch);
  std::vector<std::byte> out(100);
  CHECK_THROWS_AS(column.decode(8, 2, out.data(), 10, scratch), std::out_of_range);
  CHECK_THROWS_AS(column.decode(10, 0, out.data(), 10, scratch), std::out_of_range);
  CHECK_THROWS_AS(column.decode(1, SIZE_MAX, out.data(), 10, scratch), std::out_of_range);
}

TEST_CASE("Bytes with another shape, version or number of rows are refused") {
  CodecScratch scratch;
  const ColumnShape shape{.element_bytes = 4, .row_bytes = 400};
  const Rows rows(shape, 20, 0, Content::smooth, 1);
  const auto column = encoded(shape, rows.view, Compression::zstd, scratch);
  CHECK_THROWS_AS(EncodedColumn::parse(column.serialized(), {.row_bytes = 400}, 20),
                  std::runtime_error);
  CHECK_THROWS_AS(EncodedColumn::parse(column.serialized(), shape, 19), std::runtime_error);
  std::vector<std::byte> bytes(column.serialized().begin(), column.serialized().end());
  bytes[4] = std::byte{9};
  CHECK_THROWS_WITH_AS(EncodedColumn::parse(bytes, shape, 20), doctest::Contains("format 9"),
                       std::runtime_error);
}

TEST_CASE("Decoding with a used scratch buffer allocates nothing") {
  if (!counts_allocations())
    return;
  CodecScratch scratch;
  for (const ColumnShape& shape : shapes())
    for (const Compression choice : kChoices) {
      const Rows rows(shape, 40, 0, Content::smooth, 2);
      const auto column = encoded(shape, rows.view, choice, scratch);
      std::vector<std::byte> out(6 * shape.row_bytes + 1);
      column.decode(5, 6, out.data(), shape.row_bytes, scratch);
      CHECK(allocations_of([&] {
              for (std::size_t first = 0; first + 6 <= 40; ++first)
                column.decode(first, 6, out.data(), shape.row_bytes, scratch);
            })
            == 0);
    }
}

TEST_CASE("Several threads decode one column concurrently") {
  CodecScratch scratch;
  const ColumnShape shape = shapes().back();
  const Rows rows(shape, 40, 0, Content::smooth, 8);
  const auto column = encoded(shape, rows.view, Compression::automatic, scratch);
  std::vector<int> right(4);
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < right.size(); ++t)
    threads.emplace_back([&, t] {
      CodecScratch own;
      std::vector<std::byte> out(6 * shape.row_bytes);
      for (std::size_t first = t; first + 6 <= 40; ++first) {
        column.decode(first, 6, out.data(), shape.row_bytes, own);
        right[t] += rows.row_equals(first + 5, &out[5 * shape.row_bytes]) ? 1 : 0;
      }
    });
  threads.clear();
  for (std::size_t t = 0; t < right.size(); ++t)
    CHECK(right[t] == 35 - static_cast<int>(t));
}
