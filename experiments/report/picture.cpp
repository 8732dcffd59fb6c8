#include "experiments/report/picture.hpp"

#include <png.h>
#include <turbojpeg.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

namespace troupe::experiments {
namespace {

void check_picture_size(int width, int height, std::span<const std::uint8_t> rgb) {
  if (width < 1 || height < 1
      || rgb.size() != static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3) {
    throw std::invalid_argument("a picture of " + std::to_string(width) + " x "
                                + std::to_string(height) + " does not have "
                                + std::to_string(rgb.size()) + " bytes of RGB");
  }
}

} // namespace

std::string encode_jpeg(int width, int height, std::span<const std::uint8_t> rgb, int quality) {
  check_picture_size(width, height, rgb);
  const std::unique_ptr<void, int (*)(tjhandle)> encoder(tjInitCompress(), tjDestroy);
  std::string bytes(tjBufSize(width, height, TJSAMP_420), '\0'); // the maximum size
  auto* out = reinterpret_cast<unsigned char*>(bytes.data());
  unsigned long size = bytes.size();
  if (!encoder
      || tjCompress2(encoder.get(), rgb.data(), width, 0, height, TJPF_RGB, &out, &size, TJSAMP_420,
                     quality, TJFLAG_NOREALLOC)
             != 0)
    throw std::runtime_error("a picture cannot be written as JPEG: "
                             + std::string(tjGetErrorStr2(encoder.get())));
  bytes.resize(size);
  return bytes;
}

std::vector<std::byte> encode_png(int width, int height, std::span<const std::uint8_t> rgb) {
  check_picture_size(width, height, rgb);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image); // the maximum size
  std::vector<std::byte> bytes(size);
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, rgb.data(), 0, nullptr) == 0) {
    const std::string reason = image.message;
    png_image_free(&image);
    throw std::runtime_error("a picture cannot be written as PNG: " + reason);
  }
  bytes.resize(size);
  return bytes;
}

void write_png(const std::filesystem::path& path, int width, int height,
               std::span<const std::uint8_t> rgb) {
  const auto bytes = encode_png(width, height, rgb);
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) {
    throw std::runtime_error(path.string()
                             + ": cannot be written: " + std::generic_category().message(errno));
  }
}

} // namespace troupe::experiments
