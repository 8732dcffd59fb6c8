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

struct VideoWriter::Impl {
  std::unique_ptr<VideoFile> file;
};

VideoWriter::VideoWriter(const std::filesystem::path& path, int width, int height,
                         double frames_per_second)
    : impl_(std::make_unique<Impl>(
        Impl{module_for(path, "written").write(path, width, height, frames_per_second)})) {}

VideoWriter::~VideoWriter() = default;

void VideoWriter::add(std::span<const std::uint8_t> rgb) {
  impl_->file->add(rgb);
}

void VideoWriter::finish() {
  impl_->file->finish();
}

std::int64_t VideoWriter::frames() const {
  return impl_->file->frames();
}

std::string VideoWriter::codec() const {
  return impl_->file->codec();
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
