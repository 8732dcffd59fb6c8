#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "replay/chunks/insertion.hpp"
#include "replay/chunks/signature.hpp"
#include "replay/chunks/window_reader.hpp"

namespace troupe::replay {

/// Identifies a step, so that an item's rows can be recognised.
struct Mark {
  std::int64_t episode = 0;
  std::int64_t step = 0;
  auto operator<=>(const Mark&) const = default;
};

inline Signature marked_signature() {
  return {.columns = {{"mark", env::ElementType::int64, {2}},
                      {"noise", env::ElementType::uint8, {5}},
                      {"reward", env::ElementType::float32, {}}},
          .items = "marked"};
}

/// Episodes are numbered from 1, so that no mark is all zeros.
template <typename AnyWriter>
void write_marked(AnyWriter& writer, const Mark& mark) {
  std::memcpy(writer.next(0).data(), &mark, sizeof mark);
  for (std::byte& byte : writer.next(1))
    byte = static_cast<std::byte>(mark.episode * 31 + mark.step);
  const auto reward = static_cast<float>(mark.step);
  std::memcpy(writer.next(2).data(), &reward, sizeof reward);
}

/// The parts of an item that a test compares.
struct MarkedItem {
  std::vector<Mark> rows; // zeros are padding
  std::uint32_t history = 0;
  double priority = 1;
  bool operator==(const MarkedItem&) const = default;
};

inline MarkedItem marked(const Item& item) {
  MarkedItem made{.rows = {}, .history = item.history, .priority = item.priority};
  WindowReader window;
  window.open(item);
  const std::size_t row_bytes = item.chunks[0]->layout().row_bytes;
  for (std::uint32_t k = 0; k < item.rows; ++k) {
    Mark mark;
    std::memcpy(&mark, window.row(k), sizeof mark);
    std::size_t others = 0; // bytes that are not zero
    for (std::size_t i = sizeof mark; i < row_bytes; ++i)
      others += window.row(k)[i] != std::byte{0} ? 1 : 0;
    if (mark == Mark{} && others > 0)
      mark.step = -1; // neither a step nor padding
    made.rows.push_back(mark);
  }
  return made;
}

template <typename AnyWriter>
void take_marked(AnyWriter& writer, std::vector<MarkedItem>& out) {
  if (const InsertionPtr made = writer.take())
    for (const Item& item : made->items)
      out.push_back(marked(item));
}

} // namespace troupe::replay
