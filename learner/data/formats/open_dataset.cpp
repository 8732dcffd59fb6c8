#include "learner/data/formats/open_dataset.hpp"

#include <algorithm>
#include <stdexcept>

#include "env/text/joined.hpp"
#include "learner/data/formats/picture_dataset.hpp"
#include "learner/data/formats/picture_reader.hpp"
#include "learner/data/formats/tables.hpp"
#include "learner/data/pictures/file.hpp"

namespace troupe::learner::data {
namespace {

/// The format that the end of a file name implies; empty: unknown.
std::string format_of_name(const std::string& name) {
  const auto ends = [&name](std::initializer_list<const char*> endings) {
    return std::any_of(endings.begin(), endings.end(),
                       [&name](const char* ending) { return name.ends_with(ending); });
  };
  if (ends({".tar"}))
    return "tar";
  if (ends({".csv", ".tsv"}))
    return "csv";
  if (ends({".npz", ".npy"}))
    return "npz";
  if (ends({".h5", ".hdf5"}))
    return "hdf5";
  if (ends({".nc", ".nc4", ".cdf"}))
    return "netcdf";
  if (ends({"-ubyte", "-ubyte.gz"}))
    return "idx";
  if (name == "train.bin" || name == "test.bin")
    return "cifar100";
  if (ends({".bin"}))
    return "cifar10";
  return {};
}

std::string find_format(const std::filesystem::path& path) {
  if (path.string().find('{') != std::string::npos && path.string().ends_with(".tar"))
    return "tar";
  if (path.string().starts_with("s3://"))
    throw std::invalid_argument(
        "data.path is \"" + path.string()
        + "\", but open_dataset() reads files on this host; experiments and "
          "`troupe dataset` fetch such data first: do so, or copy the "
          "data to this host");
  if (!std::filesystem::exists(path))
    throw std::invalid_argument(path.string() + ": there is no such file or folder");
  std::string format;
  if (!std::filesystem::is_directory(path))
    format = format_of_name(path.filename().string());
  else {
    for (const auto& file : list_files(path, false, [](const auto&) { return true; }))
      if (format = format_of_name(file.filename().string()); !format.empty())
        break;
    if (format.empty() && !list_folders(path).empty())
      format = "folder";
  }
  if (format.empty())
    throw std::invalid_argument(path.string() + ": its name does not show its format; give "
                                + "one of " + env::joined(dataset_formats()));
  return format;
}

bool is_validation(const std::string& split) {
  return split == "validation" || split == "val" || split == "test";
}

/// Whether the names of the files in a folder of this format tell the split.
bool names_splits(const std::filesystem::path& path, const std::string& format) {
  return std::filesystem::is_directory(path) && (format == "idx" || format.starts_with("cifar"));
}

/// If the folder has one subfolder per split, returns the one for the requested split.
std::filesystem::path split_folder(const DatasetOptions& options) {
  const auto& split = options.split;
  const bool validation = is_validation(split);
  if (!split.empty() && split != "train" && !validation)
    throw std::invalid_argument("split: \"" + split
                                + "\" must be \"train\", \"validation\", \"val\" or \"test\"");
  if (!std::filesystem::is_directory(options.path))
    return options.path;
  std::vector<std::string> names = {"train"};
  if (validation) {
    names = {"validation", "val", "test"};
    names.insert(names.begin(), split);
  }
  for (const auto& name : names)
    if (std::filesystem::is_directory(options.path / name))
      return options.path / name;
  return options.path;
}

std::unique_ptr<DescribedDataset> open_as(const std::string& format,
                                          const DatasetOptions& options) {
  const auto pictures = [&](std::unique_ptr<PictureReader> reader) {
    return std::make_unique<PictureDataset>(std::move(reader), options);
  };
  if (format == "folder")
    return pictures(open_image_folder(options));
  if (format == "tar")
    return pictures(open_tar(options));
  if (format == "cifar10")
    return pictures(open_cifar(options, 10));
  if (format == "cifar100")
    return pictures(open_cifar(options, 100));
  if (format == "idx")
    return pictures(open_idx(options));
  if (format == "csv")
    return open_csv(options);
  if (format == "npz")
    return open_npz(options);
  if (format == "hdf5")
    return open_hdf5(options);
  if (format == "netcdf")
    return open_netcdf(options);
  throw std::invalid_argument("format: \"" + format + "\" is not one of "
                              + env::joined(dataset_formats()));
}

} // namespace

const std::vector<std::string>& dataset_formats() {
  static const std::vector<std::string> names = {"folder", "tar", "cifar10", "cifar100", "idx",
                                                 "csv",    "npz", "hdf5",    "netcdf"};
  return names;
}

std::unique_ptr<DescribedDataset> open_dataset(const DatasetOptions& given) {
  auto options = given;
  options.path = split_folder(given);
  const auto format = given.format.empty() ? find_format(options.path) : given.format;
  if (is_validation(options.split) && options.path == given.path
      && !names_splits(options.path, format)
      && (given.requires_split || std::filesystem::is_directory(options.path / "train")))
    throw std::invalid_argument(given.path.string() + ": split is \"" + options.split
                                + "\", and there is no such folder in it");
  auto dataset = open_as(format, options);
  const auto names = dataset->info().names;
  if (!given.names.empty() && !names.empty() && names != given.names)
    throw std::invalid_argument(options.path.string()
                                + ": has other classes than the data it goes with: "
                                + env::joined(names) + "; not " + env::joined(given.names));
  return dataset;
}

} // namespace troupe::learner::data
