#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace troupe::actors {

/// Writes a file whole: beside it under another name, to the disk, then renamed; the old one stays
/// when anything fails. A checksum goes behind the bytes. Throws std::runtime_error naming path and
/// reason (a full disk, no permission).
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// Reads what write_file wrote. Throws std::runtime_error when it is missing, cut short or changed.
std::vector<std::byte> read_file(const std::filesystem::path& path);

} // namespace troupe::actors
