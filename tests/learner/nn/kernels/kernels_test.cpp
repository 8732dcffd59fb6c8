#include "tests/doctest_torch.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <ATen/CPUGeneratorImpl.h>

#include "learner/nn/kernels/fused_adam.hpp"
#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/mlp.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

using namespace troupe::learner;
using troupe::tests::uniform;

namespace {

std::vector<const KernelTable*> tables() {
  std::vector<const KernelTable*> found;
  for (const char* name : {"baseline", "avx2", "avx512", "avx512bf16"})
    if (const KernelTable* table = kernel_table(name))
      found.push_back(table);
  return found;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

const float* data(const at::Tensor& t) {
  return t.const_data_ptr<float>();
}
float* data(at::Tensor& t) {
  return t.mutable_data_ptr<float>();
}

} // namespace

TEST_CASE("Every kernel table multiplies matrices correctly in every shape and orientation") {
  struct Case {
    std::int64_t m, n, k;
  };
  for (const KernelTable* table : tables())
    for (const Case& c : {Case{1, 1, 1},
                          {1, 256, 17},
                          {13, 33, 5},
                          {14, 32, 256},
                          {15, 51, 257},
                          {29, 6, 600},
                          {64, 48, 100},
                          {3, 16, 1}})
      for (const bool a_transposed : {false, true})
        for (const bool b_transposed : {false, true}) {
          CAPTURE(std::string(table->name));
          CAPTURE(c.m);
          CAPTURE(c.n);
          CAPTURE(c.k);
          const at::Tensor a = uniform({c.m, c.k}, 1);
          const at::Tensor b = uniform({c.k, c.n}, 2);
          const at::Tensor bias = uniform({c.n}, 3);
          const at::Tensor left = a_transposed ? a.t().contiguous() : a;
          const at::Tensor right = b_transposed ? b.t().contiguous() : b;
          at::Tensor out = uniform({c.m, c.n}, 4);
          const at::Tensor before = out.clone();
          at::Tensor packed = at::empty({c.k * (c.n + table->panel_columns)});
          table->pack(data(right), b_transposed ? 1 : c.n, b_transposed ? c.k : 1, c.k, c.n,
                      data(packed));
          const std::int64_t row = a_transposed ? 1 : c.k;
          const std::int64_t column = a_transposed ? c.m : 1;
          const at::Tensor expected = at::mm(a.to(at::kDouble), b.to(at::kDouble));
          table->multiply(data(left), row, column, data(packed), data(bias), false, data(out), c.n,
                          c.m, c.n, c.k);
          CHECK(largest_difference(out, expected + bias) < 3e-5);
          out.copy_(before);
          table->multiply(data(left), row, column, data(packed), nullptr, true, data(out), c.n, c.m,
                          c.n, c.k);
          CHECK(largest_difference(out, expected + before) < 3e-5);
        }
}

TEST_CASE("The rows of a product do not depend on how many are computed together") {
  const KernelTable& table = kernel_table();
  const at::Tensor a = uniform({40, 300}, 1);
  const at::Tensor b = uniform({300, 70}, 2);
  at::Tensor packed = at::empty({300 * (70 + table.panel_columns)});
  table.pack(data(b), 70, 1, 300, 70, data(packed));
  at::Tensor whole = at::empty({40, 70});
  at::Tensor parts = at::empty({40, 70});
  table.multiply(data(a), 300, 1, data(packed), nullptr, false, data(whole), 70, 40, 70, 300);
  for (const auto& [first, last] : std::vector<std::pair<int, int>>{{0, 1}, {1, 12}, {12, 40}})
    table.multiply(data(a) + first * 300, 300, 1, data(packed), nullptr, false,
                   data(parts) + first * 70, 70, last - first, 70, 300);
  CHECK(at::equal(whole, parts));
}

TEST_CASE(
    "A layer's blocked product equals a single product bit for bit, with any number of threads") {
  const KernelTable& table = kernel_table();
  const int before = at::get_num_threads();
  for (const auto& [m, k, n] : std::vector<std::array<std::int64_t, 3>>{
           {64, 6001, 50}, {33, 700, 1100}, {5, 256, 2100}, {64, 1, 40}, {40, 300, 33}}) {
    CAPTURE(k);
    CAPTURE(n);
    const at::Tensor x = uniform({m, k}, 1), weight = uniform({k, n}, 2), bias = uniform({n}, 3);
    at::Tensor packed = at::empty({k * (n + table.panel_columns)});
    table.pack(data(weight), n, 1, k, n, data(packed));
    at::Tensor whole = at::empty({m, n}), out = at::full({m, n}, 7, at::kFloat);
    table.multiply(data(x), k, 1, data(packed), data(bias), false, data(whole), n, m, n, k);
    Workspace workspace;
    for (const int threads : {1, 3}) {
      at::set_num_threads(threads);
      linear(x, weight, bias, out, workspace);
      CHECK(at::equal(out, whole));
    }
    at::set_num_threads(1);
    at::Tensor weights = at::empty({k, n}), inputs = at::empty({m, k});
    linear_weight_gradient(x, out, weights, workspace);
    linear_input_gradient(out, weight, inputs, workspace);
    const at::Tensor wide = out.to(at::kDouble);
    CHECK(largest_difference(weights, at::mm(x.t().to(at::kDouble), wide)) < 1e-3);
    CHECK(largest_difference(inputs, at::mm(wide, weight.t().to(at::kDouble))) < 2e-2);
  }
  at::set_num_threads(before);
}

TEST_CASE("Activations agree with LibTorch in double, also far from zero, and keep NaN") {
  at::Tensor x = uniform({1003}, 5, -12, 12);
  x[0] = 200;
  x[1] = -200;
  x[2] = 0;
  for (const KernelTable* table : tables()) {
    CAPTURE(std::string(table->name));
    at::Tensor y = at::empty_like(x);
    table->tanh(data(x), data(y), x.numel());
    CHECK(largest_difference(y, x.to(at::kDouble).tanh()) < 3e-7);
    at::Tensor elu = x.clone();
    table->elu(data(elu), elu.numel());
    CHECK(largest_difference(elu, at::elu(x.to(at::kDouble))) < 3e-7);
    at::Tensor relu = x.clone();
    table->relu(data(relu), relu.numel());
    CHECK(at::equal(relu, at::relu(x)));
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      at::Tensor poisoned = x.clone();
      CHECK(table->all_finite(data(poisoned), poisoned.numel()));
      poisoned[1001] = bad;
      CHECK_FALSE(table->all_finite(data(poisoned), poisoned.numel()));
    }
    at::Tensor nan = at::full({17}, NAN);
    table->elu(data(nan), 17);
    CHECK(nan.isnan().all().item<bool>());
    nan.fill_(NAN);
    table->relu(data(nan), 17);
    CHECK(nan.isnan().all().item<bool>());
    table->tanh(data(nan), data(nan), 17);
    CHECK(nan.isnan().all().item<bool>());
  }
}

TEST_CASE("Sum of squares and averaging agree with LibTorch in double") {
  const at::Tensor x = uniform({10007}, 6);
  const at::Tensor y = uniform({10007}, 7);
  for (const KernelTable* table : tables()) {
    const double expected = x.to(at::kDouble).square().sum().item<double>();
    CHECK(table->sum_of_squares(data(x), x.numel()) == doctest::Approx(expected).epsilon(1e-6));
    at::Tensor target = x.clone();
    table->lerp(data(target), data(y), 0.3f, x.numel());
    CHECK(largest_difference(target, x + 0.3 * (y - x)) < 1e-6);
    table->lerp(data(target), data(y), 1, x.numel());
    CHECK(at::equal(target, y));
  }
}

TEST_CASE("The fused Adam with weight decay makes the steps of torch::optim::AdamW") {
  for (const auto type : {at::kFloat, at::kDouble}) {
    at::Tensor mine = uniform({1003}, 8).to(type);
    at::Tensor theirs = mine.clone();
    mine.mutable_grad() = at::zeros_like(mine);
    theirs.mutable_grad() = at::zeros_like(theirs);
    FusedAdam fused(mine, 1e-2, 0.3, 0.05);
    torch::optim::AdamW reference({theirs},
                                  torch::optim::AdamWOptions(1e-2).weight_decay(0.3).eps(0.05));
    for (int i = 0; i < 50; ++i) {
      const at::Tensor gradient = uniform({1003}, static_cast<std::uint64_t>(100 + i));
      mine.mutable_grad().copy_(gradient);
      theirs.mutable_grad().copy_(gradient);
      fused.step();
      reference.step();
    }
    CHECK(largest_difference(mine, theirs) < (type == at::kFloat ? 2e-5 : 1e-12));
  }
}

TEST_CASE("The fused Adam makes the steps of torch::optim::Adam") {
  at::Tensor mine = uniform({1003}, 8);
  at::Tensor theirs = mine.clone();
  mine.mutable_grad() = at::zeros_like(mine);
  theirs.mutable_grad() = at::zeros_like(theirs);
  FusedAdam fused(mine, 1e-2);
  torch::optim::Adam reference({theirs}, torch::optim::AdamOptions(1e-2));
  for (int i = 0; i < 50; ++i) {
    const at::Tensor gradient = uniform({1003}, static_cast<std::uint64_t>(100 + i));
    mine.mutable_grad().copy_(gradient);
    theirs.mutable_grad().copy_(gradient);
    fused.step();
    reference.step();
  }
  CHECK(largest_difference(mine, theirs) < 2e-5);
  CHECK(fused.steps() == 50);
}

/// `size`: magnitude of the numbers that are compared.
void check_derivatives(Mlp mlp, double size = 1) {
  ParameterLayout layout;
  mlp.declare(layout, "net");
  const at::TensorOptions wide(at::kDouble);
  const at::Tensor flat = uniform({layout.count()}, 9).to(at::kDouble);
  at::Tensor gradient = at::zeros_like(flat);
  const at::Tensor x = uniform({4, 5}, 10).to(at::kDouble);
  const at::Tensor extra = uniform({4, 2}, 11).to(at::kDouble);
  const at::Tensor weights = uniform({4, 3}, 12).to(at::kDouble);
  const auto parameters = mlp.bind(layout, flat);
  auto gradients = mlp.bind(layout, gradient);
  Tape tape;
  Workspace workspace;
  const auto loss = [&](const at::Tensor& in, const at::Tensor& more) {
    return (mlp.forward(parameters, in, more, tape, workspace) * weights).sum().item<double>();
  };
  const auto differences = [&](const at::Tensor& tensor) {
    at::Tensor out = at::zeros_like(tensor);
    double* value = tensor.mutable_data_ptr<double>();
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      const double kept = value[i];
      value[i] = kept + 1e-6;
      const double above = loss(x, extra);
      value[i] = kept - 1e-6;
      const double below = loss(x, extra);
      value[i] = kept;
      out.mutable_data_ptr<double>()[i] = (above - below) / 2e-6;
    }
    return out;
  };
  loss(x, extra);
  tape.gradient().copy_(weights);
  mlp.backward(parameters, gradients, tape, true, workspace);
  const at::Tensor input_gradient = tape.input_gradient.clone();
  loss(x, extra);
  tape.gradient().copy_(weights);
  mlp.backward_to_extra(parameters, tape, workspace);
  const at::Tensor extra_gradient = tape.extra_gradient.clone();
  CHECK(largest_difference(gradient, differences(flat)) < 1e-7 * size);
  CHECK(largest_difference(input_gradient, differences(x)) < 1e-7 * size);
  CHECK(largest_difference(extra_gradient, differences(extra)) < 1e-7 * size);

  // The float32 kernels give the same results within their precision.
  const at::Tensor narrow = flat.to(at::kFloat);
  at::Tensor narrow_gradient = at::zeros_like(narrow);
  const auto narrow_parameters = mlp.bind(layout, narrow);
  auto narrow_gradients = mlp.bind(layout, narrow_gradient);
  Tape narrow_tape;
  const at::Tensor& out = mlp.forward(narrow_parameters, x.to(at::kFloat), extra.to(at::kFloat),
                                      narrow_tape, workspace);
  CHECK(largest_difference(out, mlp.forward(parameters, x, extra, tape, workspace)) < 3e-5 * size);
  narrow_tape.gradient().copy_(weights);
  mlp.backward(narrow_parameters, narrow_gradients, narrow_tape, true, workspace);
  CHECK(largest_difference(narrow_gradient, gradient) < 3e-5 * size);
  CHECK(largest_difference(narrow_tape.input_gradient, input_gradient) < 3e-5 * size);
  mlp.forward(narrow_parameters, x.to(at::kFloat), extra.to(at::kFloat), narrow_tape, workspace);
  narrow_tape.gradient().copy_(weights);
  mlp.backward_to_extra(narrow_parameters, narrow_tape, workspace);
  CHECK(largest_difference(narrow_tape.extra_gradient, extra_gradient) < 3e-5 * size);
}

TEST_CASE("A network's derivatives match finite differences, also with the extra input") {
  check_derivatives(Mlp(5,
                        {{"a", 9, Activation::norm_tanh},
                         {"b", 8, Activation::elu},
                         {"c", 7, Activation::relu},
                         {"d", 3, Activation::none}},
                        1, 2));
  check_derivatives(Mlp(5,
                        {{"a", 9, Activation::norm_elu},
                         {"b", 18, Activation::norm_relu},
                         {"c", 7, Activation::norm},
                         {"d", 3, Activation::none, true}},
                        0, 2),
                    20);
}

TEST_CASE("The derivatives of residual blocks match finite differences") {
  check_derivatives(Mlp(5, residual_layers(6, 2, 3), 0, 2), 20);
  auto behind_a_trunk = residual_layers(4, 1, 3);
  behind_a_trunk.insert(behind_a_trunk.begin(), {"trunk", 7, Activation::norm_tanh});
  check_derivatives(Mlp(5, behind_a_trunk, 1, 2), 20);
}

TEST_CASE("A residual block computes what SimBa defines") {
  Mlp mlp(3, residual_layers(4, 1, 2));
  ParameterLayout layout;
  mlp.declare(layout, "net");
  const at::Tensor flat = uniform({layout.count()}, 31).to(at::kDouble);
  const auto p = mlp.bind(layout, flat);
  const at::Tensor x = uniform({5, 3}, 32).to(at::kDouble);
  const auto norm = [](const at::Tensor& in, const LayerTensors& by) {
    return at::layer_norm(in, {in.size(1)}, by.gain, by.shift, 1e-5);
  };
  const auto layer = [](const at::Tensor& in, const LayerTensors& by) {
    return at::addmm(by.bias, in, by.weight);
  };
  const at::Tensor input = layer(x, p[0]);
  const at::Tensor inner = at::relu(layer(norm(input, p[1]), p[1]));
  CHECK(inner.size(1) == 16);
  const at::Tensor expected = layer(norm(input + layer(inner, p[2]), p[3]), p[3]);
  Tape tape;
  Workspace workspace;
  CHECK(largest_difference(mlp.forward(p, x, {}, tape, workspace), expected) < 1e-12);
}

TEST_CASE("Every kernel table rounds to bfloat16 and back as LibTorch does") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const KernelTable* table : tables())
    for (const std::int64_t columns : {1, 7, 16, 37}) {
      CAPTURE(std::string(table->name));
      CAPTURE(columns);
      at::Tensor x = uniform({3, columns}, 5, -3, 3);
      x.view({-1}).narrow(0, 0, 3).copy_(at::tensor({1.00390625f, 1.01171875f, infinity})); // ties
      at::Tensor halves = at::empty_like(x, at::kBFloat16);
      auto* bits = static_cast<std::uint16_t*>(halves.mutable_data_ptr());
      table->narrow(data(x), bits, x.numel());
      CHECK(at::equal(halves, x.to(at::kBFloat16)));
      const at::Tensor bias = uniform({columns}, 6);
      at::Tensor wide = at::empty_like(x);
      table->widen(bits, nullptr, data(wide), 3, columns);
      CHECK(at::equal(wide, halves.to(at::kFloat)));
      table->widen(bits, data(bias), data(wide), 3, columns);
      CHECK(at::equal(wide, halves.to(at::kFloat) + bias));
      x.fill_(std::bit_cast<float>(0x7fffffffU)); // a NaN whose rounding would carry over
      table->narrow(data(x), bits, x.numel());
      CHECK(halves.isnan().all().item<bool>());
    }
}

TEST_CASE("A network with bfloat16 products equals the float32 network within rounding") {
  ParameterLayout layout;
  Mlp mlp(40, {{"a", 64, Activation::norm_elu}, {"b", 48, Activation::relu}, {"c", 3}});
  mlp.declare(layout, "net");
  at::Generator generator = at::detail::createCPUGenerator(3);
  const at::Tensor flat = at::zeros({layout.count()});
  mlp.initialise(layout, flat, Mlp::Weights::xavier, generator);
  const Halves halves(flat, Rounding::one_part);
  struct Pass {
    at::Tensor output, gradient, input_gradient;
  };
  const auto pass = [&](const Halves& rounded, std::int64_t rows) {
    const auto parameters = mlp.bind(layout, flat, rounded);
    const at::Tensor gradient = at::zeros_like(flat);
    auto gradients = mlp.bind(layout, gradient);
    Tape tape;
    Workspace workspace;
    const at::Tensor output = mlp.forward(parameters, uniform({rows, 40}, 7), {}, tape, workspace);
    tape.gradient().copy_(output);
    mlp.backward(parameters, gradients, tape, true, workspace);
    return Pass{output, gradient, tape.input_gradient};
  };
  const Pass exact = pass({}, 1000), rounded = pass(halves, 1000);
  const auto close = [](const at::Tensor& a, const at::Tensor& b) {
    CHECK_FALSE(at::equal(a, b));
    CHECK(((a - b).norm() / b.norm()).item<double>() < 0.05);
  };
  close(rounded.output, exact.output);
  close(rounded.gradient, exact.gradient);
  close(rounded.input_gradient, exact.input_gradient);
  // For few rows, where halves do not pay off, the products stay the same.
  CHECK(at::equal(pass(halves, 24).gradient, pass({}, 24).gradient));
}

TEST_CASE("An exact layer has no bfloat16 weights") {
  ParameterLayout layout;
  Mlp mlp(64, {{.name = "a", .outputs = 64, .exact = true}, {.name = "b", .outputs = 64}});
  mlp.declare(layout, "net");
  const at::Tensor flat = at::zeros({layout.count()});
  const auto bound = mlp.bind(layout, flat, Halves(flat, Rounding::one_part));
  const auto has_copy = [](const LayerTensors& layer) {
    return layer.half.defined() || layer.rounded != nullptr;
  };
  CHECK_FALSE(has_copy(bound[0]));
  CHECK(has_copy(bound[1]));
}
