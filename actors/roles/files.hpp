#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

/// Replaces a file atomically: writes a new file with a checksum, flushes it to the disk and
/// renames it. On failure the old file stays. Throws std::runtime_error naming the path and the
/// reason (for example a full disk or a missing permission).
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// Like write_file(), but writes into the existing space of `<path>.spare` and exchanges its name
/// with `path`: the same number of bytes as before can be written even on a full disk.
void write_reserved_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// Removes the file and its spare, if the file system allows it.
void remove_reserved_file(const std::filesystem::path& path);

/// Reads a file that one of these functions wrote. Throws std::runtime_error if it is missing,
/// truncated or changed.
std::vector<std::byte> read_file(const std::filesystem::path& path);

/// Returns the number in the name of a checkpoint's or snapshot's folder; -1 if the name is not a
/// number.
std::int64_t number_of(const std::string& name);

/// Returns the folders of checkpoints or snapshots in `folder`, whose names are numbers, in
/// ascending order. Empty if `folder` cannot be read.
std::vector<std::pair<std::int64_t, std::filesystem::path>>
numbered_folders(const std::filesystem::path& folder);

/// Exchanges the names of two folders, atomically if the file system can. Throws
/// std::filesystem::filesystem_error.
void exchange(const std::filesystem::path& a, const std::filesystem::path& b);

} // namespace troupe::actors
