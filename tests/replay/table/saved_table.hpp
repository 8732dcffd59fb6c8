#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "replay/table/table.hpp"
#include "replay/table/table_checkpoint.hpp"
#include "tests/replay/storage/storage_folder.hpp"

namespace troupe::replay {

/// Writes a checkpoint of the table to `folder` and replaces what is there.
inline void save(const Table& table, const std::filesystem::path& folder,
                 const std::filesystem::path& previous = {}) {
  std::filesystem::remove_all(folder);
  write_checkpoint(table.snapshot(), folder, previous);
}

/// Number of blobs in segments that are not shared with another checkpoint.
inline std::int64_t own_blobs(const std::filesystem::path& folder) {
  const CheckpointReader reader(folder);
  return std::count_if(
      reader.blobs().begin(), reader.blobs().end(), [&](const CheckpointBlob& blob) {
        return std::filesystem::hard_link_count(reader.segments()[blob.segment]->path()) == 1;
      });
}

/// Contents of all files below the folder, by name.
inline std::map<std::string, std::string> contents_of_folder(const std::filesystem::path& folder) {
  std::map<std::string, std::string> contents;
  for (const std::filesystem::path& file : files_in(folder))
    contents[file.filename().string()] = read_text(file);
  return contents;
}

/// Number of files below the folder that have another name elsewhere.
inline int shared_files(const std::filesystem::path& folder) {
  int shared = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    shared += entry.is_regular_file() && entry.hard_link_count() > 1 ? 1 : 0;
  return shared;
}

} // namespace troupe::replay
