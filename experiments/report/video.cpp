#include "experiments/report/video.hpp"

#include <stdexcept>

#include "collectives/backends/module_file.hpp"
#include "experiments/report/video_module.hpp"

namespace troupe::experiments {
namespace {

/// Loads the module at the first call; it stays loaded for the rest of the process.
const collectives::ModuleFile<VideoModule>& module_file() {
  static const auto loaded = collectives::load_module<VideoModule>("troupe_video", "");
  return loaded;
}

const VideoModule& module_for(const std::filesystem::path& path, const char* use) {
  if (const auto reason = video_unavailable_reason(); !reason.empty()) {
    throw std::runtime_error(path.string() + ": cannot be " + use + ": " + reason);
  }
  return *module_file().module;
}

} // namespace

std::unique_ptr<VideoFile> write_video(const std::filesystem::path& path, int width, int height,
                                       double frames_per_second) {
  return module_for(path, "written").write(path, width, height, frames_per_second);
}

VideoInfo read_video(const std::filesystem::path& path) {
  return module_for(path, "read").read(path);
}

std::string video_unavailable_reason() {
  const std::string& reason = module_file().reason;
  return reason.empty()
             ? reason
             : reason
                   + "; install FFmpeg's libraries (Debian 12: libavformat59, libavcodec59, "
                     "libswscale6), or turn videos off (evaluation.video: false)";
}

} // namespace troupe::experiments
