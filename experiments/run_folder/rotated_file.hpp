#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace troupe::experiments {

/// A file of lines of at most `most_bytes` bytes. A full file replaces FILE.1. Lines that cannot be
/// written are dropped; nothing throws. Use from one thread.
class RotatedFile {
public:
  static constexpr std::int64_t kMostBytes = std::int64_t{4} << 20;
  explicit RotatedFile(std::filesystem::path path, std::int64_t most_bytes = kMostBytes);

  /// `line` has no newline. A line longer than a file is truncated.
  void write(std::string_view line);

private:
  void open();
  std::filesystem::path path_;
  std::int64_t most_bytes_;
  std::int64_t bytes_ = 0; // size of the current file
  std::ofstream out_;
};

} // namespace troupe::experiments
