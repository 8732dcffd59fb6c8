#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "replay/replay.pb.h"
#include "replay/storage/blocks.hpp"
#include "replay/storage/checkpoint_reader.hpp"
#include "replay/table/table_checkpoint.hpp"
#include "replay/table/table_state.hpp"

// Converts the contents of a table to and from checkpoints; implements Table::snapshot(), load()
// and load_part(). Files are untrusted: whatever they contain, loading either succeeds or throws
// std::runtime_error.
namespace troupe::replay {

TableSnapshot snapshot_of(const TableState& table);

struct LoadedTable {
  TableState state;
  std::string difference; // between the saved and the table's configuration; "": none
};

/// Loads a checkpoint into a state with the configuration and store of `into`. With
/// `accept_other_config` the result may exceed the limits of `into`, and its rate limiter has the
/// saved counters: the caller corrects both.
LoadedTable load_table(const TableState& into, const std::filesystem::path& folder,
                       bool accept_other_config);

/// Loads part `part` of `parts` of several checkpoints; otherwise like load_table().
TableState load_table_part(const TableState& into, std::span<const std::filesystem::path> folders,
                           std::uint32_t part, std::uint32_t parts);

/// A checkpoint whose header and items have been read and checked.
struct SavedTable {
  SavedTable(const std::filesystem::path& folder, const TableState& into, bool accept_other_config);
  SavedTable(const SavedTable&) = delete;
  SavedTable& operator=(const SavedTable&) = delete;

  CheckpointReader from;
  BlockReader file;
  wire::SavedTable head;
  std::string difference;
  std::vector<ShapePtr> shapes; // by shape number
  SavedItems items;
};

/// A chunk of a table that is being loaded, and the checkpoint that contains it.
struct StoredChunk {
  wire::SavedChunk chunk;
  const SavedTable* saved = nullptr;
  BlobKey key = {};
};

/// Builds a table from its parts; `head` contains the counters and writers.
TableState build_table(const TableState& into, const wire::SavedTable& head, SavedItems items,
                       const std::vector<ShapePtr>& shapes, std::span<const StoredChunk> chunks,
                       bool same_selectors);

} // namespace troupe::replay
