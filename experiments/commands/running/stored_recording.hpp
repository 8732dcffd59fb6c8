#pragma once

#include <filesystem>
#include <string>

namespace troupe::experiments::commands {

/// The folder of a recording: `recording` itself, or for s3://bucket/prefix/NAME the local copy in
/// recordings/bucket/prefix/NAME, which is downloaded and verified unless it exists. A recording
/// never changes, so an existing copy is not compared with the store. Throws the exceptions of
/// replay::download_folder(), and replay::StorageError if the downloaded recording is damaged.
std::filesystem::path local_recording(const std::string& recording);

/// Whether the object store holds a complete recording at s3://bucket/prefix/NAME: one with a
/// recording's last file.
bool is_stored_recording(const std::string& recording);

/// Call it before recording. Throws std::invalid_argument if something already exists at
/// s3://bucket/prefix/NAME, and replay::StoreError if the store cannot be used.
void check_new_recording(const std::string& address);

/// Uploads the recording in local_recording()'s folder for this address to the store.
void store_recording(const std::string& address);

} // namespace troupe::experiments::commands
