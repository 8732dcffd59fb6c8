#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

namespace troupe::actors {

/// Writes a file whole: beside it under another name, to the disk, then renamed; the old one stays
/// when anything fails. A checksum goes behind the bytes. Throws std::runtime_error naming path and
/// reason (a full disk, no permission).
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// Reads what write_file wrote. Throws std::runtime_error when it is missing, cut short or changed.
std::vector<std::byte> read_file(const std::filesystem::path& path);

/// The folders in `folder` whose names are numbers, the least first; those of checkpoints and
/// snapshots. None where it cannot be read.
std::vector<std::pair<std::int64_t, std::filesystem::path>>
numbered_folders(const std::filesystem::path& folder);

} // namespace troupe::actors
