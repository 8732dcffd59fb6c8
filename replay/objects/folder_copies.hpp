#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "replay/objects/object_store.hpp"

namespace troupe::replay {

/// Copies folders to and from an object store. A folder is complete if it contains one particular
/// file (manifest.json of a checkpoint, manifest of a recording), so that file is stored last and
/// removed first. All functions throw StoreError and std::system_error; a folder that is only
/// partly copied is then not complete.

/// Copies all files of `folder` to `to`, with `last` after all others. Objects that the store
/// already has there are removed first, beginning with `last`. `sent` is called with the number of
/// bytes whenever some are stored.
void upload_folder(ObjectStore& store, const std::filesystem::path& folder, const ObjectAddress& to,
                   const std::string& last,
                   const std::function<void(std::int64_t bytes)>& sent = {});

/// An object and the name of its file relative to a folder.
struct FolderObject {
  std::string name;
  StoredObject object;
};

/// Returns the objects below `folder`, without the empty ones that represent folders. Names are
/// checked before they are used as paths.
std::vector<FolderObject> folder_objects(ObjectStore& store, const ObjectAddress& folder);

/// Copies all objects below `from` to `folder`, which must not exist. Files are written to
/// `.<name>.partial` in the same parent, where a download that was interrupted is continued. Once
/// all files are there and verified (fetch_verified()), `check` is called with that path; if it
/// throws, the files are removed, otherwise the folder is renamed. Names are checked before they
/// are used as paths, and the free space on the disk before anything is written.
void download_folder(ObjectStore& store, const ObjectAddress& from,
                     const std::filesystem::path& folder, const std::string& last,
                     const std::function<void(const std::filesystem::path&)>& check = {});

/// Returns the path of the local copy of a recording: recordings/<bucket>/<key>, relative to the
/// working folder.
std::filesystem::path recording_copy(const ObjectAddress& recording);

/// Removes the objects of a folder, `last` first.
void remove_folder(ObjectStore& store, const ObjectAddress& folder, const std::string& last);

} // namespace troupe::replay
