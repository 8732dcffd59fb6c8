#include <torch/nn.h>

#include "tests/doctest_torch.hpp"

#include <array>

#include <ATen/Parallel.h>

#include "learner/nn/batch_norm_relu.hpp"
#include "learner/nn/kernels/norm_kernels.hpp"
#include "learner/nn/kernels/pointwise_convolution.hpp"

namespace troupe::learner {
namespace {

at::Tensor random(at::IntArrayRef shape, std::uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return torch::randn(shape, generator, at::kDouble);
}

struct Outcome {
  at::Tensor y, x_gradient, residual_gradient, weight_gradient, bias_gradient, mean, variance;
  std::vector<at::Tensor> all() const {
    return {y, x_gradient, residual_gradient, weight_gradient, bias_gradient, mean, variance};
  }
};

/// The forward passes of two training steps and one backward pass, over rows whose mean is far from
/// 0.
template <class Run>
Outcome outcome(std::int64_t channels, bool with_residual, at::ScalarType type, const Run& run) {
  torch::nn::BatchNorm2d norm(torch::nn::BatchNorm2dOptions(channels).momentum(0.3));
  const auto wide = type == at::kDouble ? at::kDouble : at::kFloat;
  {
    const at::NoGradGuard guard;
    norm->to(wide);
    norm->weight.copy_(random({channels}, 1) + 0.5);
    norm->bias.copy_(random({channels}, 2));
  }
  const std::vector<std::int64_t> shape{6, channels, 9, 7};
  const auto lay = [&](const at::Tensor& tensor) {
    return tensor.to(type).contiguous(at::MemoryFormat::ChannelsLast);
  };
  // Values that bfloat16 can represent, so that all types see the same rows.
  const auto rows = (random(shape, 3) * 2 + 30).to(at::kBFloat16).to(at::kDouble);
  const auto more = (random(shape, 4)).to(at::kBFloat16).to(at::kDouble);
  const auto gradient = (random(shape, 5)).to(at::kBFloat16).to(at::kDouble);
  auto x = lay(rows).requires_grad_();
  auto residual = with_residual ? lay(more).requires_grad_() : at::Tensor();
  {
    const at::NoGradGuard guard;
    run(norm, lay(rows * 0.5), residual);
  }
  Outcome made;
  made.y = run(norm, x, residual);
  made.y.backward(gradient.to(type)); // contiguous, unlike the rows
  made.x_gradient = x.grad();
  made.residual_gradient = with_residual ? residual.grad() : torch::zeros({1});
  made.weight_gradient = norm->weight.grad();
  made.bias_gradient = norm->bias.grad();
  made.mean = norm->running_mean;
  made.variance = norm->running_var;
  CHECK(norm->num_batches_tracked.template item<std::int64_t>() == 2);
  return made;
}

at::Tensor plain(torch::nn::BatchNorm2d& norm, const at::Tensor& x, const at::Tensor& residual) {
  auto y = norm->forward(x);
  return (residual.defined() ? y + residual : y).relu();
}

/// Largest difference, relative to the largest value.
double distance(const at::Tensor& a, const at::Tensor& b) {
  const auto exact = b.to(at::kDouble);
  return ((a.to(at::kDouble) - exact).abs().max() / (exact.abs().max() + 1e-12)).item<double>();
}

} // namespace

TEST_CASE("Fused batch norm, residual and ReLU equal the three separate operations") {
  for (const std::int64_t channels : {64, 37, 5})
    for (const bool residual : {false, true}) {
      CAPTURE(channels);
      CAPTURE(residual);
      const auto exact = outcome(channels, residual, at::kDouble, plain).all();
      const auto check = [&](at::ScalarType type, double limit) {
        const auto ours = outcome(channels, residual, type, batch_norm_relu);
        CHECK((ours.y.scalar_type() == type));
        CHECK(ours.y.grad_fn()->name().find("Fused") != std::string::npos);
        for (std::size_t i = 0; i < exact.size(); ++i) {
          CAPTURE(i);
          CHECK(distance(ours.all()[i], exact[i]) < limit);
        }
      };
      check(at::kFloat, 2e-5);
      check(at::kBFloat16, 0.02);
    }
}

TEST_CASE("Evaluation, other types and other layouts use LibTorch's operations") {
  torch::nn::BatchNorm2d norm(8);
  const auto x = random({4, 8, 5, 5}, 1).to(at::kFloat);
  torch::nn::BatchNorm2d same(8);
  CHECK(torch::equal(batch_norm_relu(norm, x), plain(same, x, {}))); // contiguous
  CHECK(torch::equal(norm->running_var, same->running_var));
  norm->eval(), same->eval();
  const auto laid = x.contiguous(at::MemoryFormat::ChannelsLast);
  CHECK(torch::equal(batch_norm_relu(norm, laid, laid), plain(same, laid, laid)));
  torch::nn::BatchNorm2d wide(8);
  wide->to(at::kDouble);
  const auto y = batch_norm_relu(wide, laid.to(at::kDouble));
  CHECK(y.grad_fn()->name().find("Relu") != std::string::npos);
}

TEST_CASE(
    "The fused batch norm does not depend on the number of threads and refuses a single value") {
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> made;
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    made.push_back(outcome(1024, true, at::kFloat, batch_norm_relu).all()); // 378 rows: 6 chunks
  }
  at::set_num_threads(before);
  for (std::size_t i = 0; i < made[0].size(); ++i)
    CHECK(torch::equal(made[0][i], made[1][i]));
  torch::nn::BatchNorm2d norm(4);
  CHECK_THROWS_WITH(batch_norm_relu(norm, torch::ones({1, 4, 1, 1})),
                    doctest::Contains("has no variance"));
  const auto rows =
      random({3, 4, 2, 2}, 1).to(at::kFloat).contiguous(at::MemoryFormat::ChannelsLast);
  auto poisoned = rows.clone();
  poisoned[1][2][0][1] = NAN;
  const auto y = batch_norm_relu(norm, poisoned);
  CHECK(y.select(1, 2).isnan().all().item<bool>());
  CHECK(y.select(1, 1).isfinite().all().item<bool>());
}

TEST_CASE("pointwise_convolution equals LibTorch's convolution, forward and backward") {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  for (const auto& [rows, height, stride] :
       std::vector<std::array<std::int64_t, 3>>{{2, 7, 1}, {3, 1, 1}, {1, 8, 1}, {4, 6, 2}}) {
    CAPTURE(rows);
    torch::nn::Conv2d conv(torch::nn::Conv2dOptions(8, 12, 1).stride(stride).bias(false));
    const auto x =
        random({rows, 8, height, 5}, 1).to(at::kFloat).contiguous(at::MemoryFormat::ChannelsLast);
    auto ours = x.clone().requires_grad_(), plain = x.clone().requires_grad_();
    const auto gradient =
        random({rows, 12, (height + stride - 1) / stride, (4 + stride) / stride}, 2).to(at::kFloat);
    const auto y = pointwise_convolution(conv, ours);
    y.backward(gradient);
    const auto weight = conv->weight.grad().clone();
    conv->zero_grad();
    const auto exact = conv->forward(plain);
    exact.backward(gradient);
    CHECK(y.is_contiguous(at::MemoryFormat::ChannelsLast));
    CHECK(distance(y, exact) < 1e-6);
    CHECK(distance(ours.grad(), plain.grad()) < 1e-6);
    CHECK(distance(weight, conv->weight.grad()) < 1e-5);
  }
  at::set_num_threads(before);
}

TEST_CASE("Every instruction set computes the sums and rounds bfloat16 to the nearest") {
  for (const char* name : {"baseline", "avx2", "avx512", "avx512bf16"}) {
    const NormKernels* kernels = norm_kernels(name);
    if (!kernels)
      continue;
    CAPTURE(std::string(name));
    const auto x = random({19, 37}, 6).to(at::kFloat);
    const auto shift = random({37}, 7).to(at::kFloat);
    auto sums = torch::zeros({37}), squares = torch::zeros({37});
    kernels->float32.moments(x.const_data_ptr<float>(), shift.const_data_ptr<float>(),
                             sums.mutable_data_ptr<float>(), squares.mutable_data_ptr<float>(), 19,
                             37);
    const auto off = (x - shift).to(at::kDouble);
    CHECK(distance(sums, off.sum(0)) < 1e-6);
    CHECK(distance(squares, off.square().sum(0)) < 1e-6);
    const auto scale = torch::full({37}, 1.0f / 3), offset = torch::full({37}, 5.0f);
    const auto narrow = x.to(at::kBFloat16);
    auto y = torch::empty_like(narrow);
    kernels->bfloat16.apply(static_cast<const std::uint16_t*>(narrow.const_data_ptr()), nullptr,
                            scale.const_data_ptr<float>(), offset.const_data_ptr<float>(),
                            static_cast<std::uint16_t*>(y.mutable_data_ptr()), 19, 37);
    const auto wide = narrow.to(at::kFloat) * scale + offset;
    const auto off_by = (y.to(at::kFloat) - wide).abs();
    CHECK((off_by <= wide.abs() * (1.0001 / 256)).all().item<bool>()); // half a unit in eight bits
    CHECK(y.eq(wide.to(at::kBFloat16)).sum().item<std::int64_t>() > 0.99 * 19 * 37); // but for FMA
    const auto exact = torch::full({37}, 1.0f);
    const auto none = torch::zeros({37});
    kernels->bfloat16.apply(static_cast<const std::uint16_t*>(narrow.const_data_ptr()), nullptr,
                            exact.const_data_ptr<float>(), none.const_data_ptr<float>(),
                            static_cast<std::uint16_t*>(y.mutable_data_ptr()), 19, 37);
    CHECK(torch::equal(y, narrow.relu()));
  }
}

} // namespace troupe::learner
