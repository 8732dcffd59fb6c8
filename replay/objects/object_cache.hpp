#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "replay/objects/folder_copies.hpp"

namespace troupe::replay {

struct CacheOptions {
  std::filesystem::path folder = "datasets";
  std::string folder_key = "data.cache";          // what messages call the folder
  std::string bytes_key = "data.cache_gigabytes"; // and the bound
  std::uint64_t most_bytes = 0;                   // of all copies in the folder
  std::chrono::seconds stuck{600}; // a process that uses the copy and does nothing this long
  std::function<void(const std::string&)> tell = {}; // lines for people; one thread at a time
};

/// A folder of copies that is in use: it is not removed while this lives.
class CachedFolder {
public:
  CachedFolder(std::filesystem::path path, std::shared_ptr<const void> lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
  std::shared_ptr<const void> lock_;
};

/// Copies of `objects` of `from` in a folder below the cache's, which is named after them and their
/// versions and never changes. It appears when all are there and verified: by their sizes, and by
/// MD5 where the ETag is one. What a stopped process left is continued. A copy that was changed
/// since, by size, or by time and MD5, is fetched again. Processes of a host share the cache: one
/// fetches, the others wait for it. Before anything is fetched, the oldest copies not in use are
/// removed until all fit `most_bytes` and the disk. Throws StoreError naming the object or the key,
/// the reason and the remedy, and std::system_error.
CachedFolder cached_folder(const StoreOptions& store, const ObjectAddress& from,
                           const std::vector<FolderObject>& objects, const CacheOptions& options);

} // namespace troupe::replay
