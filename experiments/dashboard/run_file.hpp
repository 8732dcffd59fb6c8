#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/web/http.hpp"

namespace troupe::experiments::dashboard {

/// A video or picture of a run.
struct RunFile {
  std::string path; // below the run: "videos/20000.mp4"
  double time = 0;  // when it was written, in seconds since 1970
};

/// Those in videos/ (MP4) or pictures/ (PNG), the newest first, at most 200.
std::vector<RunFile> run_files(const std::filesystem::path& run, const std::string& kind);

/// Answers GET of one of them; with the header Range a part, 4 MiB at most at once. 404 for any
/// other path.
web::Response file_reply(const std::filesystem::path& run, const web::Request& request);

} // namespace troupe::experiments::dashboard
