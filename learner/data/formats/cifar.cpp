#include <algorithm>

#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/formats/picture_reader.hpp"
#include "learner/data/pictures/file.hpp"

namespace troupe::learner::data {
namespace {

constexpr int kSide = 32; // pixels
constexpr std::uint64_t kPlane = kSide * kSide;
constexpr std::int64_t kCoarseClasses = 20;

bool is_of_training(const std::string& name) {
  return name == "train.bin" || (name.starts_with("data_batch") && name.ends_with(".bin"));
}

bool is_of_test(const std::string& name) {
  return name == "test.bin" || name == "test_batch.bin";
}

/// Rows of label bytes (CIFAR-10 has one, CIFAR-100 coarse and fine), followed by the red, green
/// and blue planes.
class Cifar final : public PictureReader {
public:
  Cifar(const DatasetOptions& options, int classes)
      : label_bytes_(classes == 100 ? 2 : 1), row_bytes_(label_bytes_ + 3 * kPlane) {
    if (!options.label.empty() && options.label != "fine" && options.label != "coarse")
      throw std::invalid_argument("label: \"" + options.label
                                  + "\" must be \"fine\" or \"coarse\" of CIFAR-100");
    const bool coarse = options.label == "coarse";
    if (coarse && classes != 100)
      throw std::invalid_argument("label: \"coarse\" exists only in CIFAR-100");
    label_byte_ = classes == 100 && !coarse ? 1 : 0;
    info_.format = "cifar" + std::to_string(classes);
    info_.classes = options.classes > 0 ? options.classes : coarse ? kCoarseClasses : classes;
    auto folder = options.path;
    if (std::filesystem::is_directory(options.path)) {
      const bool training = options.split.empty() || options.split == "train";
      for (const auto& path :
           list_files(options.path, false, training ? is_of_training : is_of_test))
        add(path);
    } else {
      add(options.path);
      folder = options.path.parent_path();
    }
    if (files_.empty())
      throw DataError(options.path.string()
                      + ": has no data_batch_1.bin, test_batch.bin, train.bin or test.bin of the "
                        "split");
    info_.names = read_lines(folder
                             / (classes == 10 ? "batches.meta.txt"
                                : coarse      ? "coarse_label_names.txt"
                                              : "fine_label_names.txt"));
    if (static_cast<std::int64_t>(info_.names.size()) > info_.classes)
      info_.names.resize(static_cast<std::size_t>(info_.classes));
  }

  DatasetInfo info() const override { return info_; }
  std::string where(std::int64_t row) const override {
    const auto [file, inside] = find(row);
    return files_[file].path().string() + " (its row " + std::to_string(inside) + ")";
  }
  std::int64_t label(std::int64_t row) const override {
    const auto [file, inside] = find(row);
    std::vector<std::byte> byte;
    files_[file].read(inside * row_bytes_ + label_byte_, 1, byte);
    return static_cast<std::int64_t>(byte.front());
  }
  void read(std::int64_t row, StoredPicture& out) const override {
    const auto [file, inside] = find(row);
    files_[file].read(inside * row_bytes_ + label_bytes_, 3 * kPlane, out.bytes);
    out.encoded = false;
    out.picture.height = out.picture.width = kSide;
    out.picture.rgb.resize(3 * kPlane);
    for (std::size_t pixel = 0; pixel < kPlane; ++pixel)
      for (std::size_t c = 0; c < 3; ++c)
        out.picture.rgb[3 * pixel + c] = static_cast<std::uint8_t>(out.bytes[c * kPlane + pixel]);
  }

private:
  void add(const std::filesystem::path& path) {
    File file(path);
    if (file.size() == 0 || file.size() % row_bytes_ != 0)
      throw DataError(path.string() + ": has " + std::to_string(file.size())
                      + " bytes, not a whole number of rows of " + std::to_string(row_bytes_)
                      + " (truncated, or the other CIFAR?)");
    info_.rows += static_cast<std::int64_t>(file.size() / row_bytes_);
    info_.bytes += file.size();
    ends_.push_back(info_.rows);
    files_.push_back(std::move(file));
  }

  struct Place {
    std::size_t file;
    std::uint64_t row;
  };
  Place find(std::int64_t row) const {
    const auto file =
        static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin());
    return {file, static_cast<std::uint64_t>(row - (file == 0 ? 0 : ends_[file - 1]))};
  }

  std::uint64_t label_bytes_;
  std::uint64_t row_bytes_;
  std::uint64_t label_byte_ = 0; // index of the label byte to use
  DatasetInfo info_;
  std::vector<File> files_;
  std::vector<std::int64_t> ends_; // cumulative rows up to the end of each file
};

} // namespace

std::unique_ptr<PictureReader> open_cifar(const DatasetOptions& options, int classes) {
  return std::make_unique<Cifar>(options, classes);
}

} // namespace troupe::learner::data
