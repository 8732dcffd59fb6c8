#pragma once

#include <filesystem>
#include <string>

namespace troupe::learner::data {

/// Converts a Minari data set that is stored as HDF5 to a recording, and returns the number of
/// episodes. `folder` contains data/metadata.json and data/main_data.hdf5, or is that data folder
/// itself. Vectors become float32 states; pictures (uint8 [height, width, channels], stored without
/// JPEG) become pixels. `observation` selects one entry of a dictionary, "a/b" one in a nested
/// dictionary. Actions may be bounded boxes, discrete or multi-discrete. Throws DataError if the
/// files are not such a data set, std::invalid_argument for spaces that agents do not support, and
/// replay::StorageError.
std::int64_t import_minari(const std::filesystem::path& folder, const std::filesystem::path& out,
                           const std::string& observation = {});

/// Writes a recording to a new folder as a Minari data set with the name `name`
/// ("half_cheetah/medium-v0"). Actions are those of the environment: clipped as it clipped them,
/// and scaled to its bounds; numbers without finite bounds are written as they are. Throws
/// std::invalid_argument for actions that mix continuous numbers and choices, DataError, and
/// replay::StorageError.
void export_minari(const std::filesystem::path& recording, const std::filesystem::path& folder,
                   const std::string& name);

} // namespace troupe::learner::data
