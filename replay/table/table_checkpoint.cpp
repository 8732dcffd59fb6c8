#include "replay/table/table_checkpoint.hpp"

#include "replay/storage/blocks.hpp"
#include "replay/storage/storage_error.hpp"

namespace troupe::replay {

namespace {

void write(const TableSnapshot& snapshot, const std::filesystem::path& folder,
           const std::filesystem::path& previous) {
  CheckpointWriter writer(folder, previous);
  // Files are always compressed: the disk is slower than the encoder.
  ChunkEncoder encoder(snapshot.compression == Compression::none ? Compression::zstd
                                                                 : snapshot.compression);
  for (const TableSnapshot::Part& part : snapshot.chunks) {
    if (writer.keep(part.key))
      continue;
    const auto low = static_cast<std::uint32_t>(part.key.low);
    const auto high = static_cast<std::uint32_t>(part.key.high);
    writer.add(part.key, part.chunk->encoded() ? part.chunk->packed()
                                               : encoder.encode(*part.chunk, low, high)->packed());
  }
  BlockWriter header;
  header.raw(kTableMagic, sizeof kTableMagic);
  header.raw(&kTableVersion, sizeof kTableVersion);
  for (const std::vector<std::byte>& block : snapshot.header)
    header.block(block);
  writer.commit(header.bytes());
}

} // namespace

void write_checkpoint(const TableSnapshot& snapshot, const std::filesystem::path& folder,
                      const std::filesystem::path& previous) {
  try {
    return write(snapshot, folder, previous);
  } catch (const StorageError& error) {
    if (previous.empty() || error.kind() == StorageError::Kind::full)
      throw;
  }
  return write(snapshot, folder, {});
}

} // namespace troupe::replay
