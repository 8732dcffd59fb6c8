#pragma once

#include <cstdint>
#include <memory>

#include "learner/data/formats/described_dataset.hpp"
#include "learner/data/formats/picture_reader.hpp"
#include "learner/data/formats/row_error_policy.hpp"
#include "learner/data/pictures/transform.hpp"

namespace troupe::learner::data {

/// Pictures from a reader, decoded and transformed on the calling thread: {"picture", "label"}.
class PictureDataset final : public DescribedDataset {
public:
  /// Throws std::invalid_argument for options that do not fit, and DataError for bad data.
  PictureDataset(std::unique_ptr<PictureReader> reader, const DatasetOptions& options);

  std::int64_t size() const override { return rows_; }
  TensorMap rows(const at::Tensor& numbers, std::int64_t epoch) const override;
  DatasetInfo info() const override;

private:
  class Worker;
  PictureSize first_size() const;

  std::unique_ptr<PictureReader> reader_;
  TransformOptions transform_;
  std::uint64_t seed_;
  std::int64_t classes_;
  std::int64_t rows_;
  mutable RowErrorPolicy bad_;
  PictureSize size_; // of the transformed pictures
};

} // namespace troupe::learner::data
