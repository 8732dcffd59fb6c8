#include "experiments/config/stored_data.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

#include "learner/data/formats/shard_names.hpp"

namespace troupe::experiments {
namespace {

namespace data = learner::data;
using replay::FolderObject;
using replay::ObjectAddress;

/// The objects that an address names, all in one folder, and the path of the data set among their
/// files.
struct Wanted {
  ObjectAddress folder{};
  std::vector<FolderObject> objects{};
  std::string path{}; // empty: the folder itself
};

/// The names that the file of labels may have for a file of MNIST pictures: plain or compressed.
std::vector<std::string> labels_of(std::string name) {
  const auto images = name.find("images"), idx = name.find("idx3");
  if (images == std::string::npos || idx == std::string::npos) {
    return {};
  }
  name.replace(images, 6, "labels");
  name.replace(idx, 4, "idx1");
  return {name, name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name + ".gz"};
}

/// The objects `names` in the folder, which must exist, and the objects `more` where they exist.
std::vector<FolderObject> choose(replay::ObjectStore& store, const ObjectAddress& folder,
                                 const std::vector<std::string>& names,
                                 const std::vector<std::string>& more, const std::string& key) {
  std::map<std::string, FolderObject> there;
  for (FolderObject& object : folder_objects(store, folder)) {
    there.emplace(object.name, object);
  }
  std::vector<FolderObject> chosen;
  for (const std::string& name : names) {
    const auto found = there.find(name);
    if (found == there.end()) {
      throw std::invalid_argument(key + ": the object store has no " + text_of(below(folder, name))
                                  + ", and nothing below it; correct the name, or store it there");
    }
    chosen.push_back(found->second);
  }
  for (const std::string& name : more) {
    if (const auto found = there.find(name); found != there.end()) {
      chosen.push_back(found->second);
    }
  }
  return chosen;
}

Wanted find_objects(replay::ObjectStore& store, const ObjectAddress& address,
                    const std::string& key) {
  const auto brace = std::min(address.key.find('{'), address.key.size());
  if (brace == address.key.size()) {
    if (auto objects = folder_objects(store, address); !objects.empty()) {
      return {.folder = address, .objects = std::move(objects)};
    }
  }
  const auto slash = address.key.rfind('/', brace);
  const auto begin = slash == std::string::npos ? 0 : slash + 1;
  Wanted wanted{.folder = {.bucket = address.bucket,
                           .key = address.key.substr(0, begin == 0 ? 0 : begin - 1)},
                .path = address.key.substr(begin)};
  if (wanted.path.empty()) {
    throw std::invalid_argument(key + ": " + text_of(address) + " has no objects; store some");
  }
  auto more = labels_of(wanted.path);
  const auto end = wanted.path.rfind('/');
  more.push_back((end == std::string::npos ? "" : wanted.path.substr(0, end + 1)) + "classes.txt");
  wanted.objects = choose(store, wanted.folder, data::shard_names(wanted.path), more, key);
  return wanted;
}

} // namespace

std::shared_ptr<const data::DescribedDataset>
open_stored_dataset(data::DatasetOptions options, const std::string& key,
                    const replay::CacheOptions& cache) {
  if (!replay::is_object_address(options.path.string())) {
    return data::open_dataset(options);
  }
  const auto address = replay::parse_object_address(options.path.string(), key);
  const auto keys = replay::store_options();
  replay::ObjectStore store(keys);
  const Wanted wanted = find_objects(store, address, key);
  const auto copy = replay::cached_folder(keys, wanted.folder, wanted.objects, cache);
  options.path = wanted.path.empty() ? copy.path() : copy.path() / wanted.path;
  return {data::open_dataset(options).release(),
          [copy](const data::DescribedDataset* one) { delete one; }};
}

} // namespace troupe::experiments
