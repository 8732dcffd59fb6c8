#include "learner/gradients/compression.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace troupe::learner {
namespace {

using collectives::ReduceOp;

/// Error feedback: the part that was not sent remains on the replica and is added to its next
/// gradient.
class WithFeedback : public BucketReduction {
public:
  WithFeedback(BucketMemory memory, collectives::Communicator& communicator, ReduceOp op,
               const CompressionOptions& options)
      : memory_(std::move(memory)),
        op_(op),
        options_(options),
        call_(communicator),
        residual_(options.error_feedback ? at::zeros_like(memory_.data) : at::Tensor()) {}

  CompressionState state(std::size_t member) const override {
    CompressionState result;
    if (residual_.defined())
      result.residual = slice(residual_, member);
    return result;
  }
  void set_state(std::size_t member, const CompressionState& state) override {
    if (residual_.defined() && state.residual.defined())
      slice(residual_, member).copy_(state.residual);
  }

protected:
  /// Adds the residual to `data`.
  void recall() {
    if (residual_.defined())
      memory_.data.add_(residual_);
  }
  /// Keeps the residual: `data` minus the part of it that was sent, `told`.
  void remember(const at::Tensor& told) {
    if (residual_.defined())
      at::sub_out(residual_, memory_.data, told);
  }
  at::Tensor slice(const at::Tensor& flat, std::size_t member) const {
    const auto& view = memory_.views[member];
    return flat.as_strided(view.sizes(), view.strides(), view.storage_offset());
  }

  BucketMemory memory_;
  ReduceOp op_;
  CompressionOptions options_;
  PendingCollective call_;
  at::Tensor residual_; // [elements], undefined without feedback
};

/// Sends half the bytes; the sums are computed in the smaller type.
class HalfReduction : public WithFeedback {
public:
  HalfReduction(BucketMemory memory, collectives::Communicator& communicator, ReduceOp op,
                const CompressionOptions& options)
      : WithFeedback(std::move(memory), communicator, op, options),
        small_(at::empty(memory_.flat.sizes(),
                         memory_.flat.options().dtype(
                             options.kind == CompressionKind::fp16 ? at::kHalf : at::kBFloat16))),
        limit_(65504.0 / communicator.size()) {}

  void start(bool now) override {
    recall();
    small_.copy_(options_.kind == CompressionKind::fp16 ? memory_.flat.clamp(-limit_, limit_)
                                                        : memory_.flat);
    remember(small_.narrow(0, 0, memory_.data.numel()).to(memory_.data.scalar_type()));
    call_.all_reduce(small_, op_, now, on_arrival_);
  }
  void finish() override {
    call_.wait();
    memory_.flat.copy_(small_);
  }

private:
  at::Tensor small_;
  double limit_; // keeps the sum over the replicas finite; the excess becomes part of the residual
};

/// Sends the largest elements of each replica, with their indices.
class TopKReduction : public WithFeedback {
public:
  using WithFeedback::WithFeedback;

  void start(bool) override {
    recall();
    const auto count = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(
            std::ceil(options_.fraction * static_cast<double>(memory_.data.numel()))),
        1, memory_.data.numel());
    const auto places = std::get<1>(memory_.data.abs().topk(count, 0, true, false));
    const auto values = memory_.data.index_select(0, places);
    if (residual_.defined()) {
      residual_.copy_(memory_.data);
      residual_.index_fill_(0, places, 0);
    }
    const auto type = memory_.flat.scalar_type();
    auto bits = places.to(type == at::kFloat ? at::kInt : at::kLong).view(type);
    message_ = at::cat({values, bits, memory_.tail});
    rows_ = call_.all_gather(message_, on_arrival_);
  }

  void finish() override {
    call_.wait();
    const auto tail = memory_.tail.numel();
    const auto count = (message_.numel() - tail) / 2;
    memory_.flat.zero_();
    const auto type = memory_.flat.scalar_type() == at::kFloat ? at::kInt : at::kLong;
    const auto rows = rows_.unbind(0);
    for (const auto& row : rows) { // in a fixed order: bit-equal on all replicas
      const auto places = row.narrow(0, count, count).contiguous().view(type).to(at::kLong);
      memory_.data.index_add_(0, places, row.narrow(0, 0, count));
      memory_.tail.add_(row.narrow(0, 2 * count, tail));
    }
    if (op_ == ReduceOp::mean)
      memory_.data.div_(static_cast<double>(rows.size()));
    rows_.reset();
  }

private:
  at::Tensor message_;
  at::Tensor rows_;
};

/// Makes the columns orthonormal. A column that depends linearly on earlier ones becomes zero.
void orthonormalise(at::Tensor& matrix) {
  for (std::int64_t j = 0; j < matrix.size(1); ++j) {
    auto column = matrix.select(1, j);
    const double before = column.norm().item<double>();
    if (j > 0) {
      const auto earlier = matrix.narrow(1, 0, j);
      for (int twice = 0; twice < 2; ++twice)
        column.sub_(at::matmul(earlier, at::matmul(earlier.t(), column)));
    }
    const double norm = column.norm().item<double>();
    if (norm > 1e-6 * before)
      column.div_(norm);
    else
      column.zero_();
  }
}

/// Sends the matrix M of a parameter as P = M Q and Q = M' P. P is made orthonormal; Q starts from
/// the previous step's (Vogels et al., "PowerSGD"), except that columns without any gradient keep
/// their values. Vectors and small matrices are sent uncompressed.
class PowerSgdReduction : public WithFeedback {
public:
  PowerSgdReduction(BucketMemory memory, collectives::Communicator& communicator, ReduceOp op,
                    const CompressionOptions& options)
      : WithFeedback(std::move(memory), communicator, op, options), second_(communicator) {
    for (std::size_t i = 0; i < memory_.views.size(); ++i) {
      const auto& view = memory_.views[i];
      const auto rows = view.dim() > 1 ? view.size(0) : 0;
      const auto columns = rows > 0 ? view.numel() / rows : 0;
      const auto rank = std::min({options_.rank, rows, columns});
      if (rows == 0 || view.numel() < options_.min_elements
          || rank * (rows + columns) >= view.numel())
        continue;
      matrices_.push_back({i, rows, columns, rank, {}, {}, {}, {}});
    }
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(kSeed);
    for (auto& matrix : matrices_) // equal on all replicas
      matrix.q = at::randn({matrix.columns, matrix.rank}, generator, at::kDouble)
                     .to(memory_.data.options());
  }

  CompressionState state(std::size_t member) const override {
    auto result = WithFeedback::state(member);
    for (const auto& matrix : matrices_)
      if (matrix.member == member)
        result.factor = matrix.q;
    return result;
  }
  void set_state(std::size_t member, const CompressionState& state) override {
    WithFeedback::set_state(member, state);
    for (auto& matrix : matrices_)
      if (matrix.member == member && state.factor.defined()
          && state.factor.sizes() == matrix.q.sizes())
        matrix.q = state.factor.to(memory_.data.options());
  }

  void start(bool now) override {
    recall();
    std::vector<at::Tensor> parts;
    for (auto& matrix : matrices_) {
      matrix.m = slice(memory_.data, matrix.member).reshape({matrix.rows, matrix.columns});
      parts.push_back(at::matmul(matrix.m, matrix.q).reshape({-1}));
    }
    for (const auto i : whole())
      parts.push_back(slice(memory_.data, i).reshape({-1}));
    parts.push_back(memory_.tail);
    message_ = at::cat(parts);
    call_.all_reduce(message_, op_, now, on_arrival_);
  }

  void finish() override {
    call_.wait();
    std::int64_t begin = 0;
    std::vector<at::Tensor> parts;
    for (auto& matrix : matrices_) {
      matrix.p = message_.narrow(0, begin, matrix.rows * matrix.rank)
                     .view({matrix.rows, matrix.rank})
                     .clone();
      begin += matrix.p.numel();
      orthonormalise(matrix.p);
      matrix.own = at::matmul(matrix.m.t(), matrix.p);
      parts.push_back(matrix.own.reshape({-1}));
    }
    at::Tensor factors;
    if (!parts.empty()) {
      factors = at::cat(parts);
      second_.all_reduce(factors, op_, false);
    }
    take_rest(begin);
    second_.wait();
    begin = 0;
    for (auto& matrix : matrices_) {
      const auto q = factors.narrow(0, begin, matrix.columns * matrix.rank)
                         .view({matrix.columns, matrix.rank});
      begin += q.numel();
      put(memory_.data, matrix, q);
      // The next P of a zero column would be zero, and so would all later ones.
      matrix.q = at::where(q.ne(0).any(0, true), q, matrix.q);
    }
  }

private:
  static constexpr std::uint64_t kSeed = 0x5eed;
  struct Matrix {
    std::size_t member;
    std::int64_t rows, columns, rank;
    at::Tensor m;   // [rows, columns] this step's gradient
    at::Tensor p;   // [rows, rank]
    at::Tensor own; // [columns, rank] M' P of this replica
    at::Tensor q;   // [columns, rank] of all replicas, from an earlier step
  };

  std::vector<std::size_t> whole() const {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < memory_.views.size(); ++i)
      if (std::none_of(matrices_.begin(), matrices_.end(),
                       [&](const Matrix& matrix) { return matrix.member == i; }))
        result.push_back(i);
    return result;
  }

  void put(at::Tensor& flat, const Matrix& matrix, const at::Tensor& q) {
    auto view = slice(flat, matrix.member);
    view.copy_(at::matmul(matrix.p, q.t()).view(view.sizes()));
  }

  /// Takes over the uncompressed data and the tail, and computes the residual.
  void take_rest(std::int64_t begin) {
    if (residual_.defined()) {
      residual_.zero_();
      for (const auto& matrix : matrices_) {
        auto view = slice(residual_, matrix.member);
        view.copy_((matrix.m - at::matmul(matrix.p, matrix.own.t())).view(view.sizes()));
      }
    }
    for (const auto i : whole()) {
      auto view = slice(memory_.data, i);
      view.copy_(message_.narrow(0, begin, view.numel()).view(view.sizes()));
      begin += view.numel();
    }
    memory_.tail.copy_(message_.narrow(0, begin, memory_.tail.numel()));
  }

  std::vector<Matrix> matrices_;
  PendingCollective second_;
  at::Tensor message_;
};

} // namespace

std::unique_ptr<BucketReduction> make_compressed_reduction(BucketMemory memory,
                                                           collectives::Communicator& communicator,
                                                           ReduceOp op,
                                                           const CompressionOptions& options) {
  switch (options.kind) {
  case CompressionKind::power_sgd:
    return std::make_unique<PowerSgdReduction>(std::move(memory), communicator, op, options);
  case CompressionKind::top_k:
    return std::make_unique<TopKReduction>(std::move(memory), communicator, op, options);
  default:
    return std::make_unique<HalfReduction>(std::move(memory), communicator, op, options);
  }
}

} // namespace troupe::learner
