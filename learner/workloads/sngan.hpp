#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "learner/replicas/replica.hpp"
#include "learner/workloads/sample_quality.hpp"

namespace troupe::learner {

struct SnganConfig {
  std::int64_t latent = 128;           // size of the noise vector for a picture
  std::int64_t generator_channels = 0; // at the largest size; 0: 256 if equal, else 64
  std::int64_t critic_channels = 0;    // likewise; 0: 128 if equal, else 64
  bool tapered = false;         // at 32: the widths double towards the small end, as at 64 and 128
  int critic_steps = 5;         // per generator step
  std::int64_t batch_size = 64; // rows per critic step, over all replicas in sync
  double generator_learning_rate = 2e-4;
  double critic_learning_rate = 2e-4;
  double beta1 = 0;
  double beta2 = 0.9;
  std::int64_t decay_steps = 0;   // generator steps until both rates fall to 0; 0: never
  double average_decay = 0.999;   // exponential average of the generator, used for samples; 0: off
  std::string precision = "auto"; // "float32", "bfloat16"; "float64" for tests
  bool channels_last = true;
  bool global_batch_norm = true;          // of the generator, over all replicas
  std::int64_t evaluation_samples = 5000; // for evaluate()
};

struct SnganSpec {
  std::int64_t classes = 1; // 1: unconditional
  std::int64_t size = 32;   // height and width: 32, 64, 128
  InputFn input = {};       // empty: the caller of step_fn provides the batches
  /// For evaluate(): real pictures, and the network whose features are compared. Without them,
  /// evaluate() measures nothing. All replicas call `describe` at the same time.
  std::shared_ptr<const Dataset> real = {};
  DescribePictures describe = {};
};

/// Throws std::invalid_argument naming field, value and rule.
void check(const SnganConfig& config, const SnganSpec& spec);

/// A class-conditional GAN with spectral normalisation (Miyato et al. 2018) and a projection
/// discriminator (Miyato and Koyama 2018), with residual blocks and the hinge loss. It trains on
/// this replica's share of batches {"picture": uint8 or float32 in [-1, 1], [rows, 3, size, size],
/// "label": int64 [rows]}, with rows = critic_steps · batch_size / replicas. Critic step k uses
/// rows k, k + critic_steps, …, so that R replicas on 1/R of the batch each equal one replica on
/// the whole. The noise and the labels of generated pictures depend on the seed of replica 0 and
/// the step number.
///
/// Metrics: "critic_loss", "critic_real", "critic_fake" (mean scores; all three of the last critic
/// step), "generator_loss", "learning_rate" (the generator's). Throws std::runtime_error naming the
/// origin on NaN or infinity in a gradient, before a weight changes, and in a loss.
///
/// parameters() returns "generator.…", "critic.…" with the vectors of the power iteration, and
/// "average.…". load() with an empty optimizer state loads only the parameters, for sampling.
/// evaluate() returns "frechet_distance" and "class_score" of evaluation_samples against the real
/// pictures, always from the same noise. pictures() returns "samples", with one row for each of up
/// to 20 classes.
class Sngan : public Replica {
public:
  /// The two parts of step_fn. critic_step() trains the critic to separate real from generated
  /// rows. generator_step() trains the generator to raise the critic's scores of `rows` generated
  /// rows (of this replica).
  virtual Metrics critic_step(ReplicaContext& context, const TensorMap& batch) = 0;
  virtual Metrics generator_step(ReplicaContext& context, std::int64_t rows) = 0;

  /// Samples pictures of these classes, int64 [n] -> uint8 [n, 3, size, size] on the CPU, by the
  /// averaged generator if there is one. The noise comes from `generator`, a random number
  /// generator on the CPU.
  virtual at::Tensor sample(const at::Tensor& labels, at::Generator generator) = 0;
};

std::unique_ptr<Sngan> make_sngan(const SnganConfig& config, const SnganSpec& spec);

/// Return the critic's and the generator's loss for scores [rows].
at::Tensor hinge_critic_loss(const at::Tensor& real, const at::Tensor& fake);
at::Tensor hinge_generator_loss(const at::Tensor& fake);

/// Arranges pictures uint8 [n, channels, height, width] row by row in one picture: [channels, rows
/// · height, columns · width]. Unused places are black. Throws std::invalid_argument if columns is
/// not positive.
at::Tensor picture_grid(const at::Tensor& pictures, std::int64_t columns);

} // namespace troupe::learner
