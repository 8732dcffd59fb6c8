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

/// A picture as stored: encoded, or as pixel values.
struct StoredPicture {
  bool encoded = true;
  std::vector<std::byte> bytes; // JPEG or PNG, if encoded
  Picture picture;              // if not encoded
};

/// Files of labelled pictures. Several threads may read at the same time. A fault in a row throws
/// DataError from the call that reads it.
class PictureReader {
public:
  virtual ~PictureReader() = default;
  virtual DatasetInfo info() const = 0; // without columns and bad rows
  /// Names the file and the row, for messages.
  virtual std::string where(std::int64_t row) const = 0;
  virtual std::int64_t label(std::int64_t row) const = 0;
  virtual void read(std::int64_t row, StoredPicture& out) const = 0;
};

// Each is defined in its own file. All throw std::invalid_argument or DataError.
std::unique_ptr<PictureReader> open_image_folder(const DatasetOptions& options);
std::unique_ptr<PictureReader> open_tar(const DatasetOptions& options);
std::unique_ptr<PictureReader> open_cifar(const DatasetOptions& options, int classes); // 10 or 100
std::unique_ptr<PictureReader> open_idx(const DatasetOptions& options);

/// Upper limit of labels whatever the options allow, because a model has one output per class.
inline constexpr std::int64_t kMostClasses = std::int64_t{1} << 24;

/// Throws DataError naming `where` if the label is not from 0 to classes - 1.
void check_label(std::int64_t label, std::int64_t classes, const std::string& where);

} // namespace troupe::learner::data
