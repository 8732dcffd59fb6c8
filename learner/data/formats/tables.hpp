#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/data/formats/described_dataset.hpp"

namespace troupe::learner::data {

struct DatasetOptions;

// Each is defined in its own file. All throw std::invalid_argument or DataError.
std::unique_ptr<DescribedDataset> open_csv(const DatasetOptions& options);
std::unique_ptr<DescribedDataset> open_npz(const DatasetOptions& options);
std::unique_ptr<DescribedDataset> open_hdf5(const DatasetOptions& options);
std::unique_ptr<DescribedDataset> open_netcdf(const DatasetOptions& options);

/// The bad rows of a table: row number and message.
using BadList = std::vector<std::pair<std::int64_t, std::string>>;

/// Whether a label that may have a fraction is the number of a class: whole, and not negative or
/// too large.
bool is_class(double label);

/// Makes a table of `columns` (may be null) and a label in memory (may be undefined; [rows], of any
/// type). The next good row replaces each bad one. Integers, and numbers that are all classes
/// (is_class()), become int64; one that is out of range makes its row bad, with a message that
/// names it "<path>: row 7". `info` must have the format, bytes, rows and other columns, and the
/// number of classes if it is known.
std::unique_ptr<DescribedDataset> make_table(std::unique_ptr<Dataset> columns, at::Tensor label,
                                             DatasetInfo info, BadList bad,
                                             const DatasetOptions& options);

/// An array in a file, with rows along the first dimension.
struct FoundArray {
  std::string name;
  std::vector<std::int64_t> shape;
  at::ScalarType type = at::kFloat;
  std::string problem{}; // why its rows cannot be used; empty: they can
};

/// Which arrays are the columns, and which one is the label. The number of rows is that of the
/// label, or else of the first array. Arrays of another length are ignored, or refused if
/// options.columns names them.
struct ChosenArrays {
  std::vector<std::size_t> columns;
  std::ptrdiff_t label = -1; // none
  std::int64_t rows = 0;
};
ChosenArrays choose_arrays(const std::vector<FoundArray>& found, const DatasetOptions& options);

Column column_of(const FoundArray& array);

} // namespace troupe::learner::data
