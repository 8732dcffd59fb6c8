#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "env/minatar/board.hpp"

namespace troupe::env::minatar {

/// A set of cells of the board. Cells outside the board are never in a set.
class CellSet {
public:
  /// All cells of these rows and columns, both ends included.
  static constexpr CellSet block(std::int32_t left, std::int32_t right, std::int32_t top,
                                 std::int32_t bottom) {
    CellSet set;
    for (std::int32_t y = top; y <= bottom; ++y)
      for (std::int32_t x = left; x <= right; ++x)
        set.insert(x, y);
    return set;
  }

  constexpr bool contains(std::int32_t x, std::int32_t y) const {
    return on_board(x, y) && (row(y) & bit(x)) != 0;
  }
  constexpr void insert(std::int32_t x, std::int32_t y) {
    if (on_board(x, y))
      row(y) |= bit(x);
  }
  constexpr void erase(std::int32_t x, std::int32_t y) {
    if (on_board(x, y))
      row(y) &= static_cast<Row>(~bit(x));
  }
  constexpr void clear_row(std::int32_t y) { row(y) = 0; }

  std::int32_t count() const {
    std::int32_t cells = 0;
    for (const Row row : rows_)
      cells += std::popcount(row);
    return cells;
  }
  bool empty() const { return count() == 0; }
  bool has_row(std::int32_t y) const { return row(y) != 0; } // whether it has a cell in this row
  bool has_column(std::int32_t x) const { return lowest_in(x) >= 0; }

  /// The lowest row on the board (the largest number) with a cell of this column, or -1.
  std::int32_t lowest_in(std::int32_t x) const {
    std::int32_t y = kLastCell;
    while (y >= 0 && !contains(x, y))
      --y;
    return y;
  }

  /// These move all cells by one; cells that leave the board reappear at the opposite side.
  void move_up() {
    const Row top = rows_.front();
    for (std::size_t y = 0; y + 1 < rows_.size(); ++y)
      rows_[y] = rows_[y + 1];
    rows_.back() = top;
  }
  void move_down() {
    const Row bottom = rows_.back();
    for (std::size_t y = rows_.size() - 1; y > 0; --y)
      rows_[y] = rows_[y - 1];
    rows_.front() = bottom;
  }
  void move_left() {
    for (Row& row : rows_)
      row = static_cast<Row>((row >> 1 | row << kLastCell) & kWholeRow);
  }
  void move_right() {
    for (Row& row : rows_)
      row = static_cast<Row>((row << 1 | row >> kLastCell) & kWholeRow);
  }

  void remove(const CellSet& other) {
    for (std::size_t y = 0; y < rows_.size(); ++y)
      rows_[y] &= static_cast<Row>(~other.rows_[y]);
  }
  friend CellSet common_cells(CellSet a, const CellSet& b) {
    for (std::size_t y = 0; y < a.rows_.size(); ++y)
      a.rows_[y] &= b.rows_[y];
    return a;
  }

  void show(Picture& picture, std::int32_t channel) const {
    for (std::int32_t y = 0; y < kSide; ++y)
      for (std::int32_t x = 0; x < kSide; ++x)
        if (contains(x, y))
          picture.show(channel, x, y);
  }

  /// Whether these bytes, loaded from outside, are a set of cells.
  bool is_valid() const {
    for (const Row row : rows_)
      if ((row & ~kWholeRow) != 0)
        return false;
    return true;
  }

private:
  using Row = std::uint16_t; // bit x: column x
  static constexpr Row kWholeRow = (1 << kSide) - 1;

  static constexpr Row bit(std::int32_t x) { return static_cast<Row>(1 << x); }
  constexpr Row& row(std::int32_t y) { return rows_[static_cast<std::size_t>(y)]; }
  constexpr const Row& row(std::int32_t y) const { return rows_[static_cast<std::size_t>(y)]; }

  std::array<Row, kSide> rows_{};
};

} // namespace troupe::env::minatar
