#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace troupe::experiments {

/// Maximum width and height of a GIF.
inline constexpr int kMostGifPixels = 256;

/// A video file that is being written: an MP4 with H.264 if libx264 is available, otherwise MPEG-4
/// part 2. A path that ends in ".gif" produces an animated GIF of 256 fixed colours. The file is
/// complete after finish(); otherwise the destructor removes it. One thread at a time. Throws
/// std::invalid_argument (sizes) or std::runtime_error naming path and reason.
class VideoFile {
public:
  virtual ~VideoFile() = default;

  /// rgb: [height, width, 3], top row first.
  virtual void add(std::span<const std::uint8_t> rgb) = 0;
  virtual void finish() = 0;

  virtual std::int64_t frames() const = 0;
  virtual std::string codec() const = 0; // "libx264", "mpeg4", "gif"
};

/// Begins a video. Width and height are 2 to 4096 pixels. An MP4 rounds them up to even numbers; a
/// GIF divides them by a whole number. Throws the exceptions of VideoFile.
std::unique_ptr<VideoFile> write_video(const std::filesystem::path& path, int width, int height,
                                       double frames_per_second = 30);

/// Properties of a video file, found by decoding all of it.
struct VideoInfo {
  int width = 0;
  int height = 0;
  std::int64_t frames = 0;
  double seconds = 0;
  std::string codec;   // "h264", "mpeg4", "gif"
  double mean_red = 0; // of the first frame, from 0 to 255
  double mean_green = 0;
  double mean_blue = 0;
};

/// Throws std::runtime_error naming path and reason.
VideoInfo read_video(const std::filesystem::path& path);

/// Why videos cannot be written or read in this installation, and the remedy; "" if they can.
/// FFmpeg is used only by a module, libtroupe_video.so, which is loaded when it is first needed.
std::string video_unavailable_reason();

} // namespace troupe::experiments
