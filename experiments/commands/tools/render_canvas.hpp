#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::experiments::commands {

/// A picture to compose others on: RGB, top row first, initially black. Anything outside its
/// borders is clipped.
class Canvas {
public:
  Canvas(int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  std::span<const std::uint8_t> rgb() const { return rgb_; }

  /// Copies `picture`, [height, width, 3], to the position (x, y).
  void paste(int x, int y, int width, int height, std::span<const std::uint8_t> picture);

  /// Writes white text with letters of 5x7 pixels in cells of 6x8, in lines of `letters`. Text that
  /// does not fit into `lines` lines ends with "..". Letters become capitals; an unknown character
  /// is drawn as a box.
  void write(int x, int y, const std::string& text, int letters, int lines);

  static constexpr int kTextHeight = 8;
  static constexpr int kTextWidth = 6; // width of one cell

private:
  void put(int x, int y, const std::uint8_t* colour);

  int width_;
  int height_;
  std::vector<std::uint8_t> rgb_;
};

} // namespace troupe::experiments::commands
