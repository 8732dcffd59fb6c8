#include "experiments/commands/dataset_layout.hpp"

#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "env/whole_file.hpp"
#include "experiments/picture.hpp"
#include "learner/data/picture.hpp"
#include "learner/data/tar_writer.hpp"

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

/// A folder that appears under its name when it is whole.
class PartialFolder {
public:
  explicit PartialFolder(std::filesystem::path path) : path_(std::move(path)) {
    if (std::filesystem::exists(path_)) {
      throw std::invalid_argument(path_.string()
                                  + ": is there; remove it or choose another folder");
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

/// One file of a split, in the folder of all; coarse classes are five fine ones each.
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
  /// Checks before it makes the folder.
  static std::filesystem::path path_of(const SceneOptions& options, bool hundred) {
    const std::size_t most = hundred ? 100 : 10;
    if (options.size != 32 || options.classes.size() > most) {
      throw std::invalid_argument("--layout " + options.layout + ": has pictures of 32 pixels and "
                                  + std::to_string(most) + " classes at most; not --size "
                                  + std::to_string(options.size) + " and "
                                  + std::to_string(options.classes.size()) + " classes");
    }
    const bool training = options.split == "train";
    const char* name = hundred ? (training ? "train.bin" : "test.bin")
                               : (training ? "data_batch_1.bin" : "test_batch.bin");
    if (std::filesystem::exists(options.out / name)) {
      throw std::invalid_argument((options.out / name).string()
                                  + ": is there; remove it or choose another folder");
    }
    std::filesystem::create_directories(options.out);
    return options.out / name;
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
  if (options.layout == "tar") {
    return std::make_unique<TarLayout>(options);
  }
  return std::make_unique<FolderLayout>(options);
}

} // namespace troupe::experiments::commands
