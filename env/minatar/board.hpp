#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::env::minatar {

constexpr std::int32_t kSide = 10; // rows, and columns, of every board
constexpr std::int32_t kLastCell = kSide - 1;

constexpr bool on_board(std::int32_t x, std::int32_t y) {
  return x >= 0 && x < kSide && y >= 0 && y < kSide;
}

/// An observation being written: uint8 [channels, row, column], 255 where an object is and 0
/// elsewhere. x is the column, y the row from the top.
class Picture {
public:
  explicit Picture(std::span<std::byte> cells) : cells_(cells) {}

  /// Cells outside the board are ignored.
  void show(std::int32_t channel, std::int32_t x, std::int32_t y) {
    if (on_board(x, y))
      cells_[static_cast<std::size_t>((channel * kSide + y) * kSide + x)] = std::byte{255};
  }

private:
  std::span<std::byte> cells_; // initially 0
};

} // namespace troupe::env::minatar
