#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <vector>

namespace troupe::env::caster {

inline constexpr int kMaxFieldLevels = 16;

/// The data of a height field that rays need, in its geom's frame and in metres. Grid point (row,
/// column) is at x = column * step[0] - size[0], y = row * step[1] - size[1], z = heights[row *
/// columns + column]. Each cell is two triangles, divided by the diagonal from the corner with the
/// smallest x and y; each triangle has its own normal. Four walls and a floor at z = -bottom close
/// the field.
struct HeightFieldView {
  const float* heights = nullptr; // null if nothing is drawn
  int rows = 0;
  int columns = 0;
  std::array<float, 2> size{}; // half widths
  std::array<float, 2> step{};
  float bottom = 0; // depth of the floor below z = 0
  // The lowest and highest height of each square of 2^l x 2^l cells. At level l the pair of square
  // (row, column) is at offset[l] + 2 * (row * pitch[l] + column).
  const float* ranges = nullptr;
  int levels = 0; // the last level is a single square
  std::array<std::int32_t, kMaxFieldLevels> offset{};
  std::array<std::int32_t, kMaxFieldLevels> pitch{};
};

/// One of the model's height fields and the hierarchy of its heights. Not thread-safe.
class HeightField {
public:
  /// Throws std::invalid_argument if it has more than 32768 rows or columns.
  HeightField(const mjModel& model, int number);

  /// Copies the model's current heights and sizes, and is cheap if they have not changed. Heights
  /// that are not finite count as 0. Does not allocate.
  void update(const mjModel& model);

  const HeightFieldView& view() const { return view_; } // its address does not change
  /// Increases whenever the heights or sizes change.
  std::uint64_t version() const { return version_; }
  float highest() const; // z of the surface's highest point, in metres

private:
  void build();

  int number_;
  std::uint64_t version_ = 0;
  std::vector<float> known_;   // the model's heights, 0 to 1
  std::vector<float> heights_; // in metres
  std::vector<float> ranges_;
  HeightFieldView view_;
};

} // namespace troupe::env::caster
