#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "replay/objects/object_store.hpp"

namespace troupe::replay {

/// Folders that are complete once they have one certain file (a checkpoint its manifest.json, a
/// recording its manifest), copied to and from an object store by the same rule: that file comes
/// last and goes first. All functions throw StoreError and std::system_error, and a folder that is
/// half copied then is not complete.

/// Copies all files of `folder`, `last` after all others. What the store has there is removed
/// before, `last` first. `sent` hears of bytes as they are stored.
void upload_folder(ObjectStore& store, const std::filesystem::path& folder, const ObjectAddress& to,
                   const std::string& last,
                   const std::function<void(std::int64_t bytes)>& sent = {});

/// An object and the name of its file below a folder.
struct FolderObject {
  std::string name;
  StoredObject object;
};

/// The objects below `folder`, without the empty ones that stand for folders. Names are checked
/// before they become paths.
std::vector<FolderObject> folder_objects(ObjectStore& store, const ObjectAddress& folder);

/// Copies all objects to `folder`, which must not exist and appears when all are there, verified
/// (fetch_verified()), and `check` of its former name throws nothing; until then they are in
/// `.<name>.partial` beside it. What a stopped process left there is continued; what `check`
/// refuses is removed. Names are checked before they become paths, and the space on the disk before
/// anything is written.
void download_folder(ObjectStore& store, const ObjectAddress& from,
                     const std::filesystem::path& folder, const std::string& last,
                     const std::function<void(const std::filesystem::path&)>& check = {});

/// Where a recording of this address has its copy: recordings/<bucket>/<key>, relative to the
/// working folder.
std::filesystem::path recording_copy(const ObjectAddress& recording);

/// Removes the objects of a folder, `last` first.
void remove_folder(ObjectStore& store, const ObjectAddress& folder, const std::string& last);

} // namespace troupe::replay
