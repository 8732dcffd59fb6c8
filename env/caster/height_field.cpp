#include "env/caster/height_field.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

namespace troupe::env::caster {

HeightField::HeightField(const mjModel& model, int number) : number_(number) {
  view_.rows = model.hfield_nrow[number];
  view_.columns = model.hfield_ncol[number];
  constexpr int kMost = 1 << (kMaxFieldLevels - 1);
  if (view_.rows > kMost || view_.columns > kMost)
    throw std::invalid_argument("height field " + std::to_string(number) + ": "
                                + std::to_string(view_.rows) + "x" + std::to_string(view_.columns)
                                + " points are too many; the limit is " + std::to_string(kMost)
                                + " per side; use a smaller file");
  if (view_.rows < 2 || view_.columns < 2)
    return;
  const auto count = static_cast<std::size_t>(view_.rows) * static_cast<std::size_t>(view_.columns);
  known_.assign(count, -1);
  heights_.resize(count);
  std::int32_t offset = 0;
  int rows = view_.rows - 1;
  int columns = view_.columns - 1;
  for (;;) {
    const auto level = static_cast<std::size_t>(view_.levels++);
    view_.offset[level] = offset;
    view_.pitch[level] = columns;
    offset += 2 * rows * columns;
    if (rows == 1 && columns == 1)
      break;
    rows = (rows + 1) / 2;
    columns = (columns + 1) / 2;
  }
  ranges_.resize(static_cast<std::size_t>(offset));
  update(model);
}

void HeightField::update(const mjModel& model) {
  if (known_.empty())
    return;
  const mjtNum* size = model.hfield_size + 4 * number_;
  const float* heights = model.hfield_data + model.hfield_adr[number_];
  const std::array<float, 2> half{static_cast<float>(size[0]), static_cast<float>(size[1])};
  const auto top = static_cast<float>(size[2]);
  const bool same_size =
      half == view_.size && static_cast<float>(size[3]) == view_.bottom && view_.heights != nullptr;
  // Compares bytes, so that NaN equals itself.
  if (same_size && std::memcmp(known_.data(), heights, known_.size() * sizeof(float)) == 0)
    return;
  std::copy_n(heights, known_.size(), known_.begin());
  for (std::size_t i = 0; i < known_.size(); ++i)
    heights_[i] = std::isfinite(known_[i]) ? known_[i] * top : 0;
  view_.size = half;
  view_.bottom = static_cast<float>(size[3]);
  view_.step = {2 * half[0] / static_cast<float>(view_.columns - 1),
                2 * half[1] / static_cast<float>(view_.rows - 1)};
  view_.heights = heights_.data();
  view_.ranges = ranges_.data();
  ++version_;
  build();
}

void HeightField::build() {
  const int columns = view_.columns;
  float* to = ranges_.data();
  for (int row = 0; row + 1 < view_.rows; ++row)
    for (int column = 0; column + 1 < columns; ++column) {
      const float* at = heights_.data() + static_cast<std::size_t>(row * columns + column);
      *to++ = std::min({at[0], at[1], at[columns], at[columns + 1]});
      *to++ = std::max({at[0], at[1], at[columns], at[columns + 1]});
    }
  int below_rows = view_.rows - 1;
  int below_columns = columns - 1;
  for (int level = 1; level < view_.levels; ++level) {
    const float* below = ranges_.data() + view_.offset[static_cast<std::size_t>(level - 1)];
    for (int row = 0; row < (below_rows + 1) / 2; ++row)
      for (int column = 0; column < (below_columns + 1) / 2; ++column) {
        float least = below[2 * (2 * row * below_columns + 2 * column)];
        float greatest = least;
        for (int r = 2 * row; r < std::min(2 * row + 2, below_rows); ++r)
          for (int c = 2 * column; c < std::min(2 * column + 2, below_columns); ++c) {
            least = std::min(least, below[2 * (r * below_columns + c)]);
            greatest = std::max(greatest, below[2 * (r * below_columns + c) + 1]);
          }
        *to++ = least;
        *to++ = greatest;
      }
    below_rows = (below_rows + 1) / 2;
    below_columns = (below_columns + 1) / 2;
  }
}

float HeightField::highest() const {
  return ranges_.empty() ? 0 : ranges_.back();
}

} // namespace troupe::env::caster
