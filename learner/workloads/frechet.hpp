#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace troupe::learner {

class ReplicaContext;

/// Mean and covariance of rows of features, in float64, batch by batch (Chan et al. 1979).
class FeatureStatistics {
public:
  /// [rows, n], any floating type; the first call settles n. Throws std::invalid_argument for
  /// another shape, std::runtime_error on NaN or infinity.
  void add(const at::Tensor& features);

  /// Over the replicas in sync, which all call it once, each with separate rows (or none);
  /// afterwards all hold the statistics of all rows. Asynchronous replicas
  /// (ReplicaContext::has_collectives()) keep their own.
  void reduce(ReplicaContext& context);

  std::int64_t rows() const { return rows_; }
  const at::Tensor& mean() const { return mean_; } // [n]
  /// Unbiased, [n, n]. Throws std::runtime_error with less than two rows.
  at::Tensor covariance() const;

private:
  void make_room(std::int64_t n);
  std::int64_t rows_ = 0;
  at::Tensor mean_;
  at::Tensor scatter_; // sum of outer products of what differs from the mean, [n, n]
};

/// Fréchet distance of two normal distributions (Dowson and Landau 1982), |m1 - m2|² + tr(C1 + C2 -
/// 2 (C1 C2)^½): Heusel et al.'s (2017) when the features are Inception's. The root is that of the
/// symmetric C1^½ C2 C1^½ by its eigenvalues; what rounding makes negative counts as 0. Throws
/// std::invalid_argument for features of different sizes.
double frechet_distance(const FeatureStatistics& a, const FeatureStatistics& b);
double frechet_distance(const at::Tensor& mean_a, const at::Tensor& covariance_a,
                        const at::Tensor& mean_b, const at::Tensor& covariance_b);

/// exp(mean of KL(p(class | picture) || p(class))), from 1 to the number of classes: Salimans et
/// al.'s (2016), over all pictures at once.
class ClassScore {
public:
  /// A classifier's logits, [rows, classes].
  void add(const at::Tensor& logits);
  void reduce(ReplicaContext& context); // as FeatureStatistics
  std::int64_t rows() const { return rows_; }
  /// Throws std::runtime_error without rows.
  double value() const;

private:
  std::int64_t rows_ = 0;
  double negative_entropies_ = 0; // sum over rows of sum p log p
  at::Tensor probabilities_;      // summed over rows, [classes]
};

} // namespace troupe::learner
