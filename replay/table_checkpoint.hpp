#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "replay/checkpoint_writer.hpp"
#include "replay/chunk.hpp"

namespace troupe::replay {

/// A table at a moment, from Table::snapshot(); it needs the table no more.
struct TableSnapshot {
  struct Part {
    BlobKey key;
    ChunkPtr chunk;
  };
  Compression compression = Compression::none; // of chunks that are not encoded yet
  std::vector<std::vector<std::byte>> header;  // the head, and what SavedTable says follows it
  std::vector<Part> chunks;
};

/// Writes it to `folder` as CheckpointWriter does: what `previous` has is not written again. That
/// one must be of the same table: a checkpoint that was written of it, or that it was loaded from.
/// Where it is damaged or gone all is written. Any thread; it waits for the disk. Throws
/// StorageError.
CheckpointCost write_checkpoint(const TableSnapshot& snapshot, const std::filesystem::path& folder,
                                const std::filesystem::path& previous = {},
                                const CheckpointConfig& config = {});

constexpr char kTableMagic[8] = {'T', 'R', 'P', 'T', 'A', 'B', 'L', 'E'}; // in front of the header
constexpr std::uint64_t kTableVersion = 4;

} // namespace troupe::replay
