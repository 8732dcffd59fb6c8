// libFuzzer target of encoded columns, which checkpoints and spilled chunks consist of. The first
// byte selects the shape of the rows, the second one the window that is decoded.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "replay/chunks/column_codec.hpp"
#include "tests/fuzz_seeds.hpp"

namespace {

using namespace troupe::replay;

// Numbers, rows that are blocks of their own, a small picture, and one that is packed.
constexpr ColumnShape kShapes[] = {
    {.element_bytes = 4, .row_bytes = 24},
    {.element_bytes = 8, .row_bytes = 8},
    {.element_bytes = 2, .row_bytes = 6002},
    {.element_bytes = 1, .row_bytes = 3 * 63, .line_bytes = 7, .plane_bytes = 63},
    {.element_bytes = 1, .row_bytes = 2 * 4096, .line_bytes = 64, .plane_bytes = 4096}};
constexpr std::size_t kMostRows = 40;
constexpr std::size_t kGapBytes = 3; // between rows; decode() must leave them unchanged
constexpr std::byte kGap{0x55};

std::vector<std::byte> decoded(const EncodedColumn& column, std::size_t first, std::size_t count) {
  static CodecScratch scratch;
  const std::size_t row_bytes = column.shape().row_bytes;
  std::vector<std::byte> out(count * (row_bytes + kGapBytes), kGap);
  column.decode(first, count, out.data(), row_bytes + kGapBytes, scratch);
  for (std::size_t at = row_bytes; at < out.size(); at += row_bytes + kGapBytes)
    for (std::size_t i = 0; i < kGapBytes; ++i)
      if (out[at + i] != kGap)
        __builtin_trap();
  return out;
}

bool accepts(std::span<const std::byte> bytes, const ColumnShape& shape, std::size_t window) {
  try {
    const auto column = EncodedColumn::parse(bytes, shape, kMostRows);
    if (column.rows() > kMostRows || !std::ranges::equal(column.serialized(), bytes))
      __builtin_trap();
    const std::size_t first = window % (column.rows() + 1);
    const std::size_t count = std::min(window / 16, column.rows() - first);
    const auto part = decoded(column, first, count);
    const auto whole = decoded(column, 0, column.rows());
    if (!std::ranges::equal(
            part, std::span(whole).subspan(first * (shape.row_bytes + kGapBytes), part.size())))
      __builtin_trap();
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  constexpr std::size_t kRows = 20;
  constexpr std::size_t kMostSeedBytes = 4000;
  std::vector<std::string> seeds;
  CodecScratch scratch;
  for (std::size_t kind = 0; kind < std::size(kShapes); ++kind) {
    const ColumnShape& shape = kShapes[kind];
    std::vector<std::byte> rows(kRows * shape.row_bytes);
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] = static_cast<std::byte>(i / shape.row_bytes + i % shape.row_bytes / 512);
    const ColumnRows view{.first = rows.data(), .stride = shape.row_bytes, .count = kRows};
    for (const auto compression :
         {Compression::none, Compression::packed, Compression::lz4, Compression::zstd})
      for (const bool transformed : {false, true}) {
        const auto column =
            EncodedColumn::encode(shape, view,
                                  ColumnPlan{.compression = compression,
                                             .delta = transformed,
                                             .shuffle = transformed && shape.element_bytes > 1},
                                  scratch);
        const auto bytes = column.serialized();
        if (bytes.size() <= kMostSeedBytes)
          seeds.push_back(std::string{static_cast<char>(kind), 4 * 16 + 2}.append(
              reinterpret_cast<const char*>(bytes.data()), bytes.size()));
      }
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2)
    return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(2);
  return troupe::fuzz_result(accepts(bytes, kShapes[data[0] % std::size(kShapes)], data[1]));
}
