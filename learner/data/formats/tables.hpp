#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/data/formats/described_dataset.hpp"

namespace troupe::learner::data {

struct DatasetOptions;

// One file each. All throw std::invalid_argument or DataError.
std::unique_ptr<DescribedDataset> open_csv(const DatasetOptions& options);
std::unique_ptr<DescribedDataset> open_npz(const DatasetOptions& options);
std::unique_ptr<DescribedDataset> open_hdf5(const DatasetOptions& options);
std::unique_ptr<DescribedDataset> open_netcdf(const DatasetOptions& options);

/// What of a table is wrong: row and message.
using BadList = std::vector<std::pair<std::int64_t, std::string>>;

/// A table of `columns` (may be null) and a label in memory (may be undefined; [rows], of whole
/// numbers or floats), in which the next good row stands in for each bad one. Whole labels become
/// int64; those out of range are bad, too, called "<source>: row 7". `info` has format, bytes, rows
/// and the other columns; classes where they are known.
std::unique_ptr<DescribedDataset> make_table(std::unique_ptr<Dataset> columns, at::Tensor label,
                                             DatasetInfo info, BadList bad,
                                             const std::string& source,
                                             const DatasetOptions& options);

/// An array of a file, its rows along the first dimension.
struct FoundArray {
  std::string name;
  std::vector<std::int64_t> shape;
  at::ScalarType type = at::kFloat;
};

/// Which arrays are the columns and which the label. Rows are the label's, or else the first
/// array's; arrays of another length are left out, or refused when options.columns names them.
struct ChosenArrays {
  std::vector<std::size_t> columns;
  std::ptrdiff_t label = -1; // none
  std::int64_t rows = 0;
};
ChosenArrays choose_arrays(const std::vector<FoundArray>& found, const std::string& source,
                           const DatasetOptions& options);

Column column_of(const FoundArray& array);

} // namespace troupe::learner::data
