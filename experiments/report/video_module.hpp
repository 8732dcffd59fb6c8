#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "experiments/report/video.hpp"

namespace troupe::experiments {

/// A video file that is being written; the functions are those of VideoWriter.
class VideoFile {
public:
  virtual ~VideoFile() = default;
  virtual void add(std::span<const std::uint8_t> rgb) = 0;
  virtual void finish() = 0;
  virtual std::int64_t frames() const = 0;
  virtual std::string codec() const = 0;
};

/// The export "troupe_video_module" of libtroupe_video.so. FFmpeg is in a separate module so that
/// programs start on machines without it. The functions are those of VideoWriter and read_video().
struct VideoModule {
  static constexpr std::int32_t kVersion = 1;

  std::int32_t version = kVersion;
  std::unique_ptr<VideoFile> (*write)(const std::filesystem::path& path, int width, int height,
                                      double frames_per_second) = nullptr;
  VideoInfo (*read)(const std::filesystem::path& path) = nullptr;
};

} // namespace troupe::experiments
