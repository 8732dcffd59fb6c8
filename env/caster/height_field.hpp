#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <vector>

namespace troupe::env::caster {

inline constexpr int kMaxFieldLevels = 16;

/// What rays need of a height field, in its geom's frame, metres. Grid point (row, column) is at
/// x = column * step[0] - size[0], y = row * step[1] - size[1], z = heights[row * columns +
/// column]. Each cell is two triangles, cut from its corner of least x and y to the opposite one,
/// each with its own normal; around are four walls down to -bottom, and a floor there.
struct HeightFieldView {
  const float* heights = nullptr; // null: nothing is drawn
  int rows = 0;
  int columns = 0;
  std::array<float, 2> size{}; // half widths
  std::array<float, 2> step{};
  float bottom = 0; // how far the floor is below z = 0
  // Least and greatest height by square of 2^l cells: level l has (row, column) of them at
  // offset[l] + 2 * (row * pitch[l] + column).
  const float* ranges = nullptr;
  int levels = 0; // the last is one square
  std::array<std::int32_t, kMaxFieldLevels> offset{};
  std::array<std::int32_t, kMaxFieldLevels> pitch{};
};

/// One of the model's height fields with the hierarchy of its heights. One thread at a time.
class HeightField {
public:
  /// Throws std::invalid_argument when it has more than 32768 rows or columns.
  HeightField(const mjModel& model, int number);

  /// Copies the model's present heights and sizes; cheap when they are unchanged. Heights that are
  /// not finite count as 0. No allocation.
  void update(const mjModel& model);

  const HeightFieldView& view() const { return view_; } // stays where it is
  /// Grows whenever heights or sizes change.
  std::uint64_t version() const { return version_; }
  float lowest() const; // metres, of the surface
  float highest() const;

private:
  void build();

  int number_;
  std::uint64_t version_ = 0;
  std::vector<float> known_;   // the model's, 0 to 1
  std::vector<float> heights_; // metres
  std::vector<float> ranges_;
  HeightFieldView view_;
};

} // namespace troupe::env::caster
