#include "learner/workloads/frechet.hpp"

#include <cmath>
#include <stdexcept>

#include <ATen/ops/full.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_eigvalsh.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/zeros.h>

#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {
namespace {

/// Converts to float64 on the CPU. Throws unless `rows` is a matrix of finite numbers.
at::Tensor checked(const at::Tensor& rows, std::int64_t columns, const char* what) {
  if (rows.dim() != 2 || !rows.is_floating_point() || (columns >= 0 && rows.size(1) != columns))
    throw std::invalid_argument(
        std::string(what) + " are " + Nest(rows).describe() + "; they must be [rows, "
        + (columns >= 0 ? std::to_string(columns) : std::string("n")) + "] of floating type");
  auto wide = rows.detach().to(at::kCPU, at::kDouble);
  if (!wide.isfinite().all().item<bool>())
    throw std::runtime_error(std::string("NaN or infinity in ") + what
                             + ": the network that made them overflowed");
  return wide;
}

/// Sums the numbers of all replicas, on the replica's device.
at::Tensor summed(ReplicaContext& context, const at::Tensor& mine) {
  if (!context.parameters_are_equal())
    return mine;
  auto there = mine.to(context.device(), false, true);
  context.all_reduce_(there, ReduceOp::sum);
  return there.cpu();
}

std::int64_t largest(ReplicaContext& context, std::int64_t mine) {
  if (!context.parameters_are_equal())
    return mine;
  auto there = at::full({1}, mine, at::TensorOptions(at::kLong).device(context.device()));
  context.all_reduce_(there, ReduceOp::max);
  return there.item<std::int64_t>();
}

/// Returns x log x, with 0 at 0.
at::Tensor x_log_x(const at::Tensor& x) {
  return x.xlogy(x);
}

} // namespace

void FeatureStatistics::make_room(std::int64_t n) {
  if (mean_.defined())
    return;
  mean_ = at::zeros({n}, at::kDouble);
  scatter_ = at::zeros({n, n}, at::kDouble);
}

void FeatureStatistics::add(const at::Tensor& features) {
  const auto wide = checked(features, mean_.defined() ? mean_.numel() : -1, "features");
  make_room(wide.size(1));
  const auto count = wide.size(0);
  if (count == 0)
    return;
  const auto mean = wide.mean(0);
  const auto rest = wide - mean;
  const auto step = mean - mean_;
  const auto all = static_cast<double>(rows_ + count);
  scatter_ +=
      at::matmul(rest.t(), rest)
      + at::outer(step, step) * (static_cast<double>(rows_) * static_cast<double>(count) / all);
  mean_ += step * (static_cast<double>(count) / all);
  rows_ += count;
}

void FeatureStatistics::reduce(ReplicaContext& context) {
  const auto n = largest(context, mean_.defined() ? mean_.numel() : 0);
  make_room(n);
  const auto rows = static_cast<double>(rows_);
  const auto count = summed(context, at::full({1}, rows, at::kDouble)).item<double>();
  if (count == 0)
    return;
  const auto mean = summed(context, mean_ * rows) / count;
  const auto step = mean_ - mean;
  scatter_ = summed(context, scatter_ + at::outer(step, step) * rows);
  mean_ = mean;
  rows_ = std::llround(count);
}

at::Tensor FeatureStatistics::covariance() const {
  if (rows_ < 2)
    throw std::runtime_error("a covariance of " + std::to_string(rows_)
                             + " rows of features; it needs at least 2");
  return scatter_ / static_cast<double>(rows_ - 1);
}

double frechet_distance(const FeatureStatistics& a, const FeatureStatistics& b) {
  return frechet_distance(a.mean(), a.covariance(), b.mean(), b.covariance());
}

double frechet_distance(const at::Tensor& mean_a, const at::Tensor& covariance_a,
                        const at::Tensor& mean_b, const at::Tensor& covariance_b) {
  if (mean_a.sizes() != mean_b.sizes() || covariance_a.sizes() != covariance_b.sizes())
    throw std::invalid_argument("frechet_distance: features of " + std::to_string(mean_a.numel())
                                + " and of " + std::to_string(mean_b.numel())
                                + " numbers; both must come from one network");
  const auto [values, vectors] = at::linalg_eigh((covariance_a + covariance_a.t()) / 2);
  const auto root = at::matmul(vectors * values.clamp_min(0).sqrt(), vectors.t());
  const auto product = at::matmul(at::matmul(root, covariance_b), root);
  const auto eigenvalues = at::linalg_eigvalsh((product + product.t()) / 2);
  const double cross = eigenvalues.clamp_min(0).sqrt().sum().item<double>();
  const double means = (mean_a - mean_b).pow(2).sum().item<double>();
  const double traces =
      covariance_a.diagonal().sum().item<double>() + covariance_b.diagonal().sum().item<double>();
  return std::max(0.0, means + traces - 2 * cross);
}

void ClassScore::add(const at::Tensor& logits) {
  const auto wide =
      checked(logits, probabilities_.defined() ? probabilities_.numel() : -1, "logits");
  const auto each = wide.softmax(1);
  if (!probabilities_.defined())
    probabilities_ = at::zeros({wide.size(1)}, at::kDouble);
  probabilities_ += each.sum(0);
  negative_entropies_ += x_log_x(each).sum().item<double>();
  rows_ += wide.size(0);
}

void ClassScore::reduce(ReplicaContext& context) {
  const auto classes = largest(context, probabilities_.defined() ? probabilities_.numel() : 0);
  if (!probabilities_.defined())
    probabilities_ = at::zeros({classes}, at::kDouble);
  probabilities_ = summed(context, probabilities_);
  auto numbers = at::full({2}, static_cast<double>(rows_), at::kDouble);
  numbers[1] = negative_entropies_;
  numbers = summed(context, numbers);
  rows_ = std::llround(numbers[0].item<double>());
  negative_entropies_ = numbers[1].item<double>();
}

double ClassScore::value() const {
  if (rows_ == 0)
    throw std::runtime_error("a class score of no pictures; add some first");
  const auto rows = static_cast<double>(rows_);
  const double all = x_log_x(probabilities_ / rows).sum().item<double>();
  return std::exp(negative_entropies_ / rows - all);
}

} // namespace troupe::learner
