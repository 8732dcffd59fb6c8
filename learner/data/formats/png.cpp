#include <png.h>

#include <csetjmp>
#include <cstring>

#include "learner/data/pictures/data_error.hpp"
#include "learner/data/pictures/picture.hpp"

namespace troupe::learner::data {
namespace {

/// State shared by libpng's callbacks. No C++ object lives in the stack frames that a longjmp
/// leaves.
struct Reading {
  std::span<const std::byte> left{};
  char reason[128] = {};
  bool into_rows = false; // also decode the pixels
  Picture* out = nullptr;
  PictureSize size{};
  std::vector<png_bytep> rows{};
};

void take(png_structp png, png_bytep to, png_size_t size) {
  auto& reading = *static_cast<Reading*>(png_get_io_ptr(png));
  if (size > reading.left.size())
    png_error(png, "it ends too early");
  std::memcpy(to, reading.left.data(), size);
  reading.left = reading.left.subspan(size);
}

[[noreturn]] void fail(png_structp png, png_const_charp reason) {
  auto& reading = *static_cast<Reading*>(png_get_error_ptr(png));
  std::strncpy(reading.reason, reason, sizeof reading.reason - 1);
  png_longjmp(png, 1);
}

void ignore(png_structp, png_const_charp) {}

/// Converts every kind of PNG to 8 bits of red, green and blue.
void ask_for_rgb(png_structp png, png_infop info) {
  png_set_expand(png); // palettes, fewer than 8 bits, transparency
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

void make_room(Reading& reading) {
  Picture& out = *reading.out;
  out.height = reading.size.height;
  out.width = reading.size.width;
  out.rgb.resize(static_cast<std::size_t>(out.height) * out.row_bytes());
  reading.rows.resize(static_cast<std::size_t>(out.height));
  for (std::size_t y = 0; y < reading.rows.size(); ++y)
    reading.rows[y] = out.rgb.data() + y * out.row_bytes();
}

/// Returns false, with reading.reason set, if libpng reports an error.
bool read_png(png_structp png, png_infop info, Reading& reading, const std::string& source) {
  if (setjmp(png_jmpbuf(png)) != 0) // NOLINT: libpng knows no other way
    return false;
  png_read_info(png, info);
  reading.size = {static_cast<int>(png_get_image_height(png, info)),
                  static_cast<int>(png_get_image_width(png, info))};
  if (!reading.into_rows)
    return true;
  check_picture_size(reading.size.height, reading.size.width, source);
  ask_for_rgb(png, info);
  make_room(reading);
  if (png_get_rowbytes(png, info) != reading.out->row_bytes())
    png_error(png, "its pixel format is unknown");
  png_read_image(png, reading.rows.data());
  png_read_end(png, nullptr);
  return true;
}

struct Handles {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~Handles() { png_destroy_read_struct(&png, &info, nullptr); }
};

void run(std::span<const std::byte> bytes, const std::string& source, Reading& reading) {
  Handles handles;
  handles.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, fail, ignore);
  handles.info = handles.png != nullptr ? png_create_info_struct(handles.png) : nullptr;
  if (handles.info == nullptr)
    throw std::runtime_error("libpng could not start: no memory");
  reading.left = bytes;
  png_set_read_fn(handles.png, &reading, take);
  png_set_user_limits(handles.png, 0x7fffffff, 0x7fffffff); // kMostPixels is the real limit
  png_set_chunk_malloc_max(handles.png, 8u << 20);
  png_set_chunk_cache_max(handles.png, 64);
  if (!read_png(handles.png, handles.info, reading, source))
    throw DataError(source + ": is a corrupt PNG: " + reading.reason);
}

} // namespace

bool is_png(std::span<const std::byte> bytes) {
  return bytes.size() >= 8
         && png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, 8) == 0;
}

PictureSize png_size(std::span<const std::byte> bytes, const std::string& source) {
  Reading reading;
  run(bytes, source, reading);
  check_picture_size(reading.size.height, reading.size.width, source);
  return reading.size;
}

void decode_png(std::span<const std::byte> bytes, const std::string& source, Picture& out) {
  Reading reading;
  reading.into_rows = true;
  reading.out = &out;
  run(bytes, source, reading);
}

} // namespace troupe::learner::data
