#include "experiments/commands/running/stored_recording.hpp"

#include <cstdio>
#include <stdexcept>

#include "replay/objects/folder_copies.hpp"
#include "replay/objects/store_error.hpp"
#include "replay/recordings/recording.hpp"

namespace troupe::experiments::commands {
namespace {

namespace fs = std::filesystem;
constexpr const char* kLastOfRecording = "manifest"; // as in replay/storage

replay::ObjectAddress address_of(const std::string& text) {
  return replay::parse_object_address(text, "the recording");
}

} // namespace

fs::path local_recording(const std::string& recording) {
  if (!replay::is_object_address(recording)) {
    return recording;
  }
  const auto address = address_of(recording);
  const fs::path folder = replay::recording_copy(address);
  if (!fs::exists(folder / kLastOfRecording)) {
    replay::ObjectStore store(replay::store_options());
    fs::create_directories(fs::absolute(folder).parent_path());
    replay::download_folder(store, address, folder, kLastOfRecording,
                            [](const fs::path& fetched) { replay::Recording(fetched).verify(); });
    std::fprintf(stderr, "troupe: fetched %s to %s\n", recording.c_str(), folder.c_str());
  }
  return folder;
}

bool is_stored_recording(const std::string& recording) {
  if (!replay::is_object_address(recording)) {
    return false;
  }
  replay::ObjectStore store(replay::store_options());
  try {
    store.size(below(address_of(recording), kLastOfRecording));
    return true;
  } catch (const replay::StoreError& missing) {
    if (missing.status() != 404) {
      throw;
    }
    return false;
  }
}

void check_new_recording(const std::string& address) {
  replay::ObjectStore store(replay::store_options());
  if (!store.list(address_of(address), 100'000).empty()) {
    throw std::invalid_argument(address + " exists; name another one, or remove it");
  }
}

void store_recording(const std::string& address) {
  replay::ObjectStore store(replay::store_options());
  const auto there = address_of(address);
  const fs::path folder = replay::recording_copy(there);
  try {
    replay::upload_folder(store, folder, there, kLastOfRecording);
  } catch (const std::exception& failure) {
    throw std::runtime_error(std::string(failure.what()) + "; the recording is complete in "
                             + folder.string());
  }
  std::fprintf(stderr, "troupe: copied %s to %s\n", folder.c_str(), address.c_str());
}

} // namespace troupe::experiments::commands
