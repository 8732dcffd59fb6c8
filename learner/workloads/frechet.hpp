#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace troupe::learner {

class ReplicaContext;

/// Mean and covariance of rows of features, computed in float64 batch by batch (Chan et al. 1979).
class FeatureStatistics {
public:
  /// Adds features [rows, n] of any floating type; the first call determines n. Throws
  /// std::invalid_argument for another shape, and std::runtime_error on NaN or infinity.
  void add(const at::Tensor& features);

  /// Combines the statistics of the replicas in sync. They must all call it once, each with
  /// separate rows (or none); afterwards all have the statistics of all rows. Replicas whose
  /// parameters differ (ReplicaContext::parameters_are_equal()) keep their own.
  void reduce(ReplicaContext& context);

  std::int64_t rows() const { return rows_; }
  const at::Tensor& mean() const { return mean_; } // [n]
  /// Returns the unbiased covariance, [n, n]. Throws std::runtime_error with fewer than two rows.
  at::Tensor covariance() const;

private:
  void make_room(std::int64_t n);
  std::int64_t rows_ = 0;
  at::Tensor mean_;
  at::Tensor scatter_; // sum of outer products of the deviations from the mean, [n, n]
};

/// Fréchet distance of two normal distributions (Dowson and Landau 1982): |m1 - m2|² + tr(C1 + C2 -
/// 2 (C1 C2)^½). It is the distance of Heusel et al. (2017) if the features are Inception's. The
/// root is computed from the eigenvalues of the symmetric matrix C1^½ C2 C1^½; eigenvalues that are
/// negative through rounding count as 0. Throws std::invalid_argument for features of different
/// sizes.
double frechet_distance(const FeatureStatistics& a, const FeatureStatistics& b);
double frechet_distance(const at::Tensor& mean_a, const at::Tensor& covariance_a,
                        const at::Tensor& mean_b, const at::Tensor& covariance_b);

/// exp(mean of KL(p(class | picture) || p(class))), from 1 to the number of classes: the score of
/// Salimans et al. (2016), over all pictures at once.
class ClassScore {
public:
  /// Adds the logits of a classifier, [rows, classes].
  void add(const at::Tensor& logits);
  void reduce(ReplicaContext& context); // as in FeatureStatistics
  std::int64_t rows() const { return rows_; }
  /// Throws std::runtime_error without rows.
  double value() const;

private:
  std::int64_t rows_ = 0;
  double negative_entropies_ = 0; // sum over rows of sum p log p
  at::Tensor probabilities_;      // summed over rows, [classes]
};

} // namespace troupe::learner
