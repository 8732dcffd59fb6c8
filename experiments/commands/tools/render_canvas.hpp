#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::experiments::commands {

/// A picture that others are put together on: RGB, top row first, black at first. What lies outside
/// is cut off.
class Canvas {
public:
  Canvas(int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  std::span<const std::uint8_t> rgb() const { return rgb_; }

  /// `picture` is [height, width, 3].
  void paste(int x, int y, int width, int height, std::span<const std::uint8_t> picture);

  /// White letters of 5x7 pixels in cells of 6x8; letters are capitals, what has no shape is a box.
  void write(int x, int y, const std::string& text);

  static constexpr int kTextHeight = 8;
  static constexpr int kTextWidth = 6; // of a letter

private:
  void put(int x, int y, const std::uint8_t* colour);

  int width_;
  int height_;
  std::vector<std::uint8_t> rgb_;
};

} // namespace troupe::experiments::commands
