#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace troupe::learner::data {

/// A file that threads read at once, each where it wants. Throws DataError naming the path when the
/// file is missing, forbidden or too short, and ReadError when the system still fails (EIO, a
/// network file system that does not answer) after retries within two seconds.
class File {
public:
  explicit File(std::filesystem::path path);
  ~File();
  File(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; } // bytes, when it was opened

  /// Exactly these bytes. Throws DataError, before it takes memory, when they are not all there.
  void read(std::uint64_t offset, std::uint64_t size, std::vector<std::byte>& out) const;

private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// Paths of the regular files below a folder whose names `wanted` accepts, sorted; with `deep` also
/// in folders below it. Throws DataError naming the folder.
std::vector<std::filesystem::path> list_files(const std::filesystem::path& folder, bool deep,
                                              bool (*wanted)(const std::string& name));
/// Names of the folders in a folder, sorted, without hidden ones.
std::vector<std::string> list_folders(const std::filesystem::path& folder);
/// Lines of a text file, without the empty ones; none when there is no such file.
std::vector<std::string> read_lines(const std::filesystem::path& path);

} // namespace troupe::learner::data
