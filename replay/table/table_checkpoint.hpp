#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "replay/chunks/chunk.hpp"
#include "replay/storage/checkpoint_writer.hpp"

namespace troupe::replay {

/// A table at one moment, from Table::snapshot(); independent of the table.
struct TableSnapshot {
  struct Part {
    BlobKey key;
    ChunkPtr chunk;
  };
  Compression compression = Compression::none; // of chunks that are not encoded yet
  std::vector<std::vector<std::byte>> header; // laid out as described at SavedTable in replay.proto
  std::vector<Part> chunks;
};

/// Every 16th checkpoint of a series is written without a previous one. So damage of a file on the
/// disk affects at most 16 checkpoints in a row, and the average checkpoint costs a sixteenth of
/// the table's size in addition.
constexpr std::uint64_t kWholeCheckpointPeriod = 16;

/// Writes a snapshot to `folder` with a CheckpointWriter; chunks that `previous` contains are
/// linked instead of written. `previous` must be a checkpoint written from the same table, or the
/// one that the table was loaded from; if it is damaged or missing, everything is written. May be
/// called on any thread and waits for the disk. Throws StorageError.
void write_checkpoint(const TableSnapshot& snapshot, const std::filesystem::path& folder,
                      const std::filesystem::path& previous = {});

constexpr char kTableMagic[8] = {'T', 'R', 'P', 'T', 'A', 'B', 'L', 'E'}; // precedes the header
constexpr std::uint64_t kTableVersion = 4;

} // namespace troupe::replay
