#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace troupe::experiments {

/// A file of lines that never grows beyond `most_bytes`: a full one becomes FILE.1, in place of the
/// one before it. One thread. A line that cannot be written is lost; nothing throws.
class RotatedFile {
public:
  static constexpr std::int64_t kMostBytes = std::int64_t{4} << 20;
  explicit RotatedFile(std::filesystem::path path, std::int64_t most_bytes = kMostBytes);

  /// Without its line end; one that is longer than a file is cut.
  void write(std::string_view line);

private:
  void open();
  std::filesystem::path path_;
  std::int64_t most_bytes_;
  std::int64_t bytes_ = 0; // of the present file
  std::ofstream out_;
};

} // namespace troupe::experiments
