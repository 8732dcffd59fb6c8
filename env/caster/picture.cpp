#include "env/caster/picture.hpp"

namespace troupe::env::caster {

void RowItems::collect(const SpanSet& set, int row, int columns) {
  items.clear();
  for (const SpanItem& item : set.items)
    if (row >= item.first_row && row <= item.last_row)
      items.push_back(item.item);
  words = static_cast<int>((items.size() + 63) / 64);
  masks.assign(static_cast<std::size_t>(columns) * static_cast<std::size_t>(words), 0);
  std::size_t number = 0;
  for (const SpanItem& item : set.items) {
    if (row < item.first_row || row > item.last_row)
      continue;
    const BlockRange range =
        set.ranges[item.ranges + static_cast<std::size_t>(row - item.first_row)];
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    for (std::size_t column = range.first; column <= range.last; ++column)
      masks[column * static_cast<std::size_t>(words) + number / 64] |= bit;
    ++number;
  }
}

void RowCandidates::collect(const Frame& frame, int row) {
  visible.collect(frame.visible, row, frame.block_columns);
  mirrored.collect(frame.mirrored, row, frame.block_columns);
  shadowed.collect(frame.shadowed, row, frame.block_columns);
  thin.assign(static_cast<std::size_t>(frame.block_columns), 0);
  for (std::size_t i = 0; i < visible.items.size(); ++i) {
    if (!frame.shapes[static_cast<std::size_t>(visible.items[i])].thin)
      continue;
    for (int column = 0; column < frame.block_columns; ++column)
      if ((visible.block(column)[i / 64] >> (i % 64) & 1) != 0)
        thin[static_cast<std::size_t>(column)] = 1;
  }
}

void Picture::resize(int block_columns, int block_rows) {
  stride = block_columns * kBlockSide + 2 * kPad;
  const std::size_t size =
      static_cast<std::size_t>(stride) * static_cast<std::size_t>(block_rows * kBlockSide + 2);
  keys.assign(size, 0);
  colours.assign(size, 0);
  smooth.assign(size, 0);
  sky.assign(size, 0);
  edges.assign(static_cast<std::size_t>(block_columns), 0);
}

} // namespace troupe::env::caster
