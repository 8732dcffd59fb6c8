#include "tests/doctest_torch.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include "learner/nn/mlp.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

using namespace troupe::learner;
using troupe::tests::uniform;

namespace {

float* floats_of(const at::Tensor& tensor) {
  return tensor.mutable_data_ptr<float>();
}

std::uint16_t* halves_of(const at::Tensor& tensor) {
  return static_cast<std::uint16_t*>(tensor.mutable_data_ptr());
}

} // namespace

TEST_CASE("The norm of a bfloat16 product and its gradient equal those of the separate steps bit "
          "for bit") {
  for (const char* name : {"avx512", "avx2", "baseline"})
    for (const std::int64_t n : {1, 7, 16, 45})
      for (const AfterNorm after :
           {AfterNorm::none, AfterNorm::elu, AfterNorm::relu, AfterNorm::tanh}) {
        const KernelTable* table = kernel_table(name);
        if (table == nullptr)
          continue;
        CAPTURE(name);
        CAPTURE(n);
        constexpr std::int64_t m = 3;
        const at::Tensor product = uniform({m, n}, 1).to(at::kBFloat16);
        const at::Tensor bias = uniform({n}, 2), gain = uniform({n}, 3), shift = uniform({n}, 4);
        const at::Tensor x = at::empty({m, n}), y = at::empty({m, n}), inverse = at::empty({m});
        const at::Tensor half_y = at::empty({m, n}, at::kBFloat16);
        table->norm(after, halves_of(product), floats_of(bias), floats_of(x), floats_of(gain),
                    floats_of(shift), floats_of(y), halves_of(half_y), floats_of(inverse), m, n);
        const at::Tensor kept = product.to(at::kFloat) + bias, z = at::empty({m, n}),
                         scale = at::empty({m});
        table->norm(after, nullptr, nullptr, floats_of(kept), floats_of(gain), floats_of(shift),
                    floats_of(z), nullptr, floats_of(scale), m, n);
        CHECK(at::equal(x, kept));
        CHECK(at::equal(y, z));
        CHECK(at::equal(half_y, z.to(at::kBFloat16)));
        CHECK(at::equal(inverse, scale));
        const at::Tensor of_y = uniform({m, n}, 5).to(at::kBFloat16),
                         gradient = of_y.to(at::kFloat);
        const at::Tensor of_x = at::empty_like(of_y), scratch = at::empty({n});
        const at::Tensor sums = at::empty({6, n});
        const auto sum = [&](std::int64_t i) { return floats_of(sums) + i * n; };
        table->norm_backward(after, floats_of(y), floats_of(x), floats_of(inverse), floats_of(gain),
                             floats_of(scratch), {halves_of(of_y), halves_of(of_x)}, sum(0), sum(1),
                             sum(2), m, n);
        table->norm_backward(after, floats_of(y), floats_of(x), floats_of(inverse), floats_of(gain),
                             floats_of(gradient), {}, sum(3), sum(4), sum(5), m, n);
        CHECK(at::equal(of_x, gradient.to(at::kBFloat16)));
        CHECK(at::equal(sums.narrow(0, 0, 3), sums.narrow(0, 3, 3)));
      }
}

TEST_CASE("A network that fuses products and norms equals one that does not, bit for bit") {
  ParameterLayout layout;
  Mlp mlp(40, {{"a", 64, Activation::norm_elu},
               {"b", 48, Activation::norm_relu},
               {"c", 64, Activation::relu},
               {"d", 48, Activation::norm_tanh},
               {"e", 3}});
  mlp.declare(layout, "net");
  at::Generator generator = at::detail::createCPUGenerator(3);
  const at::Tensor flat = at::zeros({layout.count()});
  mlp.initialise(layout, flat, Mlp::Weights::xavier, generator);
  const bool amx = use_amx(false); // whose products do not need factors in bfloat16
  const Halves halves(flat, Rounding::one_part);
  use_amx(amx);
  const auto parameters = mlp.bind(layout, flat, halves);
  const at::Tensor gradient = at::zeros_like(flat), expected = at::zeros_like(flat);
  auto gradients = mlp.bind(layout, gradient);
  const at::Tensor x = uniform({1000, 40}, 7);
  Tape tape;
  Workspace workspace;
  mlp.forward(parameters, x, {}, tape, workspace);
  tape.gradient().copy_(tape.output());
  mlp.backward(parameters, gradients, tape, true, workspace);
  for (std::size_t i = 0; i + 1 < mlp.size(); ++i)
    REQUIRE(tape.layers[i].half_input.defined());

  // The same by separate steps.
  struct Layer {
    at::Tensor in, half_in, kept, inverse, out;
  };
  std::vector<Layer> layers;
  at::Tensor before = x;
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
  CHECK(at::equal(tape.output(), before));
  auto wanted = mlp.bind(layout, expected);
  at::Tensor of_out = before.clone();
  for (std::size_t i = mlp.size(); i-- > 0;) {
    const LayerTensors& p = parameters[i];
    Layer& layer = layers[i];
    if (normalises(mlp.layer(i).activation))
      norm_backward(mlp.layer(i).activation, layer.out, layer.kept, layer.inverse, p.gain, of_out,
                    wanted[i].gain, wanted[i].shift, wanted[i].bias);
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
  CHECK(at::equal(tape.input_gradient, of_out));
  CHECK(at::equal(gradient, expected));
}
