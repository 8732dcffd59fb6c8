#include <algorithm>

#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/formats/picture_reader.hpp"
#include "learner/data/pictures/file.hpp"

namespace troupe::learner::data {
namespace {

/// A folder with one subfolder per class, in the order of their names.
class ImageFolder final : public PictureReader {
public:
  explicit ImageFolder(const DatasetOptions& options) {
    info_.format = "folder";
    info_.names = list_folders(options.path);
    info_.classes = static_cast<std::int64_t>(info_.names.size());
    if (info_.names.empty())
      throw DataError(options.path.string()
                      + ": has no folders; an image folder has one for each class");
    if (options.classes > 0 && info_.classes != options.classes)
      throw DataError(options.path.string() + ": has " + std::to_string(info_.classes)
                      + " folders of classes, and classes is " + std::to_string(options.classes));
    for (std::size_t label = 0; label < info_.names.size(); ++label) {
      const auto folder = options.path / info_.names[label];
      auto files = list_files(folder, true, [](const auto& name) { return is_picture_name(name); });
      if (files.empty())
        throw DataError(folder.string()
                        + ": has no .jpg, .jpeg or .png; fill the class's folder or remove it");
      std::move(files.begin(), files.end(), std::back_inserter(files_));
      labels_.resize(files_.size(), static_cast<std::int64_t>(label));
    }
    std::error_code ignored;
    for (const auto& file : files_)
      if (const auto size = std::filesystem::file_size(file, ignored); !ignored)
        info_.bytes += size;
    info_.rows = static_cast<std::int64_t>(files_.size());
  }

  DatasetInfo info() const override { return info_; }
  std::string where(std::int64_t row) const override {
    return file(row).string() + " (row " + std::to_string(row) + ")";
  }
  std::int64_t label(std::int64_t row) const override {
    return labels_[static_cast<std::size_t>(row)];
  }
  void read(std::int64_t row, StoredPicture& out) const override {
    const File from(file(row));
    out.encoded = true;
    from.read(0, from.size(), out.bytes);
  }

private:
  const std::filesystem::path& file(std::int64_t row) const {
    return files_[static_cast<std::size_t>(row)];
  }

  DatasetInfo info_;
  std::vector<std::filesystem::path> files_;
  std::vector<std::int64_t> labels_;
};

} // namespace

std::unique_ptr<PictureReader> open_image_folder(const DatasetOptions& options) {
  return std::make_unique<ImageFolder>(options);
}

} // namespace troupe::learner::data
