#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/formats/picture_reader.hpp"
#include "learner/data/formats/shard_names.hpp"
#include "learner/data/formats/tar_index.hpp"
#include "learner/data/pictures/file.hpp"

namespace troupe::learner::data {
namespace {

constexpr std::uint64_t kMostLabelBytes = 1 << 20; // in a .cls or .json file

/// As in WebDataset, "a/b.seg.PNG" belongs to the sample "a/b" and has the extension "seg.png".
struct Name {
  std::string key;
  std::string extension;
};

Name split_name(const std::string& path) {
  const auto slash = path.rfind('/');
  const auto dot = path.find('.', slash == std::string::npos ? 0 : slash + 1);
  if (dot == std::string::npos)
    return {path, ""};
  std::string extension = path.substr(dot + 1);
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return {path.substr(0, dot), extension};
}

/// A picture and its label; sizes in bytes.
struct Sample {
  std::size_t shard = 0;
  std::string key{};
  std::uint64_t picture_at = 0;
  std::uint64_t picture_bytes = 0;
  std::int64_t label = -1;
  std::string problem{}; // why the picture or label is missing
};

class TarShards final : public PictureReader {
public:
  explicit TarShards(const DatasetOptions& options) {
    info_.format = "tar";
    for (const auto& path : shards_of(options.path)) {
      const File shard(path);
      info_.bytes += shard.size();
      index(shard, shards_.size());
      shards_.push_back(path);
    }
    info_.rows = static_cast<std::int64_t>(samples_.size());
    if (samples_.empty())
      throw DataError(options.path.string() + ": has no samples with .jpg, .jpeg or .png");
    for (const auto& sample : samples_)
      info_.classes = std::max(info_.classes, sample.label + 1);
    const auto folder =
        std::filesystem::is_directory(options.path) ? options.path : options.path.parent_path();
    info_.names = read_lines(folder / "classes.txt");
    if (options.classes > 0)
      info_.classes = options.classes;
    else if (!info_.names.empty())
      info_.classes = static_cast<std::int64_t>(info_.names.size());
  }

  DatasetInfo info() const override { return info_; }
  std::string where(std::int64_t row) const override {
    const auto& sample = of(row);
    return shards_[sample.shard].string() + ": " + sample.key + " (row " + std::to_string(row)
           + ")";
  }
  std::int64_t label(std::int64_t row) const override {
    if (!of(row).problem.empty())
      throw DataError(where(row) + ": " + of(row).problem);
    return of(row).label;
  }
  void read(std::int64_t row, StoredPicture& out) const override {
    const auto& sample = of(row);
    out.encoded = true;
    File(shards_[sample.shard]).read(sample.picture_at, sample.picture_bytes, out.bytes);
  }

private:
  const Sample& of(std::int64_t row) const { return samples_[static_cast<std::size_t>(row)]; }

  /// The files of one sample must be consecutive.
  void index(const File& file, std::size_t shard) {
    Sample sample{.shard = shard};
    bool begun = false;
    const auto close = [&] {
      if (!begun)
        return;
      if (sample.picture_bytes == 0)
        sample.problem = "has no .jpg, .jpeg or .png";
      else if (sample.label < 0 && sample.problem.empty())
        sample.problem = "has no .cls, and no .json with a \"label\"";
      samples_.push_back(sample);
    };
    for (const auto& entry : index_tar(file)) {
      const auto name = split_name(entry.name);
      if (!begun || name.key != sample.key) {
        close();
        sample = {.shard = shard, .key = name.key};
        begun = true;
      }
      take(file, entry, name.extension, sample);
    }
    close();
  }

  static void take(const File& file, const TarEntry& entry, const std::string& extension,
                   Sample& sample) {
    if (extension == "jpg" || extension == "jpeg" || extension == "png") {
      sample.picture_at = entry.offset;
      sample.picture_bytes = entry.size;
      return;
    }
    const bool json = extension == "json";
    if (extension != "cls" && !(json && sample.label < 0))
      return;
    if (entry.size > kMostLabelBytes) {
      sample.problem = "." + extension + " has " + std::to_string(entry.size) + " bytes, more than "
                       + std::to_string(kMostLabelBytes);
      return;
    }
    std::vector<std::byte> bytes;
    file.read(entry.offset, entry.size, bytes);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (json)
      return take_json(text, sample);
    if (const auto label = whole_number_in(text); label && *label >= 0 && *label < kMostClasses) {
      sample.label = *label;
      sample.problem.clear(); // of a .json before it
    } else {
      sample.problem = ".cls is \"" + text.substr(0, 32) + "\"; a number from 0 to "
                       + std::to_string(kMostClasses - 1) + " is expected";
    }
  }

  static void take_json(const std::string& text, Sample& sample) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_discarded())
      sample.problem = ".json cannot be parsed";
    else if (json.is_object() && json.contains("label") && json["label"].is_number_integer()) {
      const auto label = json["label"].get<double>(); // the number may exceed std::int64_t
      if (label >= 0 && label < static_cast<double>(kMostClasses))
        sample.label = json["label"].get<std::int64_t>();
      else
        sample.problem = ".json has the label " + json["label"].dump() + "; a number from 0 to "
                         + std::to_string(kMostClasses - 1) + " is expected";
    }
  }

  /// Accepts one file, "name-{000..009}.tar", or a folder, of which it takes all shards.
  static std::vector<std::filesystem::path> shards_of(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path))
      return list_files(path, false, [](const auto& name) { return name.ends_with(".tar"); });
    const auto names = shard_names(path.string());
    return {names.begin(), names.end()};
  }

  DatasetInfo info_;
  std::vector<std::filesystem::path> shards_; // opened per picture: there may be thousands
  std::vector<Sample> samples_;
};

} // namespace

std::unique_ptr<PictureReader> open_tar(const DatasetOptions& options) {
  return std::make_unique<TarShards>(options);
}

} // namespace troupe::learner::data
