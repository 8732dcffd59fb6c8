#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "learner/device/safetensors.hpp"
#include "learner/nn/module_state.hpp"
#include "learner/nn/parameter_layout.hpp"
#include "learner/workloads/inception.hpp"
#include "learner/workloads/resnet.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::learner {
namespace {

/// The files of experiments/packaging/torchvision_weights.py: from $TROUPE_TORCHVISION_FIXTURE, or
/// written now by $TROUPE_TORCHVISION_PYTHON, an interpreter that has torchvision.
std::optional<std::filesystem::path> fixture(const TemporaryFolder& folder) {
  if (const char* path = std::getenv("TROUPE_TORCHVISION_FIXTURE"))
    return path;
  const char* python = std::getenv("TROUPE_TORCHVISION_PYTHON");
  if (!python)
    return {};
  const std::string command = std::string(python) + " " + in_source()
                              + "/experiments/packaging/torchvision_weights.py "
                              + folder.path().string();
  REQUIRE(std::system(command.c_str()) == 0);
  return folder.path();
}

void take_weights(torch::nn::Module& module, const TensorMap& file) {
  const at::NoGradGuard guard;
  TensorMap weights;
  for (const auto& [name, tensor] : file)
    if (name.starts_with("weight."))
      weights[name.substr(7)] = tensor;
  const auto live = module_state(module);
  check_by_name("torchvision's weights", weights, live);
  copy_by_name(weights, live);
}

/// Greatest |ours - theirs| over the greatest |theirs|.
double difference(const at::Tensor& ours, const at::Tensor& theirs) {
  return ((ours - theirs).abs().max() / theirs.abs().max()).item<double>();
}

at::Tensor some_pictures(std::int64_t rows, std::int64_t pixels, std::uint64_t seed) {
  torch::manual_seed(seed);
  return torch::randn({rows, 3, pixels, pixels});
}

} // namespace

TEST_CASE("Inception-v3 has torchvision's number of parameters and names") {
  Inception network;
  std::int64_t parameters = 0, without_head = 0;
  for (const auto& item : network->named_parameters()) {
    parameters += item.value().numel();
    if (!item.key().starts_with("AuxLogits."))
      without_head += item.value().numel();
  }
  CHECK(parameters == 27'161'264);
  CHECK(without_head == 23'834'568);
  const auto state = module_state(*network);
  CHECK(state.size() == 96 * 6 + 4); // 96 convolutions, two linear layers
  for (const char* name :
       {"Conv2d_1a_3x3.conv.weight", "Mixed_5b.branch_pool.bn.running_var",
        "Mixed_6a.branch3x3.conv.weight", "Mixed_6e.branch7x7dbl_5.conv.weight",
        "Mixed_7c.branch3x3dbl_3b.bn.bias", "AuxLogits.conv1.bn.num_batches_tracked", "fc.weight"})
    CHECK(state.contains(name));
}

TEST_CASE("The auxiliary head exists only in training, and dropout depends on the seed") {
  Inception network(InceptionOptions{.classes = 7});
  network->eval();
  const auto small = some_pictures(1, kInceptionPixels, 1);
  const auto evaluated = network->forward(small);
  CHECK(evaluated.logits.sizes() == at::IntArrayRef({1, 7}));
  CHECK_FALSE(evaluated.auxiliary.defined());
  CHECK(torch::equal(network->head(network->features(small)), evaluated.logits));
  network->train();
  const at::NoGradGuard guard;
  const auto x = some_pictures(2, kInceptionAuxiliaryPixels, 2);
  const auto seeded = [&](std::uint64_t seed) {
    network->seed_dropout(seed);
    return network->forward(x);
  };
  const auto first = seeded(5), again = seeded(5), other = seeded(6);
  CHECK(first.auxiliary.sizes() == at::IntArrayRef({2, 7}));
  CHECK(torch::equal(first.logits, again.logits));
  CHECK_FALSE(torch::equal(first.logits, other.logits));
  CHECK(torch::equal(first.auxiliary, other.auxiliary)); // no dropout before it
}

TEST_CASE("With torchvision's weights, the networks compute torchvision's logits") {
  const TemporaryFolder folder;
  const auto path = fixture(folder);
  if (!path) {
    MESSAGE("skipped: TROUPE_TORCHVISION_FIXTURE (a folder that "
            "experiments/packaging/torchvision_weights.py "
            "wrote) and TROUPE_TORCHVISION_PYTHON (an interpreter with torchvision) are not set");
    return;
  }
  const at::NoGradGuard guard;
  for (const int depth : {18, 50}) {
    const auto file =
        read_safetensors(*path / ("resnet" + std::to_string(depth) + ".safetensors")).tensors;
    ResNet network(ResNetOptions{.depth = depth});
    take_weights(*network, file);
    network->eval();
    CHECK(difference(network->forward(file.at("input")), file.at("logits")) < 1e-4);
    network->train();
    CHECK(difference(network->forward(file.at("input")), file.at("training_logits")) < 1e-4);
  }
  const auto file = read_safetensors(*path / "inception_v3.safetensors").tensors;
  Inception network(InceptionOptions{.dropout = 0});
  take_weights(*network, file);
  network->eval();
  CHECK(difference(network->forward(file.at("input")).logits, file.at("logits")) < 1e-4);
  network->train();
  const auto trained = network->forward(file.at("input"));
  CHECK(difference(trained.logits, file.at("training_logits")) < 1e-4);
  CHECK(difference(trained.auxiliary, file.at("training_auxiliary")) < 1e-4);
}

} // namespace troupe::learner
