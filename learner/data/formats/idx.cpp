#include <zlib.h>

#include <algorithm>

#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/formats/picture_reader.hpp"
#include "learner/data/pictures/file.hpp"

namespace troupe::learner::data {
namespace {

struct IdxArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;
};

[[noreturn]] void fail_idx(const std::filesystem::path& path, const std::string& what) {
  throw DataError(path.string() + ": is not a readable idx file: " + what);
}

/// A plain or compressed file: zlib reads uncompressed files unchanged.
class IdxFile {
public:
  explicit IdxFile(std::filesystem::path path)
      : path_(std::move(path)), bytes_(File(path_).size()), file_(gzopen(path_.c_str(), "rb")) {
    if (file_ == nullptr)
      fail_idx(path_, "it cannot be opened");
    gzbuffer(file_, 1u << 17);
  }
  ~IdxFile() { gzclose_r(file_); }
  IdxFile(const IdxFile&) = delete;
  IdxFile& operator=(const IdxFile&) = delete;

  std::uint64_t bytes() const { return bytes_; }

  /// Reads unsigned bytes with this number of dimensions.
  IdxArray read(int dimensions) {
    std::uint8_t magic[4];
    take(magic, 4);
    if (magic[0] != 0 || magic[1] != 0)
      fail_idx(path_, "it does not begin like one");
    if (magic[2] != 8 || magic[3] != dimensions)
      fail_idx(path_, "it has " + std::to_string(magic[3]) + " dimensions of type "
                          + std::to_string(magic[2]) + "; " + std::to_string(dimensions)
                          + " of unsigned bytes (8) are expected");
    IdxArray array;
    std::uint64_t size = 1;
    // Deflate cannot pack more into a compressed file.
    const std::uint64_t most = gzdirect(file_) != 0 ? bytes_ : bytes_ * 1032;
    for (int i = 0; i < dimensions; ++i) {
      std::uint8_t number[4];
      take(number, 4);
      const auto length = std::uint64_t{number[0]} << 24 | std::uint64_t{number[1]} << 16
                          | std::uint64_t{number[2]} << 8 | number[3];
      if (length == 0 || size > most / length)
        fail_idx(path_, "its dimension " + std::to_string(i) + " is " + std::to_string(length)
                            + ", more than the file can hold (truncated?), or 0");
      size *= length;
      array.shape.push_back(static_cast<std::int64_t>(length));
    }
    array.values.resize(size);
    take(array.values.data(), size);
    std::uint8_t more = 0;
    if (gzread(file_, &more, 1) > 0)
      fail_idx(path_, "it continues after its " + std::to_string(size) + " values");
    if (const auto reason = error(); !reason.empty())
      fail_idx(path_, reason);
    return array;
  }

private:
  /// Why the last reads failed, such as a wrong checksum; empty: they did not.
  std::string error() {
    int code = Z_OK;
    const std::string reason = gzerror(file_, &code);
    return code == Z_OK ? "" : reason;
  }

  void take(std::uint8_t* to, std::uint64_t size) {
    while (size > 0) {
      const auto part = static_cast<unsigned>(std::min<std::uint64_t>(size, 1u << 30));
      const int got = gzread(file_, to, part);
      if (got <= 0) {
        const auto reason = error();
        fail_idx(path_, reason.empty() ? "it ends too early (truncated?)" : reason);
      }
      to += got;
      size -= static_cast<std::uint64_t>(got);
    }
  }

  std::filesystem::path path_;
  std::uint64_t bytes_;
  gzFile file_;
};

bool is_idx_of_pictures(const std::string& name) {
  return name.find("images") != std::string::npos && name.find("idx3") != std::string::npos;
}

/// Finds the pictures' file in a folder: train-images-idx3-ubyte or t10k-images-idx3-ubyte, with or
/// without .gz.
std::filesystem::path find_pictures(const DatasetOptions& options) {
  if (!std::filesystem::is_directory(options.path))
    return options.path;
  const bool training = options.split.empty() || options.split == "train";
  for (const auto& path : list_files(options.path, false, is_idx_of_pictures))
    if (path.filename().string().starts_with("train") == training)
      return path;
  throw DataError(options.path.string() + ": has no "
                  + (training ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte")
                  + " (or .gz)");
}

std::filesystem::path labels_beside(const std::filesystem::path& pictures) {
  std::string name = pictures.filename().string();
  const auto replace = [&name](const std::string& from, const std::string& to) {
    if (const auto found = name.find(from); found != std::string::npos)
      name.replace(found, from.size(), to);
  };
  replace("images", "labels");
  replace("idx3", "idx1");
  auto path = pictures.parent_path() / name;
  if (std::filesystem::exists(path))
    return path;
  auto other = name.ends_with(".gz") ? pictures.parent_path() / name.substr(0, name.size() - 3)
                                     : pictures.parent_path() / (name + ".gz");
  if (std::filesystem::exists(other))
    return other;
  throw DataError(pictures.string() + ": its labels, " + path.string() + ", are not there");
}

/// MNIST's format: grey pictures, held in memory.
class Idx final : public PictureReader {
public:
  explicit Idx(const DatasetOptions& options) : path_(find_pictures(options)) {
    info_.format = "idx";
    labels_path_ = labels_beside(path_);
    IdxFile pictures(path_), labels(labels_path_);
    pictures_ = pictures.read(3);
    labels_ = labels.read(1);
    info_.bytes = pictures.bytes() + labels.bytes();
    info_.rows = pictures_.shape[0];
    check_picture_size(pictures_.shape[1], pictures_.shape[2], path_.string());
    if (labels_.shape[0] != info_.rows)
      throw DataError(labels_path_.string() + ": has " + std::to_string(labels_.shape[0])
                      + " labels for the " + std::to_string(info_.rows) + " pictures of "
                      + path_.string());
    info_.classes = options.classes > 0
                        ? options.classes
                        : *std::max_element(labels_.values.begin(), labels_.values.end()) + 1;
  }

  DatasetInfo info() const override { return info_; }
  std::string where(std::int64_t row) const override {
    return path_.string() + " (row " + std::to_string(row) + ")";
  }
  std::int64_t label(std::int64_t row) const override {
    const auto label = std::int64_t{labels_.values[static_cast<std::size_t>(row)]};
    check_label(label, info_.classes, labels_path_.string() + " (row " + std::to_string(row) + ")");
    return label;
  }
  void read(std::int64_t row, StoredPicture& out) const override {
    out.encoded = false;
    out.picture.height = static_cast<int>(pictures_.shape[1]);
    out.picture.width = static_cast<int>(pictures_.shape[2]);
    const auto pixels = static_cast<std::size_t>(pictures_.shape[1] * pictures_.shape[2]);
    out.picture.rgb.resize(3 * pixels);
    const auto* grey = pictures_.values.data() + static_cast<std::size_t>(row) * pixels;
    for (std::size_t i = 0; i < 3 * pixels; ++i)
      out.picture.rgb[i] = grey[i / 3];
  }

private:
  std::filesystem::path path_;
  std::filesystem::path labels_path_;
  DatasetInfo info_;
  IdxArray pictures_;
  IdxArray labels_;
};

} // namespace

std::unique_ptr<PictureReader> open_idx(const DatasetOptions& options) {
  return std::make_unique<Idx>(options);
}

} // namespace troupe::learner::data
