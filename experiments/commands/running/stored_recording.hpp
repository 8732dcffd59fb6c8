#pragma once

#include <filesystem>
#include <string>

namespace troupe::experiments::commands {

/// The folder of a recording: `recording` itself, or of s3://bucket/prefix/NAME its copy in
/// recordings/bucket/prefix/NAME, which is fetched and verified unless it is there. A recording
/// never changes, so a copy is not compared with the store again. Throws as
/// replay::download_folder(), and replay::StorageError if what was fetched is damaged.
std::filesystem::path local_recording(const std::string& recording);

/// The recording is in an object store: s3://bucket/prefix/NAME with a recording's last file.
bool is_stored_recording(const std::string& recording);

/// Throws std::invalid_argument if there is something at s3://bucket/prefix/NAME, and
/// replay::StoreError if the store cannot be used; before the work of recording.
void check_new_recording(const std::string& address);

/// Copies the recording in local_recording()'s folder of this address to the store.
void store_recording(const std::string& address);

} // namespace troupe::experiments::commands
