#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "env/random.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::replay {

/// An empty folder on the disk of the build tree, removed by the destructor.
struct StorageFolder {
  TemporaryFolder folder{in_build()};
  std::filesystem::path path = folder.path();
};

/// `size` bytes determined by `seed`.
inline std::vector<std::byte> blob_of(std::uint64_t seed, std::size_t size) {
  env::Random random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(random.bits());
  return bytes;
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::error_code error;
  const bool as_long = std::filesystem::file_size(path, error) == bytes.size();
  // Overwrites a file of the same size, because on some file systems closing a truncated file waits
  // for the disk.
  std::ofstream(path, as_long && !error ? std::ios::binary | std::ios::in : std::ios::binary)
      << bytes;
}

inline std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  return files;
}

} // namespace troupe::replay
