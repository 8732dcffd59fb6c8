#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "learner/data/formats/described_dataset.hpp"
#include "learner/data/formats/row_error_policy.hpp"
#include "learner/data/pictures/transform.hpp"

namespace troupe::learner::data {

struct DatasetOptions {
  std::filesystem::path path{};
  std::string format{}; // one of dataset_formats(); empty: detected at the path
  std::string split{};  // "train", "validation" ("test", "val"); empty: train where there are two
  std::string label{};  // the label's column, by name or (CSV) number from 0; empty: "label", CSV:
                        // the last. Of CIFAR-100: "fine" or "coarse"
  std::vector<std::string> columns{}; // of tables; empty: all
  std::string header = "auto";        // of CSV: "yes", "no"; auto: when its first row has no number
  std::int64_t classes = 0;           // labels must be below it; 0: as many as there are
  std::vector<std::string> names{};   // of the classes, in order, for data that name theirs: those
                                      // of the training data when these are others; empty: any
  TransformOptions transform{};       // of pictures
  std::uint64_t seed = 1;             // of what is random in it
  double tolerate = 0; // fraction of the rows that may be bad: the next good one stands in for each
  TellBadRow tell{};   // of each bad row
};

/// Opens data by what they are: image folders, tar shards (WebDataset), CIFAR-10 and -100, MNIST's
/// idx, CSV, NumPy's npz and npy, HDF5, NetCDF. Batches of pictures are {"picture": uint8 [n, 3,
/// height, width] in channels-last memory (float32 when the transform normalises), "label": int64
/// [n]}; of CSV {"features": float32 [n, columns], "label"}; of the others their arrays by name,
/// whose first dimension is the row, the label's as int64 where it is whole numbers. Any number of
/// threads read them. Throws std::invalid_argument for options that do not fit, DataError for data
/// that are bad, both naming file and rule.
std::unique_ptr<DescribedDataset> open_dataset(const DatasetOptions& options);

/// Names that DatasetOptions::format may have.
const std::vector<std::string>& dataset_formats();

} // namespace troupe::learner::data
