#include "experiments/commands/tools/render_canvas.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <string_view>

namespace troupe::experiments::commands {
namespace {

struct Shape {
  char letter;
  std::string_view rows; // 7 rows of 5 pixels
};

constexpr Shape kShapes[] = {
    {' ', "                                   "}, {'.', "                          ##   ##  "},
    {',', "                     ##   ##  #    "}, {':', "      ##   ##        ##   ##       "},
    {'_', "                              #####"}, {'-', "               #####               "},
    {'%', "##  ###  #   #   #   #   #  ###  ##"}, {'/', "    #    #   #   #   #   #    #    "},
    {'(', "   #   #   #    #    #     #     # "}, {')', " #     #     #    #    #   #   #   "},
    {'0', " ### #   ##  ### # ###  ##   # ### "}, {'1', "  #   ##    #    #    #    #   ### "},
    {'2', " ### #   #    #   #   #   #   #####"}, {'3', " ### #   #    #  ##     ##   # ### "},
    {'4', "   #   ##  # # #  # #####   #    # "}, {'5', "######    ####     #    ##   # ### "},
    {'6', " ### #    #    #### #   ##   # ### "}, {'7', "#####    #   #   #   #    #    #   "},
    {'8', " ### #   ##   # ### #   ##   # ### "}, {'9', " ### #   ##   # ####    #    # ### "},
    {'A', " ### #   ##   #######   ##   ##   #"}, {'B', "#### #   ##   ##### #   ##   ##### "},
    {'C', " ### #   ##    #    #    #   # ### "}, {'D', "#### #   ##   ##   ##   ##   ##### "},
    {'E', "######    #    #### #    #    #####"}, {'F', "######    #    #### #    #    #    "},
    {'G', " ### #   ##    # ####   ##   # ####"}, {'H', "#   ##   ##   #######   ##   ##   #"},
    {'I', " ###   #    #    #    #    #   ### "}, {'J', "  ###   #    #    #    # #  #  ##  "},
    {'K', "#   ##  # # #  ##   # #  #  # #   #"}, {'L', "#    #    #    #    #    #    #####"},
    {'M', "#   ### ### # ## # ##   ##   ##   #"}, {'N', "#   ##   ###  ## # ##  ###   ##   #"},
    {'O', " ### #   ##   ##   ##   ##   # ### "}, {'P', "#### #   ##   ##### #    #    #    "},
    {'Q', " ### #   ##   ##   ## # ##  #  ## #"}, {'R', "#### #   ##   ##### # #  #  # #   #"},
    {'S', " #####    #     ###     #    ##### "}, {'T', "#####  #    #    #    #    #    #  "},
    {'U', "#   ##   ##   ##   ##   ##   # ### "}, {'V', "#   ##   ##   ##   ##   # # #   #  "},
    {'W', "#   ##   ##   ## # ## # ### ###   #"}, {'X', "#   ##   # # #   #   # # #   ##   #"},
    {'Y', "#   ##   # # #   #    #    #    #  "}, {'Z', "#####    #   #   #   #   #    #####"},
    {'?', "######   ##   ##   ##   ##   ######"},
};

std::string_view shape_of(char letter) {
  const char capital = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  for (const Shape& shape : kShapes) {
    if (shape.letter == capital) {
      return shape.rows;
    }
  }
  return shape_of('?');
}

} // namespace

Canvas::Canvas(int width, int height)
    : width_(width),
      height_(height),
      rgb_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3) {}

void Canvas::put(int x, int y, const std::uint8_t* colour) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) {
    return;
  }
  const std::size_t at =
      (static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x))
      * 3;
  for (std::size_t c = 0; c < 3; ++c) {
    rgb_[at + c] = colour[c];
  }
}

void Canvas::paste(int x, int y, int width, int height, std::span<const std::uint8_t> picture) {
  if (picture.size() != static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3) {
    throw std::invalid_argument("a picture to paste must have width x height x 3 bytes");
  }
  const std::uint8_t* from = picture.data();
  for (int v = 0; v < height; ++v) {
    for (int u = 0; u < width; ++u, from += 3) {
      put(x + u, y + v, from);
    }
  }
}

void Canvas::write(int x, int y, const std::string& text, int letters, int lines) {
  constexpr std::uint8_t kWhite[3] = {255, 255, 255};
  const int room = letters * lines;
  std::string shown = text.substr(0, static_cast<std::size_t>(room));
  if (shown != text) {
    const auto dots = static_cast<std::size_t>(std::min(2, room));
    shown.replace(shown.size() - dots, dots, dots, '.');
  }
  for (int place = 0; place < static_cast<int>(shown.size()); ++place) {
    const std::string_view rows = shape_of(shown[static_cast<std::size_t>(place)]);
    for (int i = 0; i < 35; ++i) {
      if (rows[static_cast<std::size_t>(i)] != ' ') {
        put(x + place % letters * kTextWidth + i % 5, y + place / letters * kTextHeight + i / 5,
            kWhite);
      }
    }
  }
}

} // namespace troupe::experiments::commands
