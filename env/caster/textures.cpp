#include "env/caster/textures.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace troupe::env::caster {

namespace {

using Rgba = std::array<std::uint8_t, 4>;

/// The pixels of one level of one face, row by row.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<Rgba> pixels;

  const Rgba& at(int x, int y) const {
    return pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width)
                  + static_cast<std::size_t>(x)];
  }
};

/// Converts a byte as GL_SRGB8 does.
std::uint8_t linear_of_srgb(std::uint8_t byte) {
  const double c = byte / 255.0;
  const double linear = c <= .04045 ? c / 12.92 : std::pow((c + .055) / 1.055, 2.4);
  return static_cast<std::uint8_t>(std::lround(255 * linear));
}

Image read_image(const mjModel& model, int texture, int face, int width, int height) {
  const int channels = model.tex_nchannel[texture];
  const bool srgb =
      model.tex_colorspace[texture] == mjCOLORSPACE_SRGB && model.tex_type[texture] == mjTEXTURE_2D;
  const auto count = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  const mjtByte* from =
      model.tex_data + model.tex_adr[texture]
      + static_cast<std::size_t>(face) * count * static_cast<std::size_t>(channels);
  Image image{width, height, std::vector<Rgba>(count)};
  for (Rgba& pixel : image.pixels) {
    for (std::size_t c = 0; c < 3; ++c)
      pixel[c] = srgb ? linear_of_srgb(from[c]) : from[c];
    pixel[3] = 255; // alpha is not drawn
    from += channels;
  }
  return image;
}

/// Where a pixel of a smaller image falls in the larger one: two neighbours and the weight of the
/// second.
struct Taps {
  int first;
  int second;
  float weight;
};

Taps taps(int small, int small_size, int size) {
  const float place =
      (static_cast<float>(small) + .5F) * static_cast<float>(size) / static_cast<float>(small_size)
      - .5F;
  const float low = std::floor(place);
  const int first = static_cast<int>(low);
  return {std::clamp(first, 0, size - 1), std::clamp(first + 1, 0, size - 1), place - low};
}

/// Makes the next level by linear interpolation at the middle of each new pixel. For even sizes
/// this is the mean of four pixels.
Image halve(const Image& from) {
  Image to{std::max(1, from.width / 2), std::max(1, from.height / 2), {}};
  to.pixels.reserve(static_cast<std::size_t>(to.width) * static_cast<std::size_t>(to.height));
  for (int y = 0; y < to.height; ++y) {
    const Taps row = taps(y, to.height, from.height);
    for (int x = 0; x < to.width; ++x) {
      const Taps column = taps(x, to.width, from.width);
      Rgba pixel{};
      for (std::size_t c = 0; c < 4; ++c) {
        const auto line = [&](int at) {
          const float a = from.at(column.first, at)[c];
          const float b = from.at(column.second, at)[c];
          return a + (b - a) * column.weight;
        };
        const float top = line(row.first);
        const float value = top + (line(row.second) - top) * row.weight;
        pixel[c] = static_cast<std::uint8_t>(std::lround(value));
      }
      to.pixels.push_back(pixel);
    }
  }
  return to;
}

std::int32_t pack(const Rgba& pixel) {
  return static_cast<std::int32_t>(
      static_cast<std::uint32_t>(pixel[0]) | static_cast<std::uint32_t>(pixel[1]) << 8
      | static_cast<std::uint32_t>(pixel[2]) << 16 | static_cast<std::uint32_t>(pixel[3]) << 24);
}

/// Returns whether the image has exactly two colours, and finds them.
bool find_two_colours(const Image& image, std::array<Rgba, 2>& colours) {
  colours[0] = image.pixels.front();
  bool second = false;
  for (const Rgba& pixel : image.pixels) {
    if (pixel == colours[0])
      continue;
    if (!second) {
      colours[1] = pixel;
      second = true;
    } else if (pixel != colours[1]) {
      return false;
    }
  }
  return second;
}

void begin_level(Texture& texture, int width, int height) {
  const auto level = static_cast<std::size_t>(texture.levels++);
  texture.offset[level] = static_cast<std::int32_t>(texture.texels.size());
  texture.width[level] = width;
  texture.height[level] = height;
  texture.width_texels[level] = static_cast<float>(width);
  texture.height_texels[level] = static_cast<float>(height);
}

/// Appends the texels of one level of a two-colour texture, from an image of weights (in red).
void append_weights(const Image& weights, std::vector<std::int32_t>& texels) {
  for (int y = 0; y < weights.height; ++y)
    for (int x = 0; x < weights.width; ++x) {
      const int right = x + 1 == weights.width ? 0 : x + 1;
      const int below = y + 1 == weights.height ? 0 : y + 1;
      texels.push_back(pack({weights.at(x, y)[0], weights.at(right, y)[0], weights.at(x, below)[0],
                             weights.at(right, below)[0]}));
    }
}

Texture make_flat(const mjModel& model, int number) {
  Texture texture;
  Image image = read_image(model, number, 0, model.tex_width[number], model.tex_height[number]);
  std::array<Rgba, 2> colours{};
  texture.two_colours = find_two_colours(image, colours);
  if (texture.two_colours) {
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t c = 0; c < 3; ++c)
        texture.colours[i][c] = static_cast<float>(colours[i][c]) / 255;
    for (Rgba& pixel : image.pixels) {
      const std::uint8_t weight = pixel == colours[1] ? 255 : 0;
      pixel = {weight, weight, weight, weight};
    }
  }
  for (;;) {
    begin_level(texture, image.width, image.height);
    if (texture.two_colours)
      append_weights(image, texture.texels);
    else
      for (const Rgba& pixel : image.pixels)
        texture.texels.push_back(pack(pixel));
    if (image.width == 1 && image.height == 1)
      return texture;
    image = halve(image);
  }
}

/// Returns the point on the cube [-1, 1]^3 at a face's coordinates (-1 to 1, u to the right, v
/// down).
std::array<double, 3> cube_point(int face, double u, double v) {
  switch (face) {
  case 0:
    return {1, -v, -u};
  case 1:
    return {-1, -v, u};
  case 2:
    return {u, 1, v};
  case 3:
    return {u, -1, -v};
  case 4:
    return {u, -v, 1};
  default:
    return {-u, -v, -1};
  }
}

/// Returns the nearest texel of the cube in direction `d`.
const Rgba& look_up(const std::array<Image, 6>& faces, const std::array<double, 3>& d) {
  const double x = std::abs(d[0]);
  const double y = std::abs(d[1]);
  const double z = std::abs(d[2]);
  const std::size_t face = x >= y && x >= z ? (d[0] > 0 ? 0U : 1U)
                           : y >= z         ? (d[1] > 0 ? 2U : 3U)
                                            : (d[2] > 0 ? 4U : 5U);
  const double major = std::max({x, y, z});
  const std::array<double, 6> u{-d[2], d[2], d[0], d[0], d[0], -d[0]};
  const std::array<double, 6> v{-d[1], -d[1], d[2], -d[2], -d[1], -d[1]};
  const Image& image = faces[face];
  const auto texel = [&](double coordinate) {
    const double place = .5 * (coordinate / major + 1) * image.width;
    return std::clamp(static_cast<int>(std::floor(place)), 0, image.width - 1);
  };
  return image.at(texel(u[face]), texel(v[face]));
}

/// Appends one level: six faces with their borders. At a corner of the cube three faces meet, and
/// the border has the mean of their corner texels.
void append_cube_level(const std::array<Image, 6>& faces, std::vector<std::int32_t>& texels) {
  const int size = faces[0].width;
  for (int face = 0; face < 6; ++face)
    for (int y = -1; y <= size; ++y)
      for (int x = -1; x <= size; ++x) {
        const auto coordinate = [&](int i) { return (i + .5) / size * 2 - 1; };
        const int inside_x = std::clamp(x, 0, size - 1);
        const int inside_y = std::clamp(y, 0, size - 1);
        const Image& own = faces[static_cast<std::size_t>(face)];
        if (x == inside_x && y == inside_y) {
          texels.push_back(pack(own.at(x, y)));
        } else if (x == inside_x || y == inside_y) {
          // Just across an edge: look up a direction slightly beyond it.
          const auto beyond = [&](int i, int inside) {
            return i == inside ? coordinate(i) : (i < 0 ? -1 - 1e-6 : 1 + 1e-6);
          };
          texels.push_back(
              pack(look_up(faces, cube_point(face, beyond(x, inside_x), beyond(y, inside_y)))));
        } else {
          const double u = x < 0 ? -1 : 1;
          const double v = y < 0 ? -1 : 1;
          constexpr double kInside = 1 - 1e-6;
          const Rgba& b = look_up(faces, cube_point(face, u * (1 + 1e-6), v * kInside));
          const Rgba& c = look_up(faces, cube_point(face, u * kInside, v * (1 + 1e-6)));
          Rgba mean{};
          for (std::size_t k = 0; k < 4; ++k)
            mean[k] =
                static_cast<std::uint8_t>((own.at(inside_x, inside_y)[k] + b[k] + c[k] + 1) / 3);
          texels.push_back(pack(mean));
        }
      }
}

Texture make_cube(const mjModel& model, int number) {
  Texture texture;
  texture.cube = true;
  const int size = model.tex_width[number];
  const bool repeated = model.tex_height[number] == size;
  if (!repeated && model.tex_height[number] != 6 * size)
    return texture;
  std::array<Image, 6> faces;
  for (int face = 0; face < 6; ++face)
    faces[static_cast<std::size_t>(face)] =
        read_image(model, number, repeated ? 0 : face, size, size);
  for (;;) {
    begin_level(texture, faces[0].width, faces[0].height);
    append_cube_level(faces, texture.texels);
    if (faces[0].width == 1)
      return texture;
    for (Image& face : faces)
      face = halve(face);
  }
}

bool drawable(const mjModel& model, int number) {
  const int channels = model.tex_nchannel[number];
  return (channels == 3 || channels == 4) && model.tex_width[number] > 0
         && model.tex_height[number] > 0;
}

} // namespace

std::vector<Texture> make_textures(const mjModel& model) {
  std::vector<Texture> textures;
  for (int i = 0; i < static_cast<int>(model.ntex); ++i) {
    constexpr int kLargest = 1 << (kMaxTextureLevels - 1);
    const bool cube = model.tex_type[i] != mjTEXTURE_2D;
    if (model.tex_width[i] > kLargest || (!cube && model.tex_height[i] > kLargest))
      throw std::invalid_argument(
          "texture " + std::to_string(i) + ": " + std::to_string(model.tex_width[i]) + "x"
          + std::to_string(model.tex_height[i]) + " pixels is too large; the limit is "
          + std::to_string(kLargest) + " per side; use a smaller file");
    if (!drawable(model, i))
      textures.emplace_back();
    else
      textures.push_back(cube ? make_cube(model, i) : make_flat(model, i));
  }
  for (Texture& texture : textures)
    texture.first_texel = texture.texels.data();
  return textures;
}

int find_sky(const mjModel& model) {
  for (int i = 0; i < static_cast<int>(model.ntex); ++i)
    if (model.tex_type[i] == mjTEXTURE_SKYBOX)
      return i;
  return -1;
}

TextureMapping map_texture(const mjvGeom& geom, const std::vector<Texture>& textures) {
  TextureMapping mapping;
  const int number = geom.texid;
  if (geom.matid < 0 || number < 0 || number >= static_cast<int>(textures.size())
      || textures[static_cast<std::size_t>(number)].levels == 0)
    return mapping;
  const bool uniform = geom.texuniform != 0;
  const bool cube = textures[static_cast<std::size_t>(number)].cube;
  const bool in_metres = geom.type == mjGEOM_MESH || geom.type == mjGEOM_SDF
                         || geom.type == mjGEOM_HFIELD || geom.type == mjGEOM_SKIN
                         || geom.type == mjGEOM_FLEX || geom.type == mjGEOM_PLANE;
  for (std::size_t k = 0; k < 3; ++k) {
    const float size = geom.size[k];
    if (!in_metres && size > 0)
      mapping.inverse_size[k] = 1 / size;
    mapping.cube_scale[k] = uniform ? size : 1.0F;
  }
  for (std::size_t k = 0; k < 2; ++k)
    mapping.scale[k] = geom.texrepeat[k] * (uniform && geom.size[k] > 0 ? geom.size[k] : 1.0F);
  mapping.texture = number;
  if (cube) {
    // MuJoCo binds the texture of a mesh with its own coordinates as a flat one, so the mesh is
    // left plain.
    mapping.layout = geom.texcoord != 0            ? TextureLayout::none
                     : geom.type == mjGEOM_CAPSULE ? TextureLayout::cube_capsule
                                                   : TextureLayout::cube;
    return mapping;
  }
  switch (geom.type) {
  case mjGEOM_SPHERE:
  case mjGEOM_ELLIPSOID:
    mapping.layout = TextureLayout::sphere;
    break;
  case mjGEOM_CAPSULE:
    mapping.layout = TextureLayout::capsule;
    break;
  case mjGEOM_CYLINDER:
    mapping.layout = TextureLayout::cylinder;
    break;
  case mjGEOM_BOX:
    mapping.layout = TextureLayout::box;
    break;
  case mjGEOM_PLANE: {
    const bool finite = geom.size[0] > 0 && geom.size[1] > 0;
    mapping.layout = finite ? TextureLayout::box : TextureLayout::planar;
    if (finite)
      mapping.inverse_size = {1 / geom.size[0], 1 / geom.size[1], 1};
    break;
  }
  default:
    mapping.layout = geom.texcoord != 0 ? TextureLayout::given : TextureLayout::planar;
    break;
  }
  if (mapping.layout == TextureLayout::planar) {
    for (std::size_t k = 0; k < 2; ++k)
      mapping.scale[k] = geom.texrepeat[k] / (uniform || geom.size[k] <= 0 ? 1.0F : geom.size[k]);
  }
  return mapping;
}

} // namespace troupe::env::caster
