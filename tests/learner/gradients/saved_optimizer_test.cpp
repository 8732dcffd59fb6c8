#include <cstdlib>

#include <sys/wait.h>

#include <torch/nn.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include "learner/device/safetensors.hpp"
#include "learner/gradients/not_finite.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/nn/kernels/fused_torch_adam.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::learner {
namespace {

struct LayerImpl : torch::nn::Module {
  LayerImpl() : fc(register_module("fc", torch::nn::Linear(4, 3))) {}
  torch::nn::Linear fc;
};
TORCH_MODULE(Layer);

template <class Kind = FusedAdamW>
std::unique_ptr<WrappedOptimizer> wrapped(const Layer& layer, double rate = 0.25) {
  auto optimizer = std::make_unique<Kind>(layer->parameters(), torch::optim::AdamWOptions(rate));
  WrappedOptimizerOptions options;
  options.names = parameter_names(*layer, *optimizer);
  return std::make_unique<WrappedOptimizer>(std::move(optimizer), nullptr, options);
}

void step(WrappedOptimizer& optimizer, double gradient) {
  optimizer.zero_grad();
  for (auto parameter : optimizer.parameters())
    parameter.mutable_grad() = at::full_like(parameter, gradient);
  optimizer.step();
}

void copy(const Layer& from, const Layer& to) {
  const at::NoGradGuard guard;
  for (std::size_t i = 0; i < from->parameters().size(); ++i)
    to->parameters()[i].copy_(from->parameters()[i]);
}

bool same(const Layer& a, const Layer& b) {
  return a->fc->weight.equal(b->fc->weight) && a->fc->bias.equal(b->fc->bias);
}

} // namespace

TEST_CASE("A checkpoint has the moments under the names of the parameters, and Python reads them") {
  const TemporaryFolder folder;
  const Layer layer;
  const auto optimizer = wrapped(layer);
  step(*optimizer, 2);
  const auto file = folder / "optimizer.safetensors";
  write_safetensors(file, optimizer->state());
  const std::string source = in_source(), build = in_build();
  const auto command = "sh " + source + "/tests/learner/gradients/saved_optimizer_python.sh "
                       + build + " " + file.string();
  const int status = std::system(command.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    MESSAGE("skipped: no Python package 'safetensors' here, and pip cannot fetch it");
    return;
  }
  CHECK(status == 0);
}

TEST_CASE("A saved state is a copy and continues bit for bit with its learning rate") {
  const Layer first, second;
  const auto saved_by = wrapped(first);
  step(*saved_by, 2);
  saved_by->optimizer().param_groups()[0].options().set_lr(0.125);
  step(*saved_by, -1);
  const auto state = saved_by->state();
  copy(first, second);
  step(*saved_by, 0.5); // the saved state is a copy
  const auto loaded = wrapped(second);
  loaded->load(state);
  CHECK(loaded->steps() == 2);
  step(*loaded, 0.5);
  CHECK(same(first, second));
}

TEST_CASE("Archives written before states had names still load") {
  const Layer first, second;
  const auto saved_by = wrapped(first);
  step(*saved_by, 2);
  std::ostringstream out;
  torch::serialize::OutputArchive archive;
  saved_by->optimizer().save(archive);
  archive.save_to(out);
  const auto text = out.str();
  const auto bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  copy(first, second);
  const auto loaded = wrapped(second);
  loaded->load({{"optimizer.part0", bytes}, {"wrapped.steps", torch::full({1}, 1, at::kLong)}});
  step(*saved_by, 0.5);
  step(*loaded, 0.5);
  CHECK(same(first, second));
}

TEST_CASE("A state of other parameters, shapes or param groups is refused by the tensor's name") {
  const Layer layer;
  const auto optimizer = wrapped(layer);
  step(*optimizer, 2);
  const auto state = optimizer->state();
  const auto refused = [&](const char* name, const at::Tensor& tensor, const char* message) {
    auto wrong = state;
    if (tensor.defined())
      wrong[name] = tensor;
    else
      wrong.erase(name);
    CHECK_THROWS_WITH_AS(optimizer->load(wrong), doctest::Contains(message), std::runtime_error);
  };
  refused("optimizer.exp_avg.fc.wait", torch::zeros({3, 4}),
          "'optimizer.exp_avg.fc.wait', which belongs to no parameter here");
  refused("optimizer.exp_avg.fc.bias", torch::zeros({4}), "\"optimizer.exp_avg.fc.bias\"");
  refused("optimizer.step.fc.weight", {}, "\"optimizer.step.fc.weight\" is missing");
  refused("optimizer.momentum_buffer.fc.bias", torch::zeros({3}),
          "\"optimizer.momentum_buffer.fc.bias\" is unexpected");
  refused("optimizer.learning_rates", torch::zeros({2}, at::kDouble),
          "'optimizer.learning_rates' of Double[2]");
  auto wrong = state;
  wrong["optimizer.exp_avg.fc.bias"] = torch::ones({3});
  wrong["optimizer.learning_rates"] = torch::zeros({2}, at::kDouble);
  CHECK_THROWS_AS(optimizer->load(wrong), std::runtime_error);
  const auto kept = optimizer->state(); // a refused state changes nothing
  CHECK(kept.at("optimizer.exp_avg.fc.bias").equal(state.at("optimizer.exp_avg.fc.bias")));
  optimizer->load(state);
}

TEST_CASE("An optimizer whose state has no names is saved as an archive") {
  class OwnAdamW : public torch::optim::AdamW {
    using AdamW::AdamW;
  };
  const Layer first, second;
  const auto saved_by = wrapped<OwnAdamW>(first);
  step(*saved_by, 2);
  const auto state = saved_by->state();
  CHECK(state.contains("optimizer.part0"));
  copy(first, second);
  const auto loaded = wrapped<OwnAdamW>(second);
  CHECK_THROWS_WITH_AS(loaded->load({{"wrapped.steps", torch::full({1}, 1, at::kLong)}}),
                       doctest::Contains("lacks 'optimizer.part0'"), std::runtime_error);
  loaded->load(state);
  auto wrong = state;
  wrong["optimizer.part0"] = torch::zeros({10}, at::kByte);
  CHECK_THROWS_WITH_AS(loaded->load(wrong), doctest::Contains("cannot be loaded"),
                       std::runtime_error); // and the state is still the one loaded before
  step(*saved_by, 0.5);
  step(*loaded, 0.5);
  CHECK(same(first, second));
}

} // namespace troupe::learner
