#include "experiments/picture.hpp"

#include <png.h>

#include <stdexcept>

namespace troupe::experiments {

void write_png(const std::filesystem::path& path, int width, int height,
               std::span<const std::uint8_t> rgb) {
  if (width < 1 || height < 1
      || rgb.size() != static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3) {
    throw std::invalid_argument(path.string() + ": a picture of " + std::to_string(width) + " x "
                                + std::to_string(height) + " has not " + std::to_string(rgb.size())
                                + " bytes of RGB");
  }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  if (png_image_write_to_file(&image, path.c_str(), 0, rgb.data(), 0, nullptr) == 0) {
    const std::string reason = image.message;
    png_image_free(&image);
    throw std::runtime_error(path.string() + ": cannot be written: " + reason);
  }
}

} // namespace troupe::experiments
