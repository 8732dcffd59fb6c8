#pragma once

#include <filesystem>

namespace troupe::experiments::commands {

/// Throws std::invalid_argument if --out of a command exists.
void refuse_existing(const std::filesystem::path& out);

/// Prints what a recording holds: who made it, its steps and returns. Throws replay::StorageError.
void show_recording(const std::filesystem::path& folder, bool json);

/// Reads every step and compares it with the checksums; prints what was read. Throws as above.
void check_recording(const std::filesystem::path& folder, bool json);

} // namespace troupe::experiments::commands
