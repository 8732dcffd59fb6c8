#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "learner/data/formats/tables.hpp"

namespace troupe::learner::data {

/// The lock for the HDF5 library, which serves one thread at a time, and for the NetCDF library,
/// which is built on it. It is process-wide because the state of these libraries is.
std::mutex& hdf5_mutex();

/// A file of named arrays that is read row by row. Any number of threads may read it: it locks
/// hdf5_mutex() itself.
class ArrayFile {
public:
  virtual ~ArrayFile() = default;
  virtual const std::vector<FoundArray>& arrays() const = 0;
  /// Reads `count` rows of an array in the array's type. Throws DataError.
  virtual void read(std::size_t array, std::int64_t first, std::int64_t count, void* to) const = 0;
};

/// Opens the arrays of an HDF5 file; their names include the groups ("a/b"). Throws DataError.
std::unique_ptr<const ArrayFile> open_hdf5_arrays(const std::string& path);

/// Serves the rows of a file. It reads the label at once and other rows when they are requested.
std::unique_ptr<DescribedDataset> make_file_table(std::shared_ptr<const ArrayFile> file,
                                                  DatasetInfo info, const DatasetOptions& options);

} // namespace troupe::learner::data
