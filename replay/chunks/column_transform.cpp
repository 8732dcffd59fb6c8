#include "replay/chunks/column_transform.hpp"

#include <cstring>
#include <vector>

namespace troupe::replay {

namespace {

using Byte = unsigned char; // arithmetic on it vectorises
const Byte* bytes_of(const std::byte* p) {
  return reinterpret_cast<const Byte*>(p);
}
Byte* bytes_of(std::byte* p) {
  return reinterpret_cast<Byte*>(p);
}

void add(Byte* __restrict to, const Byte* __restrict from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    to[i] = static_cast<Byte>(to[i] + from[i]);
}

void subtract(Byte* __restrict to, const Byte* __restrict from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    to[i] = static_cast<Byte>(to[i] - from[i]);
}

void shuffle(const Byte* from, Byte* to, std::size_t size, std::size_t element) {
  const std::size_t count = size / element;
  for (std::size_t k = 0; k < element; ++k)
    for (std::size_t i = 0; i < count; ++i)
      to[k * count + i] = from[i * element + k];
}

void unshuffle(const Byte* from, Byte* to, std::size_t size, std::size_t element) {
  const std::size_t count = size / element;
  for (std::size_t k = 0; k < element; ++k)
    for (std::size_t i = 0; i < count; ++i)
      to[i * element + k] = from[k * count + i];
}

} // namespace

void apply_transform(const ColumnShape& shape, std::uint8_t transform, const std::byte* before,
                     const std::byte* rows, std::size_t count, std::byte* out) {
  const std::size_t row = shape.row_bytes;
  const std::size_t size = row * count;
  Byte* to = bytes_of(out);
  if ((transform & kShuffle) != 0 && (transform & kTime) == 0) {
    shuffle(bytes_of(rows), to, size, shape.element_bytes);
    return;
  }
  std::memcpy(out, rows, size);
  if ((transform & kTime) != 0) {
    if (before != nullptr)
      subtract(to, bytes_of(before), row);
    for (std::size_t i = 1; i < count; ++i)
      subtract(to + i * row, bytes_of(rows) + (i - 1) * row, row);
  }
  if ((transform & kShuffle) != 0) { // the rows are small, so copying them is cheap
    const std::vector<Byte> copy(to, to + size);
    shuffle(copy.data(), to, size, shape.element_bytes);
  }
}

void undo_transform(const ColumnShape& shape, std::uint8_t transform, const std::byte* before,
                    std::byte* rows, std::size_t count, std::byte* spare) {
  const std::size_t row = shape.row_bytes;
  Byte* to = bytes_of(rows);
  if ((transform & kShuffle) != 0) {
    std::memcpy(spare, rows, row * count);
    unshuffle(bytes_of(spare), to, row * count, shape.element_bytes);
  }
  if ((transform & kTime) != 0)
    for (std::size_t i = before == nullptr ? 1 : 0; i < count; ++i)
      add(to + i * row, i == 0 ? bytes_of(before) : to + (i - 1) * row, row);
}

} // namespace troupe::replay
