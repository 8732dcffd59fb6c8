#pragma once

#include <filesystem>
#include <memory>

#include "experiments/report/video_module.hpp"

/// The parts of the module libtroupe_video.so.
namespace troupe::experiments::video {

std::unique_ptr<VideoFile> write(const std::filesystem::path& path, int width, int height,
                                 double frames_per_second);
VideoInfo read(const std::filesystem::path& path);

} // namespace troupe::experiments::video
