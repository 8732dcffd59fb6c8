#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "learner/data/formats/tables.hpp"

namespace troupe::learner::data {

/// Of HDF5's library, which serves one thread at a time, and of NetCDF's, which is built on it:
/// process-wide, as their state is.
std::mutex& hdf5_mutex();

/// A file of named arrays that is read row by row. The caller holds hdf5_mutex().
class ArrayFile {
public:
  virtual ~ArrayFile() = default;
  virtual const std::vector<FoundArray>& arrays() const = 0;
  /// `count` rows of an array, as its type. Throws DataError.
  virtual void read(std::size_t array, std::int64_t first, std::int64_t count, void* to) const = 0;
};

/// Those of an HDF5 file, groups before their names ("a/b"). Locks hdf5_mutex() itself. Throws
/// DataError.
std::unique_ptr<const ArrayFile> open_hdf5_arrays(const std::string& path);

/// Rows of a file, fetched as they are asked for; its label is read at once.
std::unique_ptr<DescribedDataset> make_file_table(std::unique_ptr<const ArrayFile> file,
                                                  DatasetInfo info, const DatasetOptions& options);

} // namespace troupe::learner::data
