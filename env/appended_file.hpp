#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>

#include "env/sockets/descriptor.hpp"

namespace troupe::env {

/// A file to which whole records are appended. While the disk is full, records wait in memory; they
/// are written in order once there is room. Records that would exceed kMostWaiting are dropped and
/// counted. One thread at a time. Several processes may append to the same file; each record is
/// written by one call unless the disk fills up.
class AppendedFile {
public:
  static constexpr std::size_t kMostWaiting = std::size_t{4} << 20; // bytes

  /// Opens or creates the file. Throws std::runtime_error naming the path and the reason.
  explicit AppendedFile(std::filesystem::path path);

  /// Writes the record or lets it wait. Returns false if it was dropped.
  bool append(std::string record);

  /// Tries to write the waiting records. Returns why that failed, or an empty string.
  const std::string& flush();

  /// Flushes. Returns a line for the log if the file has stopped or resumed taking records since
  /// the last call.
  std::optional<std::string> news();

  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
  wire::Descriptor file_;
  std::deque<std::string> waiting_; // of the first record, only the part not yet written
  std::size_t bytes_ = 0;           // in waiting_
  std::string problem_;
  bool told_ = false;                     // news() has reported the problem
  std::int64_t waited_ = 0, dropped_ = 0; // not yet reported by news()
};

} // namespace troupe::env
