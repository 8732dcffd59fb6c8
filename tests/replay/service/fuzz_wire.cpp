// libFuzzer target of what comes over a replay data port, either way: clang++ -std=c++20
// -fsanitize=fuzzer,address -I. -I<build>/generated tests/replay/service/fuzz_wire.cpp, and the
// libraries of troupe::replay. The first byte counts the frames; each part follows its length, two
// bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "replay/service/wire_format.hpp"

namespace {

using namespace troupe::replay;

const Signature kSignature{.columns = {{"picture", troupe::env::ElementType::uint8, {3, 5}},
                                       {"reward", troupe::env::ElementType::float32, {}}},
                           .items = "windows"};

std::span<const std::uint8_t> take(std::span<const std::uint8_t>& from) {
  if (from.size() < 2)
    return {};
  const std::size_t size =
      std::min<std::size_t>(from[0] + std::size_t{256} * from[1], from.size() - 2);
  const auto taken = from.subspan(2, size);
  from = from.subspan(2 + size);
  return taken;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  std::span<const std::uint8_t> left(data + 1, size - 1);
  const auto header = take(left);
  std::vector<troupe::env::wire::Frame> frames;
  for (int i = 0; i < data[0] % 8; ++i)
    frames.emplace_back(std::as_bytes(take(left)));
  std::string why;
  const auto head = decode_envelope(std::string(header.begin(), header.end()), std::nullopt, why);
  if (!head)
    return 0;
  if (head->has_insert()) {
    InsertionDecoder decoder(kSignature, {.max_chunk_bytes = 1 << 20, .max_writers = 4});
    InsertionPtr insertion;
    decoder.decode(head->insert(), frames, insertion, why);
    return 0;
  }
  ColumnPart part;
  if (!head->has_sample_part()
      || !decode_columns(RowLayout(kSignature), head->sample_part(), std::move(frames), part))
    return 0;
  for (std::size_t column = 0; column < kSignature.columns.size(); ++column)
    for (std::size_t i = 0; i < part.items.size(); ++i) {
      volatile std::byte last{};
      if (const auto rows = part.rows(column, i); !rows.empty())
        last = rows.back();
      (void)last;
    }
  return 0;
}
