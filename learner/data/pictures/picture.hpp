#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::learner::data {

/// RGB, [height, width, 3], top row first.
struct Picture {
  int height = 0; // pixels
  int width = 0;
  std::vector<std::uint8_t> rgb;

  std::size_t row_bytes() const { return static_cast<std::size_t>(width) * 3; }
};

/// Maximum number of pixels of a picture. Larger pictures are refused before memory is allocated.
inline constexpr std::int64_t kMostPixels = std::int64_t{64} << 20;

struct PictureSize {
  int height = 0;
  int width = 0;
};

/// Decodes JPEG (grey, YCbCr, CMYK, progressive) and PNG (1 to 16 bits, palette, alpha, interlaced)
/// as Pillow's convert("RGB") does: it drops alpha and reads CMYK as Adobe writes it. A JPEG whose
/// content had to be guessed (it ends early, or bits are damaged) is an error. One thread at a
/// time; buffers are reused for the next picture.
class PictureDecoder {
public:
  PictureDecoder();
  ~PictureDecoder();
  PictureDecoder(PictureDecoder&&) noexcept;

  /// Reads the size from the header alone. Like decode(), throws DataError naming `source`.
  PictureSize size(std::span<const std::byte> bytes, const std::string& source);

  /// Decodes into `out`, whose memory is reused. With `scale` 2, 4 or 8, a JPEG is decoded that
  /// much smaller (sizes are rounded up), which is faster; other formats keep their size.
  void decode(std::span<const std::byte> bytes, const std::string& source, int scale, Picture& out);

private:
  struct Jpeg;
  std::unique_ptr<Jpeg> jpeg_;
};

/// Whether the file name is that of a supported picture: it ends in .jpg, .jpeg or .png, in any
/// case.
bool is_picture_name(const std::string& name);

/// Encodes a picture as JPEG. `quality` is 1 to 100; from 90 on, colours keep full resolution.
/// Throws std::invalid_argument.
std::vector<std::byte> encode_jpeg(const Picture& picture, int quality);

// Defined in png.cpp:
bool is_png(std::span<const std::byte> bytes);
PictureSize png_size(std::span<const std::byte> bytes, const std::string& source);
void decode_png(std::span<const std::byte> bytes, const std::string& source, Picture& out);

/// Throws DataError naming `source` if a picture has no pixels, or more than kMostPixels.
void check_picture_size(std::int64_t height, std::int64_t width, const std::string& source);

} // namespace troupe::learner::data
