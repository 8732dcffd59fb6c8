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

/// Pixels that one picture may have; more are refused before any memory is taken for them.
inline constexpr std::int64_t kMostPixels = std::int64_t{64} << 20;

struct PictureSize {
  int height = 0;
  int width = 0;
};

/// Decodes JPEG (grey, YCbCr, CMYK, progressive) and PNG (1 to 16 bits, palette, alpha, interlaced)
/// as Pillow's convert("RGB") does: alpha is left out, CMYK is taken as Adobe writes it. A JPEG
/// that had to be guessed at (it ends early, bits are damaged) is an error. One thread at a time;
/// what it needs is kept for the next picture.
class PictureDecoder {
public:
  PictureDecoder();
  ~PictureDecoder();
  PictureDecoder(PictureDecoder&&) noexcept;

  /// From the header alone. Both throw DataError naming `source`.
  PictureSize size(std::span<const std::byte> bytes, const std::string& source);

  /// `out` keeps its memory. `scale` 2, 4 or 8: a JPEG is decoded that much smaller (sizes are
  /// rounded up), which is quicker; other formats come as they are.
  void decode(std::span<const std::byte> bytes, const std::string& source, int scale, Picture& out);

private:
  struct Jpeg;
  std::unique_ptr<Jpeg> jpeg_;
};

/// Whether the name ends as a picture that can be decoded: .jpg, .jpeg, .png in any case.
bool is_picture_name(const std::string& name);

/// Quality 1 to 100, with full colour resolution from 90 on. Throws std::invalid_argument.
std::vector<std::byte> encode_jpeg(const Picture& picture, int quality);

// png.cpp
bool is_png(std::span<const std::byte> bytes);
PictureSize png_size(std::span<const std::byte> bytes, const std::string& source);
void decode_png(std::span<const std::byte> bytes, const std::string& source, Picture& out);

/// Throws DataError naming `source` when a picture has no pixels, or more than kMostPixels.
void check_picture_size(std::int64_t height, std::int64_t width, const std::string& source);

} // namespace troupe::learner::data
