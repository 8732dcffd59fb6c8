#pragma once

#include <filesystem>
#include <string>

namespace troupe::learner::data {

/// Makes a recording of a Minari data set that is stored as HDF5: a folder with data/metadata.json
/// and data/main_data.hdf5, or that data folder. Vectors become float32 states, pictures (uint8
/// [height, width, channels], stored without JPEG) pixels; `observation` names one of a dictionary,
/// "a/b" within another. Actions: bounded boxes, discrete and multi-discrete ones. Returns the
/// number of episodes. Throws DataError for files that are not such a data set,
/// std::invalid_argument for spaces that no agent takes, replay::StorageError.
std::int64_t import_minari(const std::filesystem::path& folder, const std::filesystem::path& out,
                           const std::string& observation = {});

/// Writes a recording as a Minari data set of this name ("half_cheetah/medium-v0") to a new folder.
/// Throws std::invalid_argument for actions that mix numbers and choices, DataError,
/// replay::StorageError.
void export_minari(const std::filesystem::path& recording, const std::filesystem::path& folder,
                   const std::string& name);

} // namespace troupe::learner::data
