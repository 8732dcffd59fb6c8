#include <algorithm>
#include <cstdio>
#include <memory>

#include <ATen/ops/arange.h>

#include "env/text/joined.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/stored_recording.hpp"
#include "experiments/commands/tools/dataset_render.hpp"
#include "experiments/commands/tools/recording_info.hpp"
#include "experiments/config/experiment.pb.h"
#include "experiments/config/stored_data.hpp"
#include "learner/data/formats/minari.hpp"
#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/prefetcher.hpp"
#include "replay/recordings/recording.hpp"

namespace troupe::experiments::commands {
namespace {

namespace data = learner::data;

constexpr std::int64_t kShownRowsAtOnce = 64;

struct ReadOptions {
  data::DatasetOptions dataset{};
  std::string cache = Data().cache(); // the default of an experiment
  double cache_gigabytes = Data().cache_gigabytes();
  int threads = 1;
  bool json = false;
};

std::string shape_text(const data::Column& column) {
  return column.type + " [" + env::joined(column.shape) + "]";
}

Json json_of(const data::DatasetInfo& info) {
  Json columns = Json::array();
  for (const data::Column& column : info.columns) {
    columns.push_back({{"name", column.name}, {"type", column.type}, {"shape", column.shape}});
  }
  return {{"format", info.format},    {"rows", info.rows},   {"bytes", info.bytes},
          {"classes", info.classes},  {"names", info.names}, {"columns", columns},
          {"bad_rows", info.bad_rows}};
}

/// The folder of a recording, downloaded if necessary; empty if the input is not a recording.
std::filesystem::path recording_in(const ReadOptions& options) {
  const std::string path = options.dataset.path;
  if (replay::is_object_address(path)) {
    return is_stored_recording(path) ? local_recording(path) : "";
  }
  return replay::is_recording(path) ? path : "";
}

std::shared_ptr<const data::DescribedDataset> open(const ReadOptions& options,
                                                   const data::DatasetOptions& settings) {
  return open_stored_dataset(
      settings, "PATH",
      {.folder = options.cache,
       .folder_key = "--cache",
       .bytes_key = "--cache-gigabytes",
       .most_bytes = static_cast<std::uint64_t>(options.cache_gigabytes * kBytesPerGigabyte),
       .tell = [](const std::string& line) {
         std::fprintf(stderr, "troupe: %s\n", line.c_str());
       }});
}

void show(const ReadOptions& options) {
  if (const auto recording = recording_in(options); !recording.empty()) {
    show_recording(recording, options.json);
    return;
  }
  const auto info = open(options, options.dataset)->info();
  if (options.json) {
    print_json(json_of(info));
    return;
  }
  std::printf("%s: %s, %lld rows, %.1f MB\n", options.dataset.path.c_str(), info.format.c_str(),
              static_cast<long long>(info.rows), static_cast<double>(info.bytes) / 1e6);
  for (const data::Column& column : info.columns) {
    std::printf("  %-20s %s\n", column.name.c_str(), shape_text(column).c_str());
  }
  std::printf("  %lld classes", static_cast<long long>(info.classes));
  for (std::size_t i = 0; i < std::min<std::size_t>(info.names.size(), 20); ++i) {
    std::printf("%s%s", i == 0 ? ": " : ", ", info.names[i].c_str());
  }
  std::printf("%s\n", info.names.size() > 20 ? ", …" : "");
}

/// Reads every row and returns the number of bad ones.
std::int64_t check_rows(const ReadOptions& options) {
  if (const auto recording = recording_in(options); !recording.empty()) {
    check_recording(recording, options.json);
    return 0;
  }
  auto settings = options.dataset;
  settings.tolerate = 1;
  settings.transform = {.crop = data::Crop::centre, .size = 32, .resize = 32}; // any size
  settings.tell = [&options](const std::string& message) {
    if (options.json) {
      print_json({{"bad", message}});
    } else {
      std::printf("%s\n", message.c_str());
    }
  };
  const auto dataset = open(options, settings);
  const std::int64_t blocks = (dataset->size() + kShownRowsAtOnce - 1) / kShownRowsAtOnce;
  learner::Prefetcher rows(0, blocks,
                           [&](std::int64_t block) {
                             const auto first = block * kShownRowsAtOnce;
                             const auto end = std::min(first + kShownRowsAtOnce, dataset->size());
                             return dataset->rows(at::arange(first, end, at::kLong), 0);
                           },
                           {.threads = options.threads, .ahead = options.threads + 1});
  while (!rows.next().empty()) {
  }
  const auto info = dataset->info();
  if (options.json) {
    print_json({{"rows", info.rows}, {"bad_rows", info.bad_rows}});
  } else {
    std::printf("%lld of %lld rows are good\n", static_cast<long long>(info.rows - info.bad_rows),
                static_cast<long long>(info.rows));
  }
  return info.bad_rows;
}

void add_read_flags(CLI::App& command, ReadOptions& options) {
  auto& dataset = options.dataset;
  command
      .add_option("PATH", dataset.path,
                  "file, folder or shards-{000..009}.tar, here or below s3://bucket/prefix")
      ->required();
  command
      .add_option("--cache", options.cache,
                  "folder for copies of s3:// data, shared by the processes of a host")
      ->capture_default_str();
  command
      .add_option("--cache-gigabytes", options.cache_gigabytes,
                  "maximum size of all copies in it; the oldest copies that are not in use make "
                  "room for new ones")
      ->check(CLI::Range(1e-9, 1e9))
      ->capture_default_str();
  command.add_option("--format", dataset.format, "default: detected from the files")
      ->check(CLI::IsMember(data::dataset_formats()));
  command.add_option("--split", dataset.split, "where there are several: train, validation, test");
  command.add_option("--label", dataset.label,
                     "the label's column, by name or (CSV) number; for CIFAR-100: fine or coarse");
  command.add_option("--columns", dataset.columns, "columns of tables; default: all")
      ->delimiter(',');
  command.add_option("--header", dataset.header, "whether CSV has a header: auto, yes, no")
      ->capture_default_str();
  command.add_option("--classes", dataset.classes, "labels must be below it")
      ->check(CLI::Range(0, 1'000'000));
  command.add_flag("--json", options.json, "as JSON, one object per line");
}

void add_info(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("info", "Prints the rows, classes, columns and size of a data set");
  command->footer("Example: troupe dataset info scenes --split validation --json");
  auto options = std::make_shared<ReadOptions>();
  add_read_flags(*command, *options);
  command->callback([options] { show(*options); });
}

void add_dataset_check(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("check", "Reads every row, decodes every picture and lists bad rows");
  command->footer("Example: troupe dataset check scenes --threads 2\n"
                  "Exit code 1 when a row is bad: each is named with its file, and row or line.");
  auto options = std::make_shared<ReadOptions>();
  add_read_flags(*command, *options);
  command->add_option("--threads", options->threads, "threads that decode")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->callback(
      [options, &exit_code] { exit_code = check_rows(*options) > 0 ? kFailed : kDone; });
}

struct MinariFlags {
  std::string from;
  std::string out;
  std::string name; // of the data set or the observation
};

void add_import(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "import", "Makes a recording of a Minari data set (HDF5), for `troupe train`");
  command->footer("Example: troupe dataset import ~/.minari/datasets/mujoco/hopper/medium-v0 --out "
                  "hopper");
  auto flags = std::make_shared<MinariFlags>();
  command->add_option("FOLDER", flags->from, "folder of the data set, with data/main_data.hdf5")
      ->required();
  command->add_option("--out", flags->out, "the recording, a new folder")->required();
  command->add_option("--observation", flags->name,
                      "entry of a dictionary of observations; \"a/b\" if it is nested");
  command->callback([flags] {
    const auto out = new_folder(flags->out);
    data::import_minari(flags->from, out, flags->name);
    show_recording(out, false);
  });
}

void add_export(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("export", "Writes a recording as a Minari data set (HDF5)");
  command->footer("Example: troupe dataset export hopper --name hopper/medium-v0 --out "
                  "~/.minari/datasets/hopper/medium-v0");
  auto flags = std::make_shared<MinariFlags>();
  command
      ->add_option("RECORDING", flags->from,
                   "a folder of `troupe record`, or s3://bucket/prefix/NAME")
      ->required();
  command->add_option("--out", flags->out, "a new folder")->required();
  command->add_option("--name", flags->name, "of the data set, as in \"hopper/medium-v0\"")
      ->required();
  command->callback([flags] {
    const auto out = new_folder(flags->out);
    data::export_minari(local_recording(flags->from), out, flags->name);
  });
}

} // namespace

void add_dataset(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "dataset", "Shows, checks, draws, imports and exports data sets and recorded episodes");
  command->require_subcommand(1);
  command->footer(
      "Example: troupe dataset render scenes --rows 500 --size 64\n"
      "         troupe dataset info scenes\n"
      "         troupe dataset check scenes\n"
      "         troupe dataset import ~/.minari/datasets/hopper/medium-v0 --out hopper\n"
      "Formats: image folders, tar shards (WebDataset), CIFAR-10 and -100, MNIST's idx, "
      "CSV, npz, HDF5, NetCDF; recordings of `troupe record`.");
  add_info(*command);
  add_dataset_check(*command, exit_code);
  add_dataset_render(*command);
  add_import(*command);
  add_export(*command);
}

} // namespace troupe::experiments::commands
