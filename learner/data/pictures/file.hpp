#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace troupe::learner::data {

/// A file that several threads may read at the same time, each at any position. Throws DataError
/// naming the path if the file is missing, forbidden or too short. Throws ReadError if the system
/// still fails after retries within two seconds (EIO, or a network file system that does not
/// respond).
class File {
public:
  explicit File(std::filesystem::path path);
  ~File();
  File(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; } // bytes, at the time of opening

  /// Reads exactly these bytes. Throws DataError, before allocating memory, if not all of them
  /// exist.
  void read(std::uint64_t offset, std::uint64_t size, std::vector<std::byte>& out) const;

private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// Returns the sorted paths of regular files in a folder whose names `wanted` accepts. With `deep`,
/// also searches its subfolders. Throws DataError naming the folder.
std::vector<std::filesystem::path> list_files(const std::filesystem::path& folder, bool deep,
                                              bool (*wanted)(const std::string& name));
/// Returns the sorted names of the subfolders, without hidden ones.
std::vector<std::string> list_folders(const std::filesystem::path& folder);
/// Returns the lines of a text file that are not empty; none if the file does not exist. Throws as
/// File does.
std::vector<std::string> read_lines(const std::filesystem::path& path);

} // namespace troupe::learner::data
