#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace troupe::experiments {

/// An empty folder for a benchmark in the folder for temporary files (TMPDIR). The destructor
/// removes it.
struct BenchFolder {
  BenchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe_bench_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("cannot make " + name
                               + "; set TMPDIR to a folder with 2 GB of free space");
    path = name;
  }
  ~BenchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;

  std::filesystem::path path;
};

} // namespace troupe::experiments
