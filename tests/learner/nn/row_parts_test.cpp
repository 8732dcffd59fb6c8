#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>

#include "learner/nn/kernels/product_choice.hpp"
#include "learner/nn/mlp.hpp"
#include "tests/doctest_torch.hpp"

using namespace troupe;
using namespace troupe::learner;

namespace {

constexpr std::int64_t kRows = 300, kInputs = 40, kActions = 7;

/// A critic with norms, residual blocks and an action, for passes on several threads.
struct Critic {
  ParameterLayout layout;
  Mlp mlp;
  at::Tensor flat, gradient;
  Halves halves;
  std::vector<LayerTensors> parameters, gradients;
  Tape tape;
  Workspace workspace;

  explicit Critic(Rounding rounding)
      : mlp(kInputs,
            {{"a", 64, Activation::norm_elu},
             {"b", 128, Activation::relu, true},
             {"c", 64, Activation::none, false, true},
             {"d", 96, Activation::relu},
             {"e", 3}},
            3, kActions) {
    mlp.declare(layout, "net");
    at::Generator generator = at::detail::createCPUGenerator(3);
    flat = at::zeros({layout.count()});
    gradient = at::full_like(flat, 99);
    mlp.initialise(layout, flat, Mlp::Weights::xavier, generator);
    halves = Halves(flat, rounding);
    parameters = mlp.bind(layout, flat, halves);
    gradients = mlp.bind(layout, gradient);
  }
  at::Tensor forward() {
    at::manual_seed(1);
    const at::Tensor x = at::randn({kRows, kInputs}), action = at::randn({kRows, kActions});
    return mlp.forward(parameters, x, action, tape, workspace);
  }
  void backward(bool with_weights = true) {
    at::manual_seed(2);
    tape.gradient().copy_(at::randn({kRows, 3}));
    mlp.backward(parameters, gradients, tape, true, workspace, with_weights);
  }
};

/// Sets LibTorch's threads and the products while it lives.
class Threads {
public:
  Threads(int threads, const ProductChoice* choice)
      : before_(at::get_num_threads()), choice_(use_products(choice)) {
    at::set_num_threads(threads);
  }
  ~Threads() {
    at::set_num_threads(before_);
    use_products(choice_);
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

private:
  int before_;
  const ProductChoice* choice_;
};

bool close(const at::Tensor& a, const at::Tensor& b) {
  return at::allclose(a, b, 1e-4, 1e-4);
}

} // namespace

TEST_CASE("Threads that each take a part of the rows compute what one thread computes") {
  const ProductChoice measured;
  for (const Rounding rounding : {Rounding::none, Rounding::one_part, Rounding::two_parts}) {
    CAPTURE(rounding);
    Critic whole(rounding), split(rounding);
    {
      const Threads one(1, &measured);
      whole.forward();
      whole.backward();
    }
    CHECK(whole.tape.used_parts == 0);
    const Threads several(3, &measured);
    const at::Tensor output = split.forward();
    split.backward();
    CHECK(split.tape.used_parts == 3);
    CHECK(close(output, whole.tape.output()));
    CHECK(close(split.gradient, whole.gradient));
    CHECK(close(split.tape.input_gradient, whole.tape.input_gradient));
    whole.tape.gradient().fill_(1);
    whole.mlp.backward_to_extra(whole.parameters, whole.tape, whole.workspace);
    split.tape.gradient().fill_(1);
    split.mlp.backward_to_extra(split.parameters, split.tape, split.workspace);
    CHECK(close(split.tape.extra_gradient, whole.tape.extra_gradient));
    const at::Tensor first = split.gradient.clone();
    split.flat.mul_(2); // parts read parameters that changed
    split.halves.refresh(split.flat);
    CHECK_FALSE(close(split.forward(), whole.tape.output()));
    split.flat.div_(2);
    split.halves.refresh(split.flat);
    split.forward();
    split.backward();
    CHECK(at::equal(split.gradient, first));
  }
}

TEST_CASE("Parts leave the gradients of weights unchanged if those are not wanted") {
  const ProductChoice measured;
  const Threads several(2, &measured);
  Critic split(Rounding::none);
  split.forward();
  split.backward(false);
  CHECK(split.tape.used_parts == 2);
  CHECK((split.gradients[0].weight == 99).all().item<bool>());
  CHECK_FALSE((split.gradients[0].bias == 99).any().item<bool>());
  std::vector<LayerTensors> none(split.gradients.size());
  split.tape.gradient().fill_(1);
  split.mlp.backward(split.parameters, none, split.tape, true, split.workspace, false);
  CHECK(split.tape.input_gradient.abs().sum().item<double>() > 0);
}

TEST_CASE("Rows are not split without measured products, so that threads do not change a bit") {
  Critic one(Rounding::none), several(Rounding::none);
  {
    const Threads threads(1, nullptr);
    one.forward();
    one.backward();
  }
  const Threads threads(3, nullptr);
  several.forward();
  several.backward();
  CHECK(several.tape.used_parts == 0);
  CHECK(at::equal(one.gradient, several.gradient));
}

TEST_CASE("A pass on one thread may follow one on several") {
  const ProductChoice measured;
  Critic network(Rounding::none);
  at::Tensor split;
  {
    const Threads several(2, &measured);
    network.forward();
    network.backward();
    CHECK(network.tape.used_parts == 2);
    split = network.gradient.clone();
  }
  const Threads one(1, &measured);
  network.forward();
  network.backward();
  CHECK(network.tape.used_parts == 0);
  CHECK(close(network.gradient, split));
}
