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
  std::string folder_key = "data.cache";          // name of the folder in messages
  std::string bytes_key = "data.cache_gigabytes"; // name of the limit in messages
  std::uint64_t most_bytes = 0;                   // limit for all copies in the folder
  /// Another process that uses the copy counts as stuck after this time without progress.
  std::chrono::seconds stuck{600};
  /// Receives progress messages, from one thread at a time.
  std::function<void(const std::string&)> tell = {};
};

/// A folder of copies in use. It is not removed during the lifetime of this object.
class CachedFolder {
public:
  CachedFolder(std::filesystem::path path, std::shared_ptr<const void> lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
  std::shared_ptr<const void> lock_;
};

/// Returns a folder in the cache with copies of `objects`, which are below `from`, and fetches them
/// if necessary. The folder is named after the objects and their versions and never changes. It
/// appears once all copies are there and verified, by their sizes and, where the ETag is an MD5, by
/// that. A fetch that was interrupted is continued. A copy that has changed since (in size, or in
/// modification time and MD5) is fetched again. The processes of a host share the cache: one
/// fetches, and the others wait. Before anything is fetched, the oldest copies that are not in use
/// are removed until all copies fit into `most_bytes` and onto the disk. Throws StoreError naming
/// the object or the key, the reason and the remedy, and std::system_error.
CachedFolder cached_folder(const StoreOptions& store, const ObjectAddress& from,
                           const std::vector<FolderObject>& objects, const CacheOptions& options);

} // namespace troupe::replay
