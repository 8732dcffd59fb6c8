#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learner/data/dataset.hpp"
#include "learner/device/step_graph.hpp"
#include "learner/replicas/replica.hpp"

namespace troupe::learner {

struct ClassifierConfig {
  /// "resnet18", "resnet34", "resnet50", "resnet101", "resnet152"; with "_small" behind for small
  /// pictures: a 3x3 convolution without pooling in front; "resnet20", "resnet32", "resnet44",
  /// "resnet56", "resnet110" for pictures of 32x32; "inception_v3"; "mlp".
  std::string model = "resnet50";
  std::vector<std::int64_t> layers = {256, 256}; // mlp: hidden, ReLU
  bool zero_last_gamma = true;                   // resnet: each block begins as the identity
  double auxiliary_weight = 0.4; // inception_v3: of the second head's loss; 0: there is none
  double dropout = 0.5;          // inception_v3

  std::vector<double> mean = {0.485, 0.456, 0.406}; // of uint8 pictures / 255; one for all channels
  std::vector<double> standard_deviation = {0.229, 0.224, 0.225}; // or one each
  double label_smoothing = 0.1;

  std::int64_t batch_size = 256; // rows of an update, over all replicas in sync
  double epochs = 90;            // where the schedule ends
  std::string optimizer = "sgd"; // "sgd", "rmsprop", "adamw"
  double learning_rate = 0.1;    // the peak, of an update of 256 rows where linear_scaling is on
  bool linear_scaling = true;    // the peak is learning_rate · batch_size / 256
  double momentum = 0.9;         // sgd, rmsprop
  bool nesterov = false;         // sgd
  double rmsprop_decay = 0.9;    // of the average of squares
  double rmsprop_epsilon = 1;    // as Inception; added to the root
  double beta1 = 0.9;            // adamw
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-4;                    // of weights; biases and batch norms have none
  double gradient_norm = 0;                      // clip the global norm; 0: off
  std::string schedule = "cosine";               // "constant", "cosine", "steps", "exponential"
  double warmup_epochs = 5;                      // from 0 to the peak, in a line
  std::vector<double> milestones = {30, 60, 80}; // steps: epochs from which on the rate is …
  double decay = 0.1; // … multiplied by this; exponential: the factor, 0.94 for Inception, …
  double decay_epochs = 2; // … each so many epochs

  double average_decay = 0; // exponential average of weights, which evaluation then uses: 0.9999
  std::string precision = "auto"; // "float32", "bfloat16", "auto" (bfloat16 for convolutions where
                                  // the device multiplies it); "float64" for tests
  bool channels_last = true;
  bool global_batch_norm = true; // over all replicas; off: each replica its own rows
};

/// The data. Either pictures or features.
struct ClassifierSpec {
  std::int64_t classes = 0;
  std::int64_t channels = 3; // of pictures
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t features = 0;        // columns, of rows that are no pictures
  std::int64_t steps_per_epoch = 0; // updates
  InputFn input = {};               // empty: batches are brought by the caller of step_fn
  std::shared_ptr<const Dataset> validation =
      {}; // of evaluate(); null: there is nothing to measure
};

/// Throws std::invalid_argument naming field, value and rule.
void check(const ClassifierConfig& config, const ClassifierSpec& spec);

/// Trains on batches {"picture": uint8 or float32 [rows, channels, height, width] | "features":
/// float32 [rows, columns], "label": int64 [rows]}, this replica's share. uint8 pictures are
/// normalised in the step, float32 ones come so. The loss is the mean over the rows, so that R
/// replicas on 1/R of the batch each equal one on the whole (with global_batch_norm, without
/// dropout). Metrics: "loss" (with smoothing and the auxiliary head's), "accuracy" (of the batch,
/// before the update), "learning_rate", "gradient_norm". Throws std::runtime_error on NaN or
/// infinity in the features, the loss or a gradient, naming its origin, before a weight changes,
/// and on a label out of range; std::invalid_argument on other shapes and types.
///
/// parameters(): the network's by torchvision's names, buffers among them, and the averaged ones
/// behind "average.". evaluate() is evaluate_classifier() on the validation data. load() with an
/// empty optimizer state takes the parameters alone, to measure.
class Classifier : public Replica {
public:
  /// Of each row {"loss" (without smoothing), "top1", "top5": 1 where the label is among the best},
  /// by the averaged weights where there are such. Evaluation mode, no gradient.
  virtual TensorMap measure(const TensorMap& batch) = 0;
  /// What the last layer sees and its logits, likewise: {"features": [rows, n], "logits": [rows,
  /// classes]}, float32. Pictures (or rows of features) as in batches. From a first call on threads
  /// may share it, while nothing else is called.
  virtual TensorMap describe(const at::Tensor& pictures) = 0;
  /// Without global_batch_norm the replicas' running averages differ: all get replica 0's, which a
  /// checkpoint has.
  virtual void agree_on_buffers(ReplicaContext& context) = 0;
};

/// Captured updates (CapturedUpdate) are for batches shaped as the first, of a replica that steps
/// alone with "sgd" or "adamw" and without dropout; others are made one by one, with a read by the
/// host for the norm of the gradients. All give the same parameters and metrics.
std::unique_ptr<Classifier> make_classifier(const ClassifierConfig& config,
                                            const ClassifierSpec& spec,
                                            UpdateCapture capture = UpdateCapture::where_it_pays);

/// Means over all rows of the data set, each row once, `batch` rows of a replica at once: "top1",
/// "top5", "loss". Every replica of the sync group calls it and gets the same; `replica` is one
/// that make_classifier made, else std::invalid_argument.
Metrics evaluate_classifier(ReplicaContext& context, Replica& replica, const Dataset& dataset,
                            std::int64_t batch);

} // namespace troupe::learner
