#pragma once
// For table_load.cpp and table_part.cpp alone.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "replay/blocks.hpp"
#include "replay/checkpoint_reader.hpp"
#include "replay/replay.pb.h"
#include "replay/table.hpp"

namespace troupe::replay {

/// Reaches into a Table to build it again; believes nothing that a file says.
struct TableLoader {
  /// What the file says of each item, by key.
  struct Items {
    std::vector<ShapePtr> shapes{nullptr};
    std::vector<Table::Slot> slots;
    std::vector<std::uint32_t> times;
    std::vector<double> priorities;
    std::vector<std::uint64_t> keys;
    std::vector<std::uint32_t> sampler, remover; // orders
  };

  /// Where a chunk of the head lies.
  struct Stored {
    const CheckpointReader* from = nullptr;
    const BlockReader* file = nullptr; // for messages
    BlobKey key = {};
  };

  static wire::SavedTable load_head(BlockReader& file);
  static std::string compare(const BlockReader& file, const wire::SavedTable& head,
                             const Table& table, Table::ConfigChange change);
  static Items load_items(BlockReader& file, const wire::SavedTable& head, const Table& saved);
  static std::vector<std::uint32_t> load_order(BlockReader& file, std::uint64_t count);
  static void place_items(const Items& items, const wire::SavedTable& head, bool same,
                          Table& table);
  static void check_slot(const BlockReader& file, const wire::SavedTable& head, const Items& items,
                         const Table::Slot& slot);
  static void load_chunks(std::span<const Stored> stored, const wire::SavedTable& head,
                          Table& table);
  static std::shared_ptr<const Chunk> read_chunk(const CheckpointReader& from,
                                                 const CheckpointBlob& blob,
                                                 const ChunkRange& range, Table& table);
  static void link_chunks(std::span<const Stored> stored, const wire::SavedTable& head,
                          Table& table);
  static void load_counters(const wire::SavedTable& head, Table& table);
  static void keep_to_limits(Table& table);
  static Table saved_table(const BlockReader& file, const wire::SavedTable& head,
                           const Signature& signature);
  static std::string load(Table& table, const std::filesystem::path& folder,
                          Table::ConfigChange change);
  static std::int64_t load_part(Table& table, std::span<const std::filesystem::path> folders,
                                std::uint32_t part, std::uint32_t parts);
};

} // namespace troupe::replay
