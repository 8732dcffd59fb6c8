#include "experiments/config/plan_workload.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include <ATen/ops/zeros.h>

#include "env/text/joined.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/members.hpp"
#include "experiments/config/on_data.hpp"
#include "experiments/config/stored_data.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/loader.hpp"
#include "learner/device/safetensors.hpp"
#include "learner/workloads/classifier.hpp"
#include "learner/workloads/sngan.hpp"

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;
using learner::data::DescribedDataset;

using SharedDataset = std::shared_ptr<const DescribedDataset>;

/// Options of the training data.
learner::data::DatasetOptions dataset_options(const Data& in) {
  learner::data::DatasetOptions out;
  assign(in, members(out));
  const std::string crop = in.crop() != "auto" ? in.crop() : in.size() > 0 ? "random_resized" : "";
  out.transform.crop = crop == "random_resized" ? learner::data::Crop::random_resized
                       : crop == "padded"       ? learner::data::Crop::padded
                                                : learner::data::Crop::none;
  out.transform.size = out.transform.crop == learner::data::Crop::none ? 0 : in.size();
  return out;
}

/// Uses the centre of each picture if training uses crops, otherwise the whole picture.
learner::data::TransformOptions validation_transform(const Data& in) {
  const auto training = dataset_options(in).transform;
  if (training.crop == learner::data::Crop::none) {
    return {};
  }
  const bool parts = training.crop == learner::data::Crop::random_resized;
  return {.crop = learner::data::Crop::centre,
          .size = training.size,
          .resize = parts ? 0 : training.size};
}

replay::CacheOptions cache_options(const Data& in) {
  return {
      .folder = in.cache(),
      .most_bytes = static_cast<std::uint64_t>(in.cache_gigabytes() * kBytesPerGigabyte),
      .tell = [](const std::string& line) { std::fprintf(stderr, "troupe: %s\n", line.c_str()); }};
}

SharedDataset open_training(const Data& in, std::uint64_t seed) {
  auto options = dataset_options(in);
  options.seed = seed;
  return open_stored_dataset(options, "data.path", cache_options(in));
}

SharedDataset open_validation(const Data& in, const DescribedDataset& training) {
  auto options = dataset_options(in);
  options.split = "validation";
  if (!in.validation().empty()) {
    options.path = in.validation();
    options.requires_split = false;
  }
  options.transform = validation_transform(in);
  const auto info = training.info();
  options.classes = info.classes;
  options.names = info.names;
  options.features_like = info.features; // the columns of training, in its order
  options.label_like = info.label;
  return open_stored_dataset(options, in.validation().empty() ? "data.path" : "data.validation",
                             cache_options(in));
}

const learner::data::Column* column_of(const learner::data::DatasetInfo& info,
                                       const std::string& name) {
  const auto found = std::find_if(info.columns.begin(), info.columns.end(),
                                  [&](const auto& column) { return column.name == name; });
  return found == info.columns.end() ? nullptr : &*found;
}

/// Refuses a table without a label that tells the class.
void check_label_column(const learner::data::DatasetInfo& info) {
  const auto* label = column_of(info, "label");
  if (label != nullptr && label->type == "int64") {
    return;
  }
  std::vector<std::string> names = info.features; // the header's; otherwise those of the arrays
  if (names.empty()) {
    for (const auto& column : info.columns) {
      if (&column != label) {
        names.push_back(column.name);
      }
    }
  }
  throw std::invalid_argument(
      (label == nullptr ? "data.label is empty, and data.path has no array \"label\""
                        : "data.label: the label in data.path is " + label->type
                              + ", and not all are whole numbers")
      + "; name the column of the classes, whole numbers from 0, which may be "
      + env::joined(names, " or "));
}

learner::InputFn input_of(const SharedDataset& dataset, const Experiment& experiment,
                          std::int64_t global_batch) {
  learner::data::LoaderOptions options{.global_batch = global_batch, .seed = experiment.seed()};
  assign(experiment.data(), members(options));
  return learner::data::make_input(dataset, options);
}

learner::ClassifierConfig classifier_config(const Experiment& experiment) {
  learner::ClassifierConfig out;
  assign(experiment.classifier(), members(out));
  out.epochs = experiment.data().epochs();
  return out;
}

learner::ClassifierSpec classifier_spec(const DescribedDataset& training, std::int64_t batch_size) {
  const auto info = training.info();
  check_label_column(info);
  learner::ClassifierSpec spec;
  spec.classes = info.classes;
  if (const auto* pictures = column_of(info, "picture")) {
    if (pictures->shape.size() != 3 || pictures->shape[1] < 0 || pictures->shape[2] < 0) {
      throw std::invalid_argument("data.size is 0 and the pictures of data.path differ in size; "
                                  "set data.size to the size of the network's input");
    }
    spec.channels = pictures->shape[0];
    spec.height = pictures->shape[1];
    spec.width = pictures->shape[2];
  } else if (const auto* features = column_of(info, "features")) {
    if (features->shape.size() != 1) {
      throw std::invalid_argument(
          "data.path: \"features\" must have 2 dimensions, [rows, columns]; "
          "it has "
          + std::to_string(features->shape.size() + 1));
    }
    spec.features = features->shape[0];
  } else {
    throw std::invalid_argument("data.path has neither pictures nor a column \"features\"; "
                                "`troupe dataset info` lists its contents");
  }
  spec.steps_per_epoch = training.size() / batch_size;
  return spec;
}

/// Sets the run's length and evaluation period, in updates of `rows` rows each.
void set_length(const Experiment& experiment, const DescribedDataset& training, std::int64_t rows,
                actors::RunConfig& config) {
  if (training.size() < rows) {
    throw std::invalid_argument("data.path " + experiment.data().path() + " has "
                                + std::to_string(training.size()) + " rows, but an update takes "
                                + std::to_string(rows) + "; lower batch_size");
  }
  const auto per_epoch = static_cast<double>(training.size() / rows);
  const auto updates = [&](double epochs) { return std::llround(epochs * per_epoch); };
  config.stop.updates = std::max<std::int64_t>(1, updates(experiment.data().epochs()));
  const double period = experiment.data().evaluation_epochs();
  config.evaluation.period = period > 0 ? std::max<std::int64_t>(1, updates(period)) : 0;
}

/// Loads the network of a classifier's run from its newest checkpoint, to compute features of size
/// x size pictures. All replicas in this process share it.
learner::DescribePictures describer(const std::string& run, std::int64_t size) {
  check_is_run(run);
  const Experiment experiment = load_experiment(fs::path(run) / "config.textproto");
  if (!experiment.has_classifier()) {
    throw std::invalid_argument("sngan.classifier " + run
                                + " is not a run of a classifier; name one on the same data");
  }
  const auto file = find_checkpoint(run).path / "learner.safetensors";
  const auto training = open_training(experiment.data(), experiment.seed());
  const auto config = classifier_config(experiment);
  const auto spec = classifier_spec(*training, config.batch_size);
  if (spec.height != size || spec.width != size) {
    throw std::invalid_argument("sngan.classifier " + run + " was not trained on pictures of "
                                + std::to_string(size) + "x" + std::to_string(size)
                                + ", which data.path has; name one on the same data");
  }
  const std::shared_ptr<learner::Classifier> classifier = learner::make_classifier(config, spec);
  learner::ReplicaContext alone(nullptr);
  classifier->build(alone);
  classifier->load(learner::read_safetensors(file).tensors, {});
  classifier->describe(at::zeros({1, 3, size, size}, at::kByte)); // from now on it is read-only
  return [classifier](const at::Tensor& pictures) { return classifier->describe(pictures); };
}

void plan_classifier(const Experiment& experiment, actors::RunConfig& config) {
  const auto training = open_training(experiment.data(), experiment.seed());
  const auto settings = classifier_config(experiment);
  auto spec = classifier_spec(*training, settings.batch_size);
  set_length(experiment, *training, settings.batch_size, config);
  spec.validation = open_validation(experiment.data(), *training);
  spec.input = input_of(training, experiment, settings.batch_size);
  learner::check(settings, spec);
  config.workload = [settings, spec] { return learner::make_classifier(settings, spec); };
}

void plan_sngan(const Experiment& experiment, actors::RunConfig& config) {
  const Sngan& in = experiment.sngan();
  const auto training = open_training(experiment.data(), experiment.seed());
  const auto pictures = classifier_spec(*training, in.batch_size());
  if (pictures.height == 0 || pictures.height != pictures.width) {
    throw std::invalid_argument("data.path has no square pictures; sngan makes pictures of 32x32, "
                                "64x64 or 128x128, name one in data.size");
  }
  const auto rows = in.batch_size() * in.critic_steps();
  set_length(experiment, *training, rows, config);
  learner::SnganConfig settings;
  assign(in, members(settings));
  settings.decay_steps = in.decay() ? config.stop.updates : 0;
  learner::SnganSpec spec;
  spec.classes = std::max<std::int64_t>(1, pictures.classes);
  spec.size = pictures.height;
  spec.input = input_of(training, experiment, rows);
  if (!in.classifier().empty()) {
    spec.real = open_validation(experiment.data(), *training);
    spec.describe = describer(in.classifier(), spec.size);
  }
  learner::check(settings, spec);
  config.workload = [settings, spec] { return learner::make_sngan(settings, spec); };
}

} // namespace

void plan_workload(const Experiment& experiment, actors::RunConfig& config) {
  if (experiment.has_classifier()) {
    plan_classifier(experiment, config);
  } else if (experiment.has_sngan()) {
    plan_sngan(experiment, config);
  }
}

} // namespace troupe::experiments
