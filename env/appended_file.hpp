#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe::env {

/// A file that grows by whole records. While the disk is full they wait in memory and are written,
/// in their order, once there is room; what is more than kMostWaiting is dropped and counted. One
/// thread. Several processes may append to one file, each record at once.
class AppendedFile {
public:
  static constexpr std::size_t kMostWaiting = std::size_t{4} << 20; // bytes

  /// Opens or makes it. Throws std::runtime_error naming path and reason.
  explicit AppendedFile(std::filesystem::path path);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  /// False: it was dropped.
  bool append(std::string record);

  /// Tries to write what waits; the reason why it cannot, or empty.
  const std::string& flush();

  /// Flushes; a sentence for a log when the file has stopped taking records since the last call, or
  /// takes them again.
  std::optional<std::string> news();

  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
  int file_;
  std::deque<std::string> waiting_; // of the first, what is still to be written
  std::size_t bytes_ = 0;           // of them
  std::string problem_;
  bool told_ = false;                     // news() said that records wait
  std::int64_t waited_ = 0, dropped_ = 0; // since then
};

} // namespace troupe::env
