#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learner/data/formats/described_dataset.hpp"
#include "learner/data/pictures/picture.hpp"

namespace troupe::learner::data {

struct DatasetOptions;

/// A picture as it is stored: in a format of pictures, or as levels.
struct StoredPicture {
  bool encoded = true;
  std::vector<std::byte> bytes; // JPEG or PNG, when encoded
  Picture picture;              // otherwise
};

/// Files of pictures with labels. Threads read it at once. What is wrong with a row is a DataError
/// of the call that asks for it.
class PictureReader {
public:
  virtual ~PictureReader() = default;
  virtual DatasetInfo info() const = 0; // without columns and bad rows
  /// File and row, for messages.
  virtual std::string where(std::int64_t row) const = 0;
  virtual std::int64_t label(std::int64_t row) const = 0;
  virtual void read(std::int64_t row, StoredPicture& out) const = 0;
};

// One file each. All throw std::invalid_argument or DataError.
std::unique_ptr<PictureReader> open_image_folder(const DatasetOptions& options);
std::unique_ptr<PictureReader> open_tar(const DatasetOptions& options);
std::unique_ptr<PictureReader> open_cifar(const DatasetOptions& options, int classes); // 10 or 100
std::unique_ptr<PictureReader> open_idx(const DatasetOptions& options);

/// Labels are below it whatever the options allow, because a model has one output per class.
inline constexpr std::int64_t kMostClasses = std::int64_t{1} << 24;

/// Throws DataError naming `where` when a label is not from 0 to classes - 1.
void check_label(std::int64_t label, std::int64_t classes, const std::string& where);

} // namespace troupe::learner::data
