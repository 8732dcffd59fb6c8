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
  std::string format{}; // one of dataset_formats(); empty: detected from the path
  std::string split{};  // "train", "validation" ("test", "val"); empty: train, if there are two
  bool requires_split = true; // off: a file, or a folder without splits, is "validation" as a whole
  std::string label{}; // the label's column, by name or (CSV) number from 0; empty: "label", CSV:
                       // the last. For CIFAR-100: "fine" or "coarse"
  std::vector<std::string> columns{}; // for tables; empty: all
  // For CSV with a header, the names of the columns and of the label of the data it goes with: they
  // are taken in this order. Other data goes by `columns` and `label`.
  std::vector<std::string> features_like{};
  std::string label_like{};
  std::string header = "auto";      // for CSV: "yes", "no"; auto: if the first row has no number
  std::int64_t classes = 0;         // labels must be below this; 0: determined from the data
  std::vector<std::string> names{}; // expected class names, in order, for data with named
                                    // classes: those of the training data; empty: any
  TransformOptions transform{};     // for pictures
  std::uint64_t seed = 1;           // of any randomness in the data set
  double tolerate = 0; // fraction of rows that may be bad; the next good row replaces each
  TellBadRow tell{};   // called for each bad row
};

/// Opens a data set of any supported format: image folders, tar shards (WebDataset), CIFAR-10 and
/// -100, MNIST's idx, CSV, NumPy's npz and npy, HDF5, NetCDF.
///
/// Batches of pictures are {"picture": uint8 [n, 3, height, width] in channels-last memory (float32
/// if the transform normalises), "label": int64 [n]}. Batches of CSV are {"features": float32 [n,
/// columns], "label"}. Other formats give their arrays by name, with the row as the first
/// dimension; the label is int64 if it consists of whole numbers.
///
/// Any number of threads may read the data set. Throws std::invalid_argument for options that do
/// not fit and DataError for bad data, both naming the file and the rule.
std::unique_ptr<DescribedDataset> open_dataset(const DatasetOptions& options);

/// The names allowed in DatasetOptions::format.
const std::vector<std::string>& dataset_formats();

} // namespace troupe::learner::data
