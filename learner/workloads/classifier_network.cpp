#include "learner/workloads/classifier_network.hpp"

#include <cmath>
#include <optional>
#include <stdexcept>

#include <ATen/CPUGeneratorImpl.h>

#include "learner/workloads/inception.hpp"
#include "learner/workloads/resnet.hpp"

namespace troupe::learner {
namespace {

struct ResNetName {
  int depth = 0;
  bool small_stem = false;
};

/// Parses names such as "resnet18" and "resnet18_small".
std::optional<ResNetName> resnet_of(std::string model) {
  ResNetName name;
  constexpr std::string_view kPrefix = "resnet", kSuffix = "_small";
  if (!model.starts_with(kPrefix))
    return {};
  model.erase(0, kPrefix.size());
  if (model.ends_with(kSuffix)) {
    name.small_stem = true;
    model.erase(model.size() - kSuffix.size());
  }
  if (model.empty() || model.size() > 3 || model.find_first_not_of("0123456789") != model.npos)
    return {};
  name.depth = std::stoi(model);
  return is_resnet_depth(name.depth) && std::to_string(name.depth) == model ? std::optional(name)
                                                                            : std::nullopt;
}

/// Linear layers with ReLU between them: "hidden0.weight", …, "fc.weight".
class MlpModule : public torch::nn::Module {
public:
  MlpModule(std::int64_t inputs, const std::vector<std::int64_t>& layers, std::int64_t classes,
            at::Generator generator) {
    for (std::size_t i = 0; i < layers.size(); inputs = layers[i++])
      hidden_.push_back(
          register_module("hidden" + std::to_string(i), torch::nn::Linear(inputs, layers[i])));
    fc_ = register_module("fc", torch::nn::Linear(inputs, classes));
    const at::NoGradGuard guard;
    for (auto& layer : hidden_)
      fill(*layer, 2, generator);
    fill(*fc_, 1, generator);
  }
  at::Tensor features(const at::Tensor& input) {
    auto x = input.flatten(1);
    for (auto& layer : hidden_)
      x = layer->forward(x).relu_();
    return x;
  }
  at::Tensor head(const at::Tensor& features) { return fc_->forward(features); }

private:
  /// Fills the weights with normal numbers of variance gain / inputs.
  static void fill(torch::nn::LinearImpl& layer, double gain, const at::Generator& generator) {
    layer.weight.normal_(0, std::sqrt(gain / static_cast<double>(layer.weight.size(1))), generator);
    layer.bias.zero_();
  }
  std::vector<torch::nn::Linear> hidden_;
  torch::nn::Linear fc_{nullptr};
};

/// Wraps a module that has features() and head().
template <class Module>
class PlainNetwork : public ClassifierNetwork {
public:
  explicit PlainNetwork(std::shared_ptr<Module> module) : module_(std::move(module)) {}
  torch::nn::Module& module() override { return *module_; }
  ClassifierOutputs forward(const at::Tensor& input) override {
    return {.logits = head(features(input)), .auxiliary = {}};
  }
  at::Tensor features(const at::Tensor& input) override { return module_->features(input); }
  at::Tensor head(const at::Tensor& features) override { return module_->head(features); }

protected:
  std::shared_ptr<Module> module_;
};

class InceptionNetwork : public PlainNetwork<InceptionImpl> {
public:
  using PlainNetwork::PlainNetwork;
  ClassifierOutputs forward(const at::Tensor& input) override { return module_->forward(input); }
  void seed_dropout(std::uint64_t seed) override { module_->seed_dropout(seed); }
};

std::int64_t inputs_of(const ClassifierSpec& spec) {
  return spec.features > 0 ? spec.features : spec.channels * spec.height * spec.width;
}

} // namespace

void check_model(const ClassifierConfig& config, const ClassifierSpec& spec) {
  const bool inception = config.model == "inception_v3";
  if (!inception && config.model != "mlp" && !resnet_of(config.model))
    throw std::invalid_argument("model \"" + config.model
                                + "\" is not known; give \"mlp\", \"inception_v3\", or \"resnet\" "
                                  "and one of "
                                + resnet_depths() + ", followed by \"_small\" for small pictures");
  if (config.model != "mlp" && spec.features > 0)
    throw std::invalid_argument("model \"" + config.model + "\" takes pictures, but the data have "
                                + std::to_string(spec.features)
                                + " columns of features; give \"mlp\"");
  const auto least = config.auxiliary_weight > 0 ? kInceptionAuxiliaryPixels : kInceptionPixels;
  if (inception && (spec.channels != 3 || std::min(spec.height, spec.width) < least))
    throw std::invalid_argument(
        "model \"inception_v3\" takes pictures of 3 channels and at least " + std::to_string(least)
        + " pixels a side, these are " + std::to_string(spec.channels) + "x"
        + std::to_string(spec.height) + "x" + std::to_string(spec.width)
        + (config.auxiliary_weight > 0
               ? "; with auxiliary_weight 0 it takes " + std::to_string(kInceptionPixels)
               : "; give larger ones, or a resnet"));
}

std::unique_ptr<ClassifierNetwork> make_network(const ClassifierConfig& config,
                                                const ClassifierSpec& spec, std::uint64_t seed) {
  check_model(config, spec);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  if (const auto name = resnet_of(config.model))
    return std::make_unique<PlainNetwork<ResNetImpl>>(
        std::make_shared<ResNetImpl>(ResNetOptions{.depth = name->depth,
                                                   .classes = spec.classes,
                                                   .zero_last_gamma = config.zero_last_gamma,
                                                   .channels = spec.channels,
                                                   .small_stem = name->small_stem,
                                                   .generator = generator}));
  if (config.model == "inception_v3")
    return std::make_unique<InceptionNetwork>(
        std::make_shared<InceptionImpl>(InceptionOptions{.classes = spec.classes,
                                                         .auxiliary = config.auxiliary_weight > 0,
                                                         .dropout = config.dropout,
                                                         .generator = generator}));
  return std::make_unique<PlainNetwork<MlpModule>>(
      std::make_shared<MlpModule>(inputs_of(spec), config.layers, spec.classes, generator));
}

} // namespace troupe::learner
