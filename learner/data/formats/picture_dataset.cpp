#include "learner/data/formats/picture_dataset.hpp"

#include <algorithm>

#include <ATen/ops/empty.h>

#include "env/split_mix.hpp"
#include "learner/data/formats/open_dataset.hpp"

namespace troupe::learner::data {
namespace {

// The longer side of a resized picture, 8192 pixels times this, fits an int.
constexpr int kMostTimesLonger = 65536;

/// The random stream of one row in one epoch, independent of the replica and thread.
env::Random stream_of(std::uint64_t seed, std::int64_t epoch, std::int64_t row) {
  const auto of_epoch =
      env::mix_bits(seed + env::kSplitMixStep * (static_cast<std::uint64_t>(epoch) + 1));
  return env::Random(of_epoch + env::kSplitMixStep * static_cast<std::uint64_t>(row));
}

std::string text(const PictureSize& size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height) + " pixels";
}

} // namespace

void check_label(std::int64_t label, std::int64_t classes, const std::string& where) {
  const std::int64_t most = classes > 0 ? std::min(classes, kMostClasses) : kMostClasses;
  if (label < 0 || label >= most)
    throw DataError(where + ": label " + std::to_string(label)
                    + " is out of range; it must be from 0 to " + std::to_string(most - 1)
                    + " (classes)");
}

/// The decoder, transformer and buffers of one call of rows().
class PictureDataset::Worker {
public:
  explicit Worker(const PictureDataset& dataset)
      : dataset_(dataset), transformer_(dataset.transform_) {}

  /// Writes the first good row from `row` on, transformed with the random stream of `row`. Returns
  /// its label.
  template <typename T>
  std::int64_t fill(std::int64_t row, std::int64_t epoch, T* out) {
    for (std::int64_t tries = 0; tries < dataset_.rows_; ++tries) {
      const auto used = (row + tries) % dataset_.rows_;
      if (dataset_.bad_.contains(used))
        continue;
      try {
        auto random = stream_of(dataset_.seed_, epoch, row);
        return fill_from(used, random, out);
      } catch (const DataError& error) {
        dataset_.bad_.add(used, error.what());
      }
    }
    throw DataError(dataset_.reader_->where(row) + ": no row of the data set is good");
  }

  /// Returns the size as stored. Leaves the bytes in place for fill_from().
  PictureSize read(std::int64_t row) {
    dataset_.reader_->read(row, stored_);
    return stored_.encoded ? decoder_.size(stored_.bytes, dataset_.reader_->where(row))
                           : PictureSize{stored_.picture.height, stored_.picture.width};
  }

private:
  template <typename T>
  std::int64_t fill_from(std::int64_t row, env::Random& random, T* out) {
    const auto where = dataset_.reader_->where(row);
    const auto label = dataset_.reader_->label(row);
    check_label(label, dataset_.classes_, where);
    const auto size = read(row);
    check(size, where);
    const auto draw = draw_transform(dataset_.transform_, size, random);
    if (stored_.encoded)
      decoder_.decode(stored_.bytes, where, decoding_scale(dataset_.transform_, size, draw),
                      stored_.picture);
    transformer_.apply(stored_.picture, size, draw, out);
    return label;
  }

  void check(const PictureSize& size, const std::string& where) const {
    const auto& options = dataset_.transform_;
    if (options.crop == Crop::none
        && (size.height != dataset_.size_.height || size.width != dataset_.size_.width))
      throw DataError(where + ": has " + text(size) + ", the first picture " + text(dataset_.size_)
                      + "; choose a crop that makes them one size");
    if (options.crop == Crop::centre
        && std::max(size.height, size.width) / std::min(size.height, size.width)
               >= kMostTimesLonger)
      throw DataError(where + ": has " + text(size) + "; its longer side must be less than "
                      + std::to_string(kMostTimesLonger) + " times the shorter one");
    const int border = 2 * options.padding;
    if (options.crop == Crop::padded
        && (size.height + border < options.size || size.width + border < options.size))
      throw DataError(where + ": has " + text(size) + " and " + std::to_string(options.padding)
                      + " of padding, fewer than the crop's " + std::to_string(options.size));
  }

  const PictureDataset& dataset_;
  PictureDecoder decoder_;
  Transformer transformer_;
  StoredPicture stored_;
};

PictureDataset::PictureDataset(std::unique_ptr<PictureReader> reader, const DatasetOptions& options)
    : reader_(std::move(reader)),
      transform_(options.transform),
      seed_(options.seed),
      classes_(reader_->info().classes),
      rows_(reader_->info().rows),
      bad_(rows_, options.tolerate, options.tell) {
  transform_.check();
  if (options.classes < 0)
    throw std::invalid_argument("classes: " + std::to_string(options.classes)
                                + " must be at least 0");
  if (rows_ < 1)
    throw DataError(options.path.string() + ": has no rows");
  size_ = transform_.crop == Crop::none ? first_size() : transformed_size(transform_, {});
}

PictureSize PictureDataset::first_size() const {
  Worker worker(*this);
  for (std::int64_t row = 0; row < rows_; ++row)
    try {
      return worker.read(row);
    } catch (const DataError& error) {
      bad_.add(row, error.what());
    }
  throw DataError("no row of the data set is good");
}

TensorMap PictureDataset::rows(const at::Tensor& numbers, std::int64_t epoch) const {
  const auto wanted = numbers.contiguous();
  const auto count = wanted.size(0);
  const auto* number = wanted.const_data_ptr<std::int64_t>();
  auto picture = at::empty({count, 3, size_.height, size_.width},
                           at::TensorOptions(transform_.normalises() ? at::kFloat : at::kByte)
                               .memory_format(at::MemoryFormat::ChannelsLast));
  auto label = at::empty({count}, at::kLong);
  const auto levels = std::int64_t{3} * size_.height * size_.width;
  Worker worker(*this);
  for (std::int64_t i = 0; i < count; ++i) {
    if (number[i] < 0 || number[i] >= rows_)
      throw std::out_of_range("dataset: there is no row " + std::to_string(number[i])
                              + "; rows are from 0 to " + std::to_string(rows_ - 1));
    label.mutable_data_ptr<std::int64_t>()[i] =
        transform_.normalises()
            ? worker.fill(number[i], epoch, picture.mutable_data_ptr<float>() + i * levels)
            : worker.fill(number[i], epoch, picture.mutable_data_ptr<std::uint8_t>() + i * levels);
  }
  return {{"picture", picture}, {"label", label}};
}

DatasetInfo PictureDataset::info() const {
  auto info = reader_->info();
  info.columns = {
      {"picture", transform_.normalises() ? "float32" : "uint8", {3, size_.height, size_.width}},
      {"label", "int64", {}}};
  info.bad_rows = bad_.count();
  info.messages = bad_.messages();
  return info;
}

} // namespace troupe::learner::data
