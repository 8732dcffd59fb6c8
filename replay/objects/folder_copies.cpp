#include "replay/objects/folder_copies.hpp"

#include <algorithm>
#include <vector>

#include "env/whole_file.hpp"
#include "replay/objects/copied_files.hpp"
#include "replay/objects/store_error.hpp"

namespace troupe::replay {

namespace fs = std::filesystem;

namespace {

/// Returns the relative names of all files, `last` at the end. Throws StoreError if `last` is
/// missing.
std::vector<std::string> names_of_folder(const fs::path& folder, const std::string& last) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) {
      names.push_back(fs::relative(entry.path(), folder).generic_string());
      if (!is_plain_name(names.back()))
        throw StoreError(entry.path().string() + " has a name that an object cannot have");
    }
  std::sort(names.begin(), names.end());
  const auto found = std::find(names.begin(), names.end(), last);
  if (found == names.end())
    throw StoreError(folder.string() + " has no file " + last + ": it is not complete");
  std::rotate(found, found + 1, names.end());
  return names;
}

/// Returns the name of an object relative to `folder`. Throws StoreError if it is not safe as a
/// path.
std::string relative_name(const StoredObject& object, const ObjectAddress& folder) {
  const std::string prefix = folder.key.empty() ? "" : folder.key + "/";
  std::string name =
      object.key.starts_with(prefix) ? object.key.substr(prefix.size()) : std::string();
  if (!is_plain_name(name))
    throw StoreError(
        text_of(folder)
        + " has an object whose name cannot be a file name; remove it, or name a folder "
          "that Troupe wrote");
  return name;
}

} // namespace

std::vector<FolderObject> folder_objects(ObjectStore& store, const ObjectAddress& folder) {
  std::vector<FolderObject> found;
  for (StoredObject& object : store.list(folder)) {
    if (object.bytes == 0 && object.key.ends_with('/'))
      continue;
    std::string name = relative_name(object, folder);
    found.push_back({.name = std::move(name), .object = std::move(object)});
  }
  return found;
}

namespace {

/// Throws if the disk has too little space for the objects that are not fetched yet.
void check_space(const fs::path& folder, const std::vector<FolderObject>& objects) {
  std::uintmax_t bytes = 0;
  std::error_code unknown;
  for (const auto& [name, object] : objects) {
    const auto whole = static_cast<std::uintmax_t>(object.bytes);
    const auto there = fs::file_size(folder / name, unknown);
    bytes += whole - (unknown ? 0 : std::min(there, whole));
  }
  const auto space = fs::space(folder, unknown);
  if (!unknown && space.available < bytes)
    throw StoreError(folder.string() + " has " + std::to_string(space.available)
                     + " bytes free and the copy needs " + std::to_string(bytes)
                     + "; free some, or name another folder");
}

/// Removes the files below `folder` that belong to none of the objects.
void remove_others(const fs::path& folder, const std::vector<FolderObject>& objects) {
  std::vector<fs::path> others;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (!entry.is_directory()
        && std::ranges::find(objects, fs::relative(entry.path(), folder).generic_string(),
                             &FolderObject::name)
               == objects.end())
      others.push_back(entry.path());
  for (const fs::path& other : others)
    fs::remove(other);
}

} // namespace

void upload_folder(ObjectStore& store, const fs::path& folder, const ObjectAddress& to,
                   const std::string& last, const std::function<void(std::int64_t)>& sent) {
  const auto names = names_of_folder(folder, last);
  remove_folder(store, to, last);
  for (const std::string& name : names)
    store.put_file(below(to, name), folder / name, sent);
}

void download_folder(ObjectStore& store, const ObjectAddress& from, const fs::path& folder,
                     const std::string& last, const std::function<void(const fs::path&)>& check) {
  auto objects = folder_objects(store, from);
  const auto found = std::ranges::find(objects, last, &FolderObject::name);
  if (found == objects.end())
    throw StoreError(text_of(from) + " has no " + last + ": it does not exist or is not complete");
  std::rotate(found, found + 1, objects.end());
  if (fs::exists(folder))
    throw StoreError(folder.string() + " exists already; remove it, or name another folder");
  const fs::path partial = folder.parent_path() / ("." + folder.filename().string() + ".partial");
  fs::create_directories(partial);
  remove_others(partial, objects);
  check_space(partial, objects);
  for (const auto& [name, object] : objects) {
    fs::create_directories((partial / name).parent_path());
    fetch_verified(store, from.bucket, object, partial / name);
  }
  try {
    if (check)
      check(partial);
  } catch (...) {
    fs::remove_all(partial); // damaged, so it must not be continued
    throw;
  }
  fs::rename(partial, folder);
  env::write_folder_to_disk(fs::absolute(folder).parent_path());
}

fs::path recording_copy(const ObjectAddress& recording) {
  const fs::path bucket = fs::path("recordings") / recording.bucket;
  return recording.key.empty() ? bucket : bucket / recording.key; // never with a slash at the end
}

void remove_folder(ObjectStore& store, const ObjectAddress& folder, const std::string& last) {
  const auto objects = store.list(folder);
  if (objects.empty())
    return;
  store.remove(below(folder, last));
  for (const StoredObject& object : objects)
    if (const ObjectAddress address{.bucket = folder.bucket, .key = object.key};
        address != below(folder, last))
      store.remove(address);
}

} // namespace troupe::replay
