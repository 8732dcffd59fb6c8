#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/data/dataset.hpp"
#include "learner/data/pictures/data_error.hpp"

namespace troupe::learner::data {

/// One column of a batch.
struct Column {
  std::string name;
  std::string type;                // "uint8", "float32", "int64", …
  std::vector<std::int64_t> shape; // of one row; empty: a number; -1: varies between rows
};

struct DatasetInfo {
  std::string format{}; // "folder", "tar", "cifar10", "cifar100", "idx", "csv", "npz", "hdf5", …
  std::int64_t rows = 0;
  std::uint64_t bytes = 0;          // size of the files
  std::int64_t classes = 0;         // labels are below this; 0: there are no classes
  std::vector<std::string> names{}; // of the classes, if they have names
  std::vector<Column> columns{};
  std::vector<std::string> features{}; // the header's names of the columns of "features" (CSV), …
  std::string label{};                 // … and of the label; empty if names do not identify them
  std::int64_t bad_rows = 0;           // found so far
  std::vector<std::string> messages{}; // about the first bad rows
};

/// A data set read from files.
class DescribedDataset : public Dataset {
public:
  virtual DatasetInfo info() const = 0; // any thread
};

} // namespace troupe::learner::data
