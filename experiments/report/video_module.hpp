#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "experiments/report/video.hpp"

namespace troupe::experiments {

/// The export "troupe_video_module" of libtroupe_video.so. FFmpeg is in a separate module so that
/// programs start on machines without it. The functions are write_video() and read_video().
struct VideoModule {
  static constexpr std::int32_t kVersion = 1;

  std::int32_t version = kVersion;
  std::unique_ptr<VideoFile> (*write)(const std::filesystem::path& path, int width, int height,
                                      double frames_per_second) = nullptr;
  VideoInfo (*read)(const std::filesystem::path& path) = nullptr;
};

} // namespace troupe::experiments
