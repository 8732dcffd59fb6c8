#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "learner/data/formats/open_dataset.hpp"
#include "replay/objects/object_cache.hpp"

namespace troupe::experiments {

constexpr double kBytesPerGigabyte = 1e9;

/// Opens a data set on this host or in an object store: s3://bucket/prefix of a folder, a file or
/// shards-{000..009}.tar, whose objects replay::cached_folder() copies to this host first, and
/// keeps while the data set lives. `key` is what messages call options.path. Throws as
/// open_dataset(), cached_folder() and store_options().
std::shared_ptr<const learner::data::DescribedDataset>
open_stored_dataset(learner::data::DatasetOptions options, const std::string& key,
                    const replay::CacheOptions& cache);

} // namespace troupe::experiments
