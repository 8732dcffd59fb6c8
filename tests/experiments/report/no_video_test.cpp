// Simulates a machine without FFmpeg: this program's dlopen does not find a library that the video
// module needs.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstring>

#include "experiments/report/video.hpp"

extern "C" void* dlopen(const char* name, int flags) {
  using Open = void* (*)(const char*, int);
  static const auto real = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "dlopen"));
  const bool video = name != nullptr && std::strstr(name, "libtroupe_video") != nullptr;
  return real(video ? "libavformat-absent-for-this-test.so.59" : name, flags);
}

using namespace troupe::experiments;

TEST_CASE("Without FFmpeg, the error names the missing library and what to install") {
  const std::string reason = video_unavailable_reason();
  for (const char* part : {"libavformat-absent-for-this-test.so.59", "cannot open shared object",
                           "libavcodec59", "evaluation.video"})
    CHECK_MESSAGE(reason.find(part) != std::string::npos, part);
  CHECK_THROWS_WITH_AS(write_video("film.mp4", 64, 64),
                       ("film.mp4: cannot be written: " + reason).c_str(), std::runtime_error);
  CHECK_THROWS_WITH_AS(read_video("film.mp4"), ("film.mp4: cannot be read: " + reason).c_str(),
                       std::runtime_error);
}
