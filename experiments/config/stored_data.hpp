#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "learner/data/formats/open_dataset.hpp"
#include "replay/objects/object_cache.hpp"

namespace troupe::experiments {

constexpr double kBytesPerGigabyte = 1e9;

/// Opens a data set on this host or in an object store. An address in a store is s3://bucket/prefix
/// of a folder, a file or shards-{000..009}.tar; replay::cached_folder() first copies its objects
/// to this host and keeps them while the data set exists. `key` is the name of options.path in
/// messages. Throws the exceptions of open_dataset(), cached_folder() and store_options().
std::shared_ptr<const learner::data::DescribedDataset>
open_stored_dataset(learner::data::DatasetOptions options, const std::string& key,
                    const replay::CacheOptions& cache);

} // namespace troupe::experiments
