#include "tests/doctest_torch.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include "learner/nn/kernels/rounded_product.hpp"
#include "learner/nn/mlp.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

using namespace troupe::learner;
using troupe::tests::uniform;

namespace {

float* floats_of(const at::Tensor& tensor) {
  return tensor.mutable_data_ptr<float>();
}

/// Whether `half` is within a unit in the last place of the bfloat16 numbers nearest to x.
bool rounds(const at::Tensor& half, const at::Tensor& x) {
  return at::allclose(half.to(at::kFloat), x, 0.008, 1e-5);
}

} // namespace

TEST_CASE("A norm kept in bfloat16 rounds what the norm in float32 computes") {
  for (const char* name : {"avx512bf16", "avx512", "avx2", "baseline"})
    for (const std::int64_t n : {1, 7, 16, 45})
      for (const AfterNorm after :
           {AfterNorm::none, AfterNorm::elu, AfterNorm::relu, AfterNorm::tanh})
        for (const bool with_y : {false, true}) {
          const KernelTable* table = kernel_table(name);
          if (table == nullptr)
            continue;
          CAPTURE(name);
          CAPTURE(n);
          CAPTURE(with_y);
          constexpr std::int64_t m = 3;
          const std::int64_t row = n + 5;
          const at::Tensor x = uniform({m, n}, 1), gain = uniform({n}, 3), shift = uniform({n}, 4);
          const at::Tensor y = at::empty({m, n}), kept = at::empty({m, n}, at::kBFloat16),
                           inverse = at::empty({m}), half_y = at::zeros({m, row}, at::kBFloat16);
          HalfNorm norm_at{.after = after,
                           .gain = floats_of(gain),
                           .shift = floats_of(shift),
                           .kept = halves_at(kept),
                           .inverse = floats_of(inverse),
                           .y = with_y ? floats_of(y) : nullptr,
                           .half_y = halves_at(half_y),
                           .half_row = row};
          table->half_norm(norm_at, floats_of(x), m, n);
          const at::Tensor normal = x.clone(), z = at::empty({m, n}), scale = at::empty({m});
          table->norm(after, floats_of(normal), floats_of(gain), floats_of(shift), floats_of(z),
                      floats_of(scale), m, n);
          CHECK(rounds(kept, normal));
          CHECK(rounds(half_y.narrow(1, 0, n), z));
          CHECK(half_y.narrow(1, n, 5).eq(0).all().item<bool>());
          CHECK(at::allclose(inverse, scale, 1e-5));
          if (with_y)
            CHECK(at::allclose(y, z, 1e-5, 1e-6));

          // Backward, from what is kept.
          const at::Tensor of_y = uniform({m, n}, 5), half = at::zeros({m, row}, at::kBFloat16);
          const at::Tensor gradient = of_y.clone(), wanted = of_y.clone();
          const at::Tensor sums = at::full({6, n}, 2.0);
          const auto sum = [&](std::int64_t i) { return floats_of(sums) + i * n; };
          const at::Tensor seen = with_y ? y : half_y.narrow(1, 0, n).to(at::kFloat).contiguous();
          if (with_y)
            norm_at.half_y = nullptr;
          table->half_norm_backward(norm_at, floats_of(gradient), halves_at(half), row,
                                    {sum(0), sum(1), sum(2)}, m, n);
          const at::Tensor kept_as_float = kept.to(at::kFloat);
          table->norm_backward(after, floats_of(seen), floats_of(kept_as_float), floats_of(inverse),
                               floats_of(gain), floats_of(wanted), {sum(3), sum(4), sum(5)}, m, n);
          CHECK(at::allclose(gradient, wanted, 1e-4, 1e-5));
          CHECK(rounds(half.narrow(1, 0, n), wanted));
          CHECK(at::allclose(sums.narrow(0, 0, 3), sums.narrow(0, 3, 3), 1e-4, 1e-5));
        }
}

namespace {

/// A network whose products have factors in bfloat16, with and without norms.
struct HalfNetwork {
  ParameterLayout layout;
  Mlp mlp{40,
          {{"a", 64, Activation::norm_elu},
           {"b", 48, Activation::norm_relu},
           {"c", 64, Activation::relu},
           {"d", 48, Activation::norm_tanh},
           {"e", 3}}};
  at::Tensor flat, gradient;
  Halves halves;
  std::vector<LayerTensors> parameters, gradients;
  const at::Tensor x = uniform({1000, 40}, 7);
  Tape tape;
  Workspace workspace;

  HalfNetwork(bool amx, Rounding rounding) {
    mlp.declare(layout, "net");
    at::Generator generator = at::detail::createCPUGenerator(3);
    flat = at::zeros({layout.count()});
    gradient = at::full_like(flat, 99);
    mlp.initialise(layout, flat, Mlp::Weights::xavier, generator);
    const bool before = use_amx(amx);
    halves = Halves(flat, rounding);
    parameters = mlp.bind(layout, flat, halves);
    use_amx(before);
    gradients = mlp.bind(layout, gradient);
  }
  void pass(bool with_weights = true) {
    mlp.forward(parameters, x, {}, tape, workspace);
    tape.gradient().copy_(tape.output());
    mlp.backward(parameters, gradients, tape, true, workspace, with_weights);
  }
};

double difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

} // namespace

TEST_CASE("A network that fuses products and norms equals one that does not, bit for bit") {
  HalfNetwork network(false, Rounding::one_part);
  network.pass();
  for (std::size_t i = 0; i + 1 < network.mlp.size(); ++i)
    REQUIRE(network.tape.layers[i].half_input.defined());
  const ParameterLayout& layout = network.layout;
  const Mlp& mlp = network.mlp;
  const auto& parameters = network.parameters;
  Workspace workspace;
  const auto rounded = [](const at::Tensor& t) { return t.to(at::kBFloat16).to(at::kFloat); };

  // The same by separate steps.
  struct Layer {
    at::Tensor in, half_in, kept, inverse, out;
  };
  std::vector<Layer> layers;
  at::Tensor before = network.x;
  for (std::size_t i = 0; i < mlp.size(); ++i) {
    const LayerTensors& p = parameters[i];
    const Activation activation = mlp.layer(i).activation;
    Layer made{before, before.to(at::kBFloat16), at::empty({1000, p.weight.size(1)}),
               at::empty({1000}), at::empty({1000, p.weight.size(1)})};
    at::Tensor& out = normalises(activation) ? made.kept : made.out;
    if (p.half.defined())
      half_linear(made.half_in, p.half, p.bias, out, workspace);
    else
      linear(made.in, p.weight, p.bias, out, workspace);
    if (normalises(activation))
      norm(activation, made.kept, p.gain, p.shift, made.out, made.inverse);
    else
      activate(activation, made.out);
    before = made.out;
    layers.push_back(made);
  }
  CHECK(at::equal(network.tape.output(), before));
  const at::Tensor expected = at::zeros_like(network.flat);
  auto wanted = mlp.bind(layout, expected);
  at::Tensor of_out = before.clone();
  for (std::size_t i = mlp.size(); i-- > 0;) {
    const LayerTensors& p = parameters[i];
    Layer& layer = layers[i];
    const bool is_rounded = i + 1 < mlp.size() && parameters[i + 1].half.defined();
    if (normalises(mlp.layer(i).activation))
      norm_backward(mlp.layer(i).activation, is_rounded ? rounded(layer.out) : layer.out,
                    rounded(layer.kept), layer.inverse, p.gain, of_out, wanted[i].gain,
                    wanted[i].shift, wanted[i].bias);
    else
      activate_backward(mlp.layer(i).activation, layer.out, of_out, wanted[i].bias);
    at::Tensor of_in = at::empty_like(layer.in);
    if (p.half.defined()) {
      const at::Tensor half = of_out.to(at::kBFloat16);
      half_weight_gradient(layer.half_in, half, wanted[i].weight, workspace);
      half_input_gradient(half, p.half, of_in, workspace);
    } else {
      linear_weight_gradient(layer.in, of_out, wanted[i].weight, workspace);
      linear_input_gradient(of_out, p.weight, of_in, workspace);
    }
    of_out = of_in;
  }
  CHECK(at::equal(network.tape.input_gradient, of_out));
  CHECK(at::equal(network.gradient, expected));
}

TEST_CASE("With AMX, a network in bfloat16 is about as close to float32 as by LibTorch") {
  if (!multiplies_rounded()) {
    MESSAGE("skipped: this processor has no AMX");
    return;
  }
  HalfNetwork ours(true, Rounding::one_part), theirs(false, Rounding::one_part),
      exact(false, Rounding::none);
  for (HalfNetwork* network : {&ours, &theirs, &exact})
    network->pass();
  for (std::size_t i = 0; i + 1 < ours.mlp.size(); ++i)
    REQUIRE(ours.tape.layers[i].half_input.defined());
  const auto check = [&](const char* what, auto part) {
    CAPTURE(what);
    const double error = difference(part(ours), part(exact));
    CHECK(error < 0.08);
    CHECK(error < 1.5 * difference(part(theirs), part(exact)));
  };
  check("output", [](HalfNetwork& n) { return n.tape.output(); });
  check("input gradient", [](HalfNetwork& n) { return n.tape.input_gradient; });
  for (std::size_t i = 0; i < ours.mlp.size(); ++i) {
    CAPTURE(i);
    check("weight", [i](HalfNetwork& n) { return n.gradients[i].weight; });
    check("bias", [i](HalfNetwork& n) { return n.gradients[i].bias; });
  }
  const at::Tensor whole = ours.gradient.clone();
  ours.gradient.fill_(99);
  ours.pass(false);
  ours.mlp.weight_gradients(ours.gradients, ours.tape, ours.workspace);
  CHECK(at::equal(ours.gradient, whole));
}
