#pragma once

#include "replay/storage/segment_store.hpp"
#include "tests/replay/storage/storage_folder.hpp"

namespace troupe::replay {

using Bytes = std::vector<std::byte>;

inline constexpr std::uint64_t kHead = SegmentFile::kHeadBytes;
inline constexpr std::uint64_t kRecord = SegmentFile::kRecordBytes;

inline Bytes read_all(const SegmentStore& store, const BlobRef& ref) {
  Bytes bytes(ref.size());
  store.read(ref, bytes);
  return bytes;
}

} // namespace troupe::replay
