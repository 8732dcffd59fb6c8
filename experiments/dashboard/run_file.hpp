#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/web/http.hpp"

namespace troupe::experiments::dashboard {

/// A video or picture of a run.
struct RunFile {
  std::string path; // relative to the run: "videos/20000.mp4"
  double time = 0;  // time of the last change, in seconds since 1970
};

/// The files in videos/ (MP4) or pictures/ (PNG), newest first, at most 200.
std::vector<RunFile> run_files(const std::filesystem::path& run, const std::string& kind);

/// Answers a GET request for one of these files. With a single range of bytes in the header
/// Range, returns a part of at most 4 MiB, or 416 if the file has none of it. Answers 404 for any
/// other path.
web::Response file_reply(const std::filesystem::path& run, const web::Request& request);

} // namespace troupe::experiments::dashboard
