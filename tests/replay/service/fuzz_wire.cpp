// libFuzzer target of the messages of a replay data port, in both directions. An input consists of
// several messages to one server. Each begins with a byte that is its number of frames; before each
// part comes its length in two bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "replay/service/insertion_decoder.hpp"
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

void decode_part(const wire::SamplePart& header, std::vector<troupe::env::wire::Frame> frames) {
  ColumnPart part;
  if (!decode_columns(RowLayout(kSignature), header, std::move(frames), part))
    return;
  for (std::size_t column = 0; column < kSignature.columns.size(); ++column)
    for (std::size_t i = 0; i < part.items.size(); ++i) {
      volatile std::byte last{};
      if (const auto rows = part.rows(column, i); !rows.empty())
        last = rows.back();
      (void)last;
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr InsertionDecoder::Limits kLimits{
      .max_chunk_bytes = 1 << 20, .max_writers = 4, .max_bytes = 4 << 20};
  InsertionDecoder decoder(kSignature, kLimits);
  std::span<const std::uint8_t> left(data, size);
  while (!left.empty()) {
    const int count = left[0] % 8;
    left = left.subspan(1);
    const auto header = take(left);
    std::vector<troupe::env::wire::Frame> frames;
    for (int i = 0; i < count; ++i)
      frames.emplace_back(std::as_bytes(take(left)));
    std::string why;
    const auto head = decode_envelope(std::string(header.begin(), header.end()), std::nullopt, why);
    if (head && head->has_insert()) {
      InsertionPtr insertion;
      decoder.decode(head->insert(), frames, insertion, why);
      insertion.reset();
      if (decoder.held_bytes() > 2 * kLimits.max_bytes)
        __builtin_trap();
    } else if (head && head->has_sample_part()) {
      decode_part(head->sample_part(), std::move(frames));
    }
  }
  return 0;
}
