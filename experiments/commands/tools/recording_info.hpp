#pragma once

#include <filesystem>

namespace troupe::experiments::commands {

/// The path of --out without slashes at its end, so that a suffix makes it another name in the same
/// folder. Throws std::invalid_argument if it exists.
std::filesystem::path new_folder(const std::filesystem::path& out);

/// Prints what a recording contains: its origin, steps and returns. Throws replay::StorageError.
void show_recording(const std::filesystem::path& folder, bool json);

/// Reads every step, verifies the checksums and prints what was read. Throws replay::StorageError.
void check_recording(const std::filesystem::path& folder, bool json);

} // namespace troupe::experiments::commands
