#include "learner/data/pictures/picture.hpp"

#include <turbojpeg.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "learner/data/pictures/data_error.hpp"

namespace troupe::learner::data {
namespace {

const unsigned char* begin_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// Converts CMYK as Adobe's programs write it: 255 means no ink.
void to_rgb(const std::vector<std::uint8_t>& inks, std::vector<std::uint8_t>& rgb) {
  for (std::size_t i = 0; 4 * i < inks.size(); ++i)
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned product = unsigned{inks[4 * i + c]} * inks[4 * i + 3] + 128;
      rgb[3 * i + c] = static_cast<std::uint8_t>((product + (product >> 8)) >> 8); // / 255
    }
}

} // namespace

struct PictureDecoder::Jpeg {
  Jpeg() { restart(); }

  /// After an error, the library's object remembers parts of the failed picture.
  void restart() {
    owner.reset(tjInitDecompress());
    handle = owner.get();
    if (handle == nullptr)
      throw std::runtime_error("libjpeg-turbo could not start: no memory");
  }

  /// Returns the library's error message, and restarts the library's object.
  std::string reason() {
    const std::string words = tjGetErrorStr2(handle);
    restart();
    return words;
  }

  struct Header {
    int width = 0;
    int height = 0;
    int samples = 0;
    int colours = 0;
  };

  Header header(std::span<const std::byte> bytes, const std::string& source) {
    Header found;
    if (bytes.empty())
      throw DataError(source + ": is empty; a picture is expected");
    if (tjDecompressHeader3(handle, begin_of(bytes), bytes.size(), &found.width, &found.height,
                            &found.samples, &found.colours)
        != 0)
      throw DataError(source + ": is not a readable JPEG or PNG: " + reason());
    check_picture_size(found.height, found.width, source);
    return found;
  }

  std::unique_ptr<void, int (*)(tjhandle)> owner{nullptr, tjDestroy};
  tjhandle handle = nullptr;
  std::vector<std::uint8_t> inks; // [height, width, 4] of a CMYK picture
};

PictureDecoder::PictureDecoder() : jpeg_(std::make_unique<Jpeg>()) {}
PictureDecoder::~PictureDecoder() = default;
PictureDecoder::PictureDecoder(PictureDecoder&&) noexcept = default;

PictureSize PictureDecoder::size(std::span<const std::byte> bytes, const std::string& source) {
  if (is_png(bytes))
    return png_size(bytes, source);
  const auto header = jpeg_->header(bytes, source);
  return {header.height, header.width};
}

void PictureDecoder::decode(std::span<const std::byte> bytes, const std::string& source, int scale,
                            Picture& out) {
  if (is_png(bytes))
    return decode_png(bytes, source, out);
  const auto header = jpeg_->header(bytes, source);
  const tjscalingfactor factor{1, scale};
  out.width = TJSCALED(header.width, factor);
  out.height = TJSCALED(header.height, factor);
  const auto pixels = static_cast<std::size_t>(out.width) * static_cast<std::size_t>(out.height);
  out.rgb.resize(3 * pixels);
  const bool inks = header.colours == TJCS_CMYK || header.colours == TJCS_YCCK;
  if (inks)
    jpeg_->inks.resize(4 * pixels);
  constexpr int kFlags = TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS;
  if (tjDecompress2(jpeg_->handle, begin_of(bytes), bytes.size(),
                    inks ? jpeg_->inks.data() : out.rgb.data(), out.width, 0, out.height,
                    inks ? TJPF_CMYK : TJPF_RGB, kFlags)
      != 0) {
    const bool warning = tjGetErrorCode(jpeg_->handle) == TJERR_WARNING;
    const std::string reason = jpeg_->reason();
    // Cameras write extra bytes between segments, which do not change any pixel.
    if (!warning || reason.find("extraneous bytes") == std::string::npos)
      throw DataError(source + ": is a corrupt JPEG: " + reason);
  }
  if (inks)
    to_rgb(jpeg_->inks, out.rgb);
}

bool is_picture_name(const std::string& name) {
  const auto dot = name.rfind('.');
  if (dot == std::string::npos)
    return false;
  std::string end = name.substr(dot);
  std::transform(end.begin(), end.end(), end.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return end == ".jpg" || end == ".jpeg" || end == ".png";
}

void check_picture_size(std::int64_t height, std::int64_t width, const std::string& source) {
  if (height < 1 || width < 1 || height > kMostPixels / width)
    throw DataError(source + ": claims to have " + std::to_string(width) + " x "
                    + std::to_string(height) + " pixels; 1 to " + std::to_string(kMostPixels)
                    + " can be read");
}

std::vector<std::byte> encode_jpeg(const Picture& picture, int quality) {
  if (quality < 1 || quality > 100)
    throw std::invalid_argument("JPEG quality " + std::to_string(quality)
                                + " must be from 1 to 100");
  const std::unique_ptr<void, int (*)(tjhandle)> handle(tjInitCompress(), tjDestroy);
  if (!handle)
    throw std::runtime_error("libjpeg-turbo could not start: no memory");
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int done = tjCompress2(handle.get(), picture.rgb.data(), picture.width, 0, picture.height,
                               TJPF_RGB, &bytes, &size, quality >= 90 ? TJSAMP_444 : TJSAMP_420,
                               quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(bytes, tjFree);
  if (done != 0)
    throw std::runtime_error(std::string("a picture cannot be written as JPEG: ")
                             + tjGetErrorStr2(handle.get()));
  const auto* first = reinterpret_cast<const std::byte*>(bytes);
  return {first, first + size};
}

} // namespace troupe::learner::data
