#include "experiments/commands/tools/dataset_layout.hpp"

#include <cstdio>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "env/whole_file.hpp"
#include "experiments/report/picture.hpp"
#include "learner/data/formats/tar_writer.hpp"
#include "learner/data/pictures/picture.hpp"

namespace troupe::experiments::commands {
namespace {

namespace data = learner::data;

std::string digits(std::int64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "%06lld", static_cast<long long>(number));
  return text;
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) {
    throw std::runtime_error(path.string() + ": cannot be written (is the disk full?)");
  }
}

void write_lines(const std::filesystem::path& path, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  write_file(path, std::as_bytes(std::span(text)));
}

/// A folder that gets its final name only when it is complete.
class PartialFolder {
public:
  explicit PartialFolder(std::filesystem::path path) : path_(std::move(path)) {
    if (std::filesystem::exists(path_)) {
      throw std::invalid_argument(path_.string()
                                  + ": already exists; remove it or choose another folder");
    }
    partial_ = path_;
    partial_ += ".partial";
    std::filesystem::remove_all(partial_);
    std::filesystem::create_directories(partial_);
  }
  ~PartialFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(partial_, ignored);
  }
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const std::filesystem::path& partial() const { return partial_; }
  void finish() {
    std::filesystem::rename(partial_, path_);
    env::write_folder_to_disk(path_.parent_path().empty() ? "." : path_.parent_path());
  }

private:
  std::filesystem::path path_;
  std::filesystem::path partial_;
};

class EncodedLayout : public SceneLayout {
public:
  explicit EncodedLayout(const SceneOptions& options)
      : options_(options), folder_(options.out / options.split) {}

  std::vector<std::byte> stored(std::vector<std::uint8_t> rgb) const override {
    if (options_.quality == 0) {
      return encode_png(options_.size, options_.size, rgb);
    }
    return data::encode_jpeg({options_.size, options_.size, std::move(rgb)}, options_.quality);
  }

protected:
  std::string ending() const { return options_.quality == 0 ? ".png" : ".jpg"; }

  SceneOptions options_;
  PartialFolder folder_;
};

class FolderLayout final : public EncodedLayout {
public:
  explicit FolderLayout(const SceneOptions& options) : EncodedLayout(options) {
    for (const std::string& name : options.classes) {
      std::filesystem::create_directory(folder_.partial() / name);
    }
  }
  void add(std::size_t label, std::int64_t number, std::span<const std::byte> stored) override {
    write_file(folder_.partial() / options_.classes[label] / (digits(number) + ending()), stored);
  }
  void finish() override { folder_.finish(); }
};

class TarLayout final : public EncodedLayout {
public:
  explicit TarLayout(const SceneOptions& options) : EncodedLayout(options) {}

  void add(std::size_t label, std::int64_t, std::span<const std::byte> stored) override {
    if (rows_ % options_.shard_rows == 0) {
      end_shard();
      tar_ = std::make_unique<data::TarWriter>(folder_.partial()
                                               / (digits(rows_ / options_.shard_rows) + ".tar"));
    }
    const std::string text = std::to_string(label);
    const std::string key = digits(rows_++);
    tar_->add(key + ".cls", std::as_bytes(std::span(text)));
    tar_->add(key + ending(), stored);
  }
  void finish() override {
    end_shard();
    write_lines(folder_.partial() / "classes.txt", options_.classes);
    folder_.finish();
  }

private:
  void end_shard() {
    if (tar_) {
      tar_->finish();
    }
    tar_.reset();
  }

  std::int64_t rows_ = 0;
  std::unique_ptr<data::TarWriter> tar_;
};

/// Opens a new file, in a folder created for it; refuses to replace an existing file.
std::filesystem::path new_file(const std::filesystem::path& folder, const std::string& name) {
  if (std::filesystem::exists(folder / name)) {
    throw std::invalid_argument((folder / name).string()
                                + ": already exists; remove it or choose another folder");
  }
  std::filesystem::create_directories(folder);
  return folder / name;
}

/// Grey levels with the weights of ITU-R BT.601.
std::vector<std::byte> grey(const std::vector<std::uint8_t>& rgb) {
  std::vector<std::byte> levels(rgb.size() / 3);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const int level = 299 * rgb[3 * i] + 587 * rgb[3 * i + 1] + 114 * rgb[3 * i + 2];
    levels[i] = static_cast<std::byte>((level + 500) / 1000);
  }
  return levels;
}

/// MNIST's two files of a split, in the folder of all splits.
class IdxLayout final : public SceneLayout {
public:
  explicit IdxLayout(const SceneOptions& options)
      : options_(options), pictures_(path_of("images-idx3")), labels_(path_of("labels-idx1")) {
    const auto rows = options.rows * static_cast<std::int64_t>(options.classes.size());
    if (options.classes.size() > 256 || rows > std::numeric_limits<std::int32_t>::max()) {
      throw std::invalid_argument("--layout idx: allows at most 256 classes and 2^31 - 1 rows");
    }
    begin(pictures_, {rows, options.size, options.size});
    begin(labels_, {rows});
  }

  std::vector<std::byte> stored(std::vector<std::uint8_t> rgb) const override { return grey(rgb); }
  void add(std::size_t label, std::int64_t, std::span<const std::byte> stored) override {
    pictures_.write(stored.data(), stored.size());
    const auto byte = static_cast<std::uint8_t>(label);
    labels_.write(&byte, 1);
  }
  void finish() override {
    pictures_.commit();
    labels_.commit();
  }

private:
  std::filesystem::path path_of(const std::string& what) const {
    return new_file(options_.out,
                    (options_.split == "train" ? "train-" : "t10k-") + what + "-ubyte");
  }
  /// Writes the header for unsigned bytes (type 8) of this shape, big-endian.
  static void begin(env::WholeFileWriter& file, const std::vector<std::int64_t>& shape) {
    std::vector<std::uint8_t> header = {0, 0, 8, static_cast<std::uint8_t>(shape.size())};
    for (const std::int64_t length : shape) {
      for (int shift = 24; shift >= 0; shift -= 8) {
        header.push_back(static_cast<std::uint8_t>(length >> shift));
      }
    }
    file.write(header.data(), header.size());
  }

  SceneOptions options_;
  env::WholeFileWriter pictures_, labels_;
};

/// One line per picture: its class name, then its grey levels from 0 to 1.
class CsvLayout final : public SceneLayout {
public:
  explicit CsvLayout(const SceneOptions& options)
      : classes_(options.classes),
        file_(new_file(options.out / options.split, options.split + ".csv")) {
    std::string header = "label";
    for (int i = 0; i < options.size * options.size; ++i) {
      header += ",pixel" + std::to_string(i);
    }
    header += "\n";
    file_.write(header.data(), header.size());
  }

  std::vector<std::byte> stored(std::vector<std::uint8_t> rgb) const override {
    std::string line;
    for (const std::byte level : grey(rgb)) {
      char field[16];
      line.append(field, static_cast<std::size_t>(std::snprintf(field, sizeof field, ",%.3g",
                                                                static_cast<int>(level) / 255.0)));
    }
    line += "\n";
    const auto bytes = std::as_bytes(std::span(line));
    return {bytes.begin(), bytes.end()};
  }
  void add(std::size_t label, std::int64_t, std::span<const std::byte> stored) override {
    file_.write(classes_[label].data(), classes_[label].size());
    file_.write(stored.data(), stored.size());
  }
  void finish() override { file_.commit(); }

private:
  std::vector<std::string> classes_;
  env::WholeFileWriter file_;
};

/// One file per split, in the folder of all splits. A coarse class consists of five fine ones.
class CifarLayout final : public SceneLayout {
public:
  CifarLayout(const SceneOptions& options, std::size_t most)
      : options_(options), hundred_(most == 100), file_(path_of(options, hundred_)) {}

  std::vector<std::byte> stored(std::vector<std::uint8_t> rgb) const override {
    std::vector<std::byte> planes(rgb.size());
    const std::size_t pixels = rgb.size() / 3;
    for (std::size_t i = 0; i < rgb.size(); ++i) {
      planes[i % 3 * pixels + i / 3] = static_cast<std::byte>(rgb[i]);
    }
    return planes;
  }
  void add(std::size_t label, std::int64_t, std::span<const std::byte> stored) override {
    const std::uint8_t labels[2] = {static_cast<std::uint8_t>(label / 5),
                                    static_cast<std::uint8_t>(label)};
    file_.write(hundred_ ? labels : labels + 1, hundred_ ? 2 : 1);
    file_.write(stored.data(), stored.size());
  }
  void finish() override {
    file_.commit();
    write_lines(options_.out / (hundred_ ? "fine_label_names.txt" : "batches.meta.txt"),
                options_.classes);
    std::vector<std::string> coarse;
    for (std::size_t i = 0; i < options_.classes.size(); i += 5) {
      coarse.push_back(options_.classes[i] + " and after");
    }
    if (hundred_) {
      write_lines(options_.out / "coarse_label_names.txt", coarse);
    }
  }

private:
  /// Checks the options before the folder is created.
  static std::filesystem::path path_of(const SceneOptions& options, bool hundred) {
    const std::size_t most = hundred ? 100 : 10;
    if (options.size != 32 || options.classes.size() > most) {
      throw std::invalid_argument(
          "--layout " + options.layout + ": needs pictures of 32 pixels and at most "
          + std::to_string(most) + " classes, not --size " + std::to_string(options.size) + " and "
          + std::to_string(options.classes.size()) + " classes");
    }
    const bool training = options.split == "train";
    const char* name = hundred ? (training ? "train.bin" : "test.bin")
                               : (training ? "data_batch_1.bin" : "test_batch.bin");
    return new_file(options.out, name);
  }

  SceneOptions options_;
  bool hundred_;
  env::WholeFileWriter file_;
};

} // namespace

std::unique_ptr<SceneLayout> make_scene_layout(const SceneOptions& options) {
  if (options.layout == "cifar10") {
    return std::make_unique<CifarLayout>(options, 10);
  }
  if (options.layout == "cifar100") {
    return std::make_unique<CifarLayout>(options, 100);
  }
  if (options.layout == "idx") {
    return std::make_unique<IdxLayout>(options);
  }
  if (options.layout == "csv") {
    return std::make_unique<CsvLayout>(options);
  }
  if (options.layout == "tar") {
    return std::make_unique<TarLayout>(options);
  }
  return std::make_unique<FolderLayout>(options);
}

} // namespace troupe::experiments::commands
