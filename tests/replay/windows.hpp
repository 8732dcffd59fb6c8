#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "replay/writers/writer.hpp"

namespace troupe::replay {

inline const Signature kSignature{.columns = {{"picture", env::ElementType::uint8, {3, 5}},
                                              {"state", env::ElementType::float64, {2}},
                                              {"count", env::ElementType::int64, {}},
                                              {"reward", env::ElementType::float32, {}}},
                                  .items = "windows"};

/// The byte at index `byte` of column `column` in row `row`; every window is checked against it.
inline std::byte content(std::int64_t row, std::size_t column, std::size_t byte) {
  return static_cast<std::byte>((static_cast<std::size_t>(row) * 31 + column * 7 + byte * 3) % 251);
}

/// Writes rows of known content, and random windows of the newest rows. Column 2 of a row holds the
/// row's number, counted over the writer's lives.
class WindowSource {
public:
  WindowSource(std::uint64_t id, int chunk_rows, std::int64_t reach, std::uint64_t seed)
      : writer(kSignature, id, {.chunk_rows = chunk_rows, .reach = reach}), random(seed) {}

  void step() {
    for (std::size_t column = 0; column < kSignature.columns.size(); ++column) {
      const std::span<std::byte> place = writer.next(column);
      if (column == 2) {
        std::memcpy(place.data(), &row, sizeof row);
        continue;
      }
      for (std::size_t byte = 0; byte < place.size(); ++byte)
        place[byte] = content(row, column, byte);
    }
    writer.append();
    ++row;
  }

  void add_item() {
    const std::int64_t kept = writer.kept_rows();
    const auto count = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(kept));
    const std::int64_t first =
        writer.rows() - kept
        + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(kept - count + 1));
    const auto history = static_cast<std::uint32_t>(random() % static_cast<std::uint64_t>(count));
    ShapePtr shape;
    if (random() % 3 == 0) {
      auto made = std::make_shared<ItemShape>();
      for (std::size_t column = 0; column < kSignature.columns.size(); ++column) {
        std::vector<Slice>& slices = made->columns.emplace_back();
        for (std::uint32_t i = 0; column != 2 && i < random() % 3; ++i) {
          const auto begin =
              static_cast<std::uint32_t>(random() % static_cast<std::uint64_t>(count));
          slices.push_back(
              {begin, static_cast<std::uint32_t>(
                          random() % (static_cast<std::uint64_t>(count) - begin + 1))});
        }
      }
      made->columns[2] = {{0, 1}};
      shape = std::move(made);
    }
    writer.add_item(first, count, history, shape, 1 + static_cast<double>(random() % 5));
  }

  InsertionPtr next(int steps, int items) {
    for (int i = 0; i < steps; ++i)
      step();
    for (int i = 0; i < items; ++i)
      add_item();
    return writer.take();
  }

  Writer writer;
  std::mt19937_64 random;
  std::int64_t row = 0;
};

} // namespace troupe::replay
