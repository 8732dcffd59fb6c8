#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "learner/replicas/replica.hpp"
#include "learner/workloads/sample_quality.hpp"

namespace troupe::learner {

struct SnganConfig {
  std::int64_t latent = 128;           // numbers of noise a picture is made of
  std::int64_t generator_channels = 0; // at the large end; 0: the papers' (256 if equal, else 64)
  std::int64_t critic_channels = 0;    // likewise (128 if equal, else 64)
  bool tapered = false;         // at 32: widths double towards the small end, as at 64 and 128
  int critic_steps = 5;         // for each of the generator's
  std::int64_t batch_size = 64; // rows of one critic step, over all replicas in sync
  double generator_learning_rate = 2e-4;
  double critic_learning_rate = 2e-4;
  double beta1 = 0;
  double beta2 = 0.9;
  std::int64_t decay_steps = 0;   // generator steps until both rates are 0, in a line; 0: they stay
  double average_decay = 0.999;   // exponential average of the generator, which samples; 0: off
  std::string precision = "auto"; // "float32", "bfloat16"; "float64" for tests
  bool channels_last = true;
  bool global_batch_norm = true;          // of the generator, over all replicas
  std::int64_t evaluation_samples = 5000; // of evaluate()
};

struct SnganSpec {
  std::int64_t classes = 1; // 1: no conditions
  std::int64_t size = 32;   // height and width: 32, 64, 128
  InputFn input = {};       // empty: batches are brought by the caller of step_fn
  /// Of evaluate(): real pictures, and the network by whose features they are compared. Without
  /// them there is nothing to evaluate. All replicas call `describe` at once.
  std::shared_ptr<const Dataset> real = {};
  DescribePictures describe = {};
};

/// Throws std::invalid_argument naming field, value and rule.
void check(const SnganConfig& config, const SnganSpec& spec);

/// Class-conditional GAN with spectral normalisation (Miyato et al. 2018) and projection
/// discriminator (Miyato and Koyama 2018), residual blocks, hinge loss. Batches {"picture": uint8
/// or float32 in [-1, 1], [rows, 3, size, size], "label": int64 [rows]}, this replica's share, rows
/// = critic_steps · batch_size / replicas. Critic step k takes rows k, k + critic_steps, …, so that
/// R replicas on 1/R of the batch each equal one on the whole. Noise and the labels of what is
/// generated depend on the seed of replica 0 and the number of the step.
///
/// Metrics: "critic_loss", "critic_real", "critic_fake" (mean scores; all three of the last critic
/// step), "generator_loss", "learning_rate" (the generator's). Throws std::runtime_error on NaN or
/// infinity, naming its origin, before a weight changes.
///
/// parameters(): "generator.…", "critic.…" with the vectors of the power iteration, and
/// "average.…". load() with an empty optimizer state takes the parameters alone, to sample.
/// evaluate(): "frechet_distance" and "class_score" of evaluation_samples against the real
/// pictures, always of the same noise. pictures(): "samples", a row for each of up to 20 classes.
class Sngan : public Replica {
public:
  /// The two steps of which step_fn is made: scores real against generated rows, and pleases the
  /// critic with `rows` generated ones (of this replica).
  virtual Metrics critic_step(ReplicaContext& context, const TensorMap& batch) = 0;
  virtual Metrics generator_step(ReplicaContext& context, std::int64_t rows) = 0;

  /// Pictures of these classes, int64 [n] -> uint8 [n, 3, size, size] on the CPU, by the averaged
  /// generator where there is one; the noise is the generator's of random numbers, on the CPU.
  virtual at::Tensor sample(const at::Tensor& labels, at::Generator generator) = 0;
};

std::unique_ptr<Sngan> make_sngan(const SnganConfig& config, const SnganSpec& spec);

/// The critic's and the generator's loss of scores [rows].
at::Tensor hinge_critic_loss(const at::Tensor& real, const at::Tensor& fake);
at::Tensor hinge_generator_loss(const at::Tensor& fake);

/// Pictures uint8 [n, channels, height, width], row by row, as one: [channels, rows · height,
/// columns · width]; black where there are none. Throws std::invalid_argument for no columns.
at::Tensor picture_grid(const at::Tensor& pictures, std::int64_t columns);

} // namespace troupe::learner
