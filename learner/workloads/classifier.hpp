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
  /// "resnet18", "resnet34", "resnet50", "resnet101", "resnet152"; the suffix "_small" is for
  /// small pictures, with a 3x3 convolution without pooling as the stem; "resnet20", "resnet32",
  /// "resnet44", "resnet56", "resnet110" for pictures of 32x32; "inception_v3"; "mlp".
  std::string model = "resnet50";
  std::vector<std::int64_t> layers = {256, 256}; // mlp: widths of hidden layers, ReLU
  bool zero_last_gamma = true;                   // resnet: each block starts as the identity
  double auxiliary_weight = 0.4; // inception_v3: weight of the second head's loss; 0: no head
  double dropout = 0.5;          // inception_v3

  std::vector<double> mean = {0.485, 0.456, 0.406}; // of uint8 pictures / 255; one for all channels
  std::vector<double> standard_deviation = {0.229, 0.224, 0.225}; // or one per channel
  double label_smoothing = 0.1;

  std::int64_t batch_size = 256; // rows per update, over all replicas in sync
  double epochs = 90;            // at which the schedule ends
  std::string optimizer = "sgd"; // "sgd", "rmsprop", "adamw"
  double learning_rate = 0.1;    // peak; with linear_scaling, for an update of 256 rows
  bool linear_scaling = true;    // the peak is learning_rate · batch_size / 256
  double momentum = 0.9;         // sgd, rmsprop
  bool nesterov = false;         // sgd
  double rmsprop_decay = 0.9;    // of the average of squares
  double rmsprop_epsilon = 1;    // as in Inception; added to the root
  double beta1 = 0.9;            // adamw
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-4;                    // of weights, not of biases and batch norms
  double gradient_norm = 0;                      // clip the global norm; 0: off
  std::string schedule = "cosine";               // "constant", "cosine", "steps", "exponential"
  double warmup_epochs = 5;                      // linear from 0 to the peak
  std::vector<double> milestones = {30, 60, 80}; // steps: epochs at which the rate is multiplied …
  double decay = 0.1;      // … by this; exponential: the factor, 0.94 for Inception, …
  double decay_epochs = 2; // … every so many epochs

  double average_decay = 0; // exponential average of weights, used for evaluation: 0.9999; 0: off
  std::string precision = "auto"; // "float32", "bfloat16", "auto" (bfloat16 for convolutions if
                                  // measured to be faster, so it may differ between hosts and
                                  // after a resumption); "float64" for tests
  bool channels_last = true;
  bool global_batch_norm = true; // over all replicas; off: each replica over its own rows
};

/// Describes the data, which are either pictures or features.
struct ClassifierSpec {
  std::int64_t classes = 0;
  std::int64_t channels = 3; // of pictures
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t features = 0;        // columns, if the rows are not pictures
  std::int64_t steps_per_epoch = 0; // updates
  InputFn input = {};               // empty: the caller of step_fn provides the batches
  std::shared_ptr<const Dataset> validation = {}; // for evaluate(); null: nothing to measure
};

/// Throws std::invalid_argument naming field, value and rule.
void check(const ClassifierConfig& config, const ClassifierSpec& spec);

/// Trains on this replica's share of batches {"picture": uint8 or float32 [rows, channels, height,
/// width] | "features": float32 [rows, columns], "label": int64 [rows]}. uint8 pictures are
/// normalised in the step; float32 pictures are used unchanged. The loss is the mean over the rows,
/// so that R replicas on 1/R of the batch each equal one replica on the whole (with
/// global_batch_norm, without dropout).
///
/// Metrics: "loss" (with smoothing and the auxiliary head's loss), "accuracy" (of the batch, before
/// the update), "learning_rate", "gradient_norm". Throws std::runtime_error naming the origin on
/// NaN or infinity in the features or a gradient, before a weight changes, on a loss that is NaN or
/// infinite, and on a label out of range. Throws std::invalid_argument on other shapes and types.
///
/// parameters() returns the network's parameters and buffers by torchvision's names, and the
/// averaged ones with the prefix "average.". evaluate() is evaluate_classifier() on the validation
/// data. load() with an empty optimizer state loads only the parameters, for measurements.
class Classifier : public Replica {
public:
  /// Returns for each row {"loss" (without smoothing), "top1", "top5"}; "top1" and "top5" are 1 if
  /// the label is among the best. Uses the averaged weights if there are any, in evaluation mode
  /// without gradients.
  virtual TensorMap measure(const TensorMap& batch) = 0;
  /// Returns the input of the last layer and its logits, with the same weights: {"features": [rows,
  /// n], "logits": [rows, classes]}, float32. `pictures` are pictures or rows of features as in
  /// batches. After a first call, threads may call it at the same time while no other function is
  /// called.
  virtual TensorMap describe(const at::Tensor& pictures) = 0;
  /// Without global_batch_norm, the replicas' running averages differ. This gives all replicas
  /// those of replica 0, which are also in checkpoints, unless the parameters differ, too.
  virtual void agree_on_buffers(ReplicaContext& context) = 0;
};

/// Updates are captured (CapturedUpdate) for batches with the shape of the first one, if the
/// replica steps alone with "sgd" or "adamw" and without dropout. Other updates run operation by
/// operation, and the host reads the norm of the gradients. All give the same parameters and
/// metrics.
std::unique_ptr<Classifier> make_classifier(const ClassifierConfig& config,
                                            const ClassifierSpec& spec,
                                            UpdateCapture capture = UpdateCapture::where_it_pays);

/// Returns means over all rows of the data set, each row once: "top1", "top5", "loss". A replica
/// evaluates `batch` rows at a time. Every replica of the sync group must call it, and gets the
/// same result, or that of its own model if the replicas' parameters differ. Throws
/// std::invalid_argument unless make_classifier() made `replica`.
Metrics evaluate_classifier(ReplicaContext& context, Replica& replica, const Dataset& dataset,
                            std::int64_t batch);

} // namespace troupe::learner
