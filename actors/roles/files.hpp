#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

/// Replaces a file atomically: writes another one, flushes it to the disk and renames it; on
/// failure the old file stays. Appends a checksum. Throws std::runtime_error naming path and reason
/// (a full disk, no permission).
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// The same into the space of `<path>.spare`, whose name it exchanges with `path`: bytes of the
/// same number as before can be written on a full disk.
void write_reserved_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// With its spare. Throws std::filesystem::filesystem_error.
void remove_reserved_file(const std::filesystem::path& path);

/// Reads a file of these functions. Throws std::runtime_error if it is missing, truncated or
/// changed.
std::vector<std::byte> read_file(const std::filesystem::path& path);

/// Of a checkpoint's or snapshot's folder of this name; -1: it is not one's.
std::int64_t number_of(const std::string& name);

/// The folders of checkpoints or snapshots in `folder`: names that are numbers, ascending. Empty if
/// it cannot be read.
std::vector<std::pair<std::int64_t, std::filesystem::path>>
numbered_folders(const std::filesystem::path& folder);

/// Exchanges the names of two folders, atomically if the file system can. Throws
/// std::filesystem::filesystem_error.
void exchange(const std::filesystem::path& a, const std::filesystem::path& b);

} // namespace troupe::actors
