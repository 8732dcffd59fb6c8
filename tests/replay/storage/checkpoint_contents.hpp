#pragma once

#include <map>
#include <string>

#include "replay/storage/checkpoint_reader.hpp"
#include "replay/storage/checkpoint_writer.hpp"
#include "replay/storage/storage_error.hpp"
#include "tests/replay/storage/storage_folder.hpp"
#include "tests/text.hpp"

namespace troupe::replay {

using Bytes = std::vector<std::byte>;
using Contents = std::map<BlobKey, Bytes>;

inline const Bytes kHeader = blob_of(5, 33);

inline void write_contents(const std::filesystem::path& folder,
                           const std::filesystem::path& previous, const Contents& contents,
                           CheckpointConfig config = {}) {
  CheckpointWriter writer(folder, previous, config);
  for (const auto& [key, bytes] : contents)
    if (!writer.keep(key))
      writer.add(key, bytes);
  writer.commit(kHeader);
}

inline Contents contents_of(const CheckpointReader& reader) {
  Contents contents;
  for (const CheckpointBlob& blob : reader.blobs()) {
    Bytes bytes(blob.place.size);
    reader.read(blob, bytes);
    contents[blob.key] = std::move(bytes);
  }
  return contents;
}

inline Contents some(std::uint64_t first, std::uint64_t count, std::size_t size) {
  Contents contents;
  for (std::uint64_t i = first; i < first + count; ++i)
    contents[{i % 3, i, i % 2}] = blob_of(i, size + i);
  return contents;
}

/// What is wrong with the checkpoint, "" if nothing is.
inline std::string damage_of(const std::filesystem::path& folder) {
  return error_of<StorageError>([&] { CheckpointReader(folder).verify(); });
}

} // namespace troupe::replay
