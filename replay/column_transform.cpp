#include "replay/column_transform.hpp"

#include <algorithm>
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

/// Each part of `part` bytes minus the one before it, from the last to the first.
void differences(Byte* to, std::size_t size, std::size_t part) {
  for (std::size_t at = size - part; at != 0; at -= part)
    subtract(to + at, to + at - part, part);
}

void sums(Byte* to, std::size_t size, std::size_t part) {
  for (std::size_t at = part; at < size; at += part)
    add(to + at, to + at - part, part);
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

bool transform_fits(const ColumnShape& shape, std::uint8_t transform) {
  if ((transform & ~kTransforms) != 0)
    return false;
  if ((transform & (kChannel | kLine)) != 0 && shape.plane_bytes == 0)
    return false;
  return (transform & kShuffle) == 0 || shape.element_bytes > 1;
}

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
  for (std::size_t i = 0; i < count; ++i) {
    if ((transform & kChannel) != 0)
      differences(to + i * row, row, shape.plane_bytes);
    if ((transform & kLine) != 0)
      for (std::size_t plane = 0; plane < row; plane += shape.plane_bytes)
        differences(to + i * row + plane, shape.plane_bytes, shape.line_bytes);
  }
  if ((transform & kShuffle) != 0) { // the rows are small: a detour through a copy costs little
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
  for (std::size_t i = 0; i < count; ++i) {
    if ((transform & kLine) != 0)
      for (std::size_t plane = 0; plane < row; plane += shape.plane_bytes)
        sums(to + i * row + plane, shape.plane_bytes, shape.line_bytes);
    if ((transform & kChannel) != 0)
      sums(to + i * row, row, shape.plane_bytes);
    if ((transform & kTime) != 0 && (i != 0 || before != nullptr))
      add(to + i * row, i == 0 ? bytes_of(before) : to + (i - 1) * row, row);
  }
}

std::uint64_t residual_size(const std::byte* bytes, std::size_t count) {
  constexpr std::size_t kPart = 256; // sums of |int8| of one part fit 16 bits
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < count; at += kPart) {
    std::uint16_t part = 0;
    for (const std::byte* p = bytes + at; p != bytes + std::min(count, at + kPart); ++p) {
      const auto d = std::to_integer<std::uint8_t>(*p);
      part = static_cast<std::uint16_t>(part + std::min<unsigned>(d, 256U - d));
    }
    sum += part;
  }
  return sum;
}

} // namespace troupe::replay
