// A convolutional network of any width with batch norm, without anything from Troupe.
//   network_style WIDTH BATCH STEPS [TRICK]
// Prints sums of parameters and buffers, images per second, and the results of its evaluation.
// TRICK: what some programs do. no_norm: no batch norm; accumulate: two backward passes per step;
// clip: clips the norm of the gradients, without batch norm; data: changes gradients in a way that
// autograd does not see; skip: half of the processes use a layer in every second step only;
// own_optimizer: defines its own optimizer class; own_sampler: defines its own sampler class;
// stream: trains on a stream of data; two: an optimizer for each half of the layers; more: adds
// half of the layers to the optimizer later; new: constructs an optimizer for each step, and prints
// the bytes of memory in use in the middle and at the end.
#include <torch/torch.h>
#include <unistd.h>

#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace {

constexpr std::int64_t kSide = 16; // pixels
constexpr std::size_t kImages = 512;

torch::data::Example<> image(std::size_t index) {
  const auto i = static_cast<std::int64_t>(index);
  const auto x =
      (torch::arange(3 * kSide * kSide, torch::kFloat) * 0.1f * static_cast<float>(1 + i % 7)
       + static_cast<float>(i))
          .sin()
          .view({3, kSide, kSide});
  return {x, torch::tensor(i % 10)};
}

struct Images : torch::data::datasets::Dataset<Images> {
  torch::data::Example<> get(std::size_t index) override { return image(index); }
  std::optional<std::size_t> size() const override { return kImages; }
};

struct Stream : torch::data::datasets::StreamDataset<Stream> {
  std::vector<torch::data::Example<>> get_batch(std::size_t count) override {
    std::vector<torch::data::Example<>> batch;
    for (std::size_t i = 0; i < count; ++i)
      batch.push_back(image(next++));
    return batch;
  }
  std::optional<std::size_t> size() const override { return std::nullopt; }
  std::size_t next = 0;
};

struct OwnSampler : torch::data::samplers::Sampler<> {
  void reset(std::optional<std::size_t> = std::nullopt) override { next_index = 0; }
  std::optional<std::vector<std::size_t>> next(std::size_t count) override {
    std::vector<std::size_t> batch;
    for (; batch.size() < count && next_index < kImages; ++next_index)
      batch.push_back(next_index);
    if (batch.empty())
      return std::nullopt;
    return batch;
  }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}
  std::size_t next_index = 0;
};

struct OwnOptimizer : torch::optim::Optimizer {
  explicit OwnOptimizer(std::vector<torch::Tensor> all)
      : Optimizer({torch::optim::OptimizerParamGroup(std::move(all))},
                  std::make_unique<torch::optim::SGDOptions>(0.05)) {}
  torch::Tensor step(LossClosure = nullptr) override {
    torch::NoGradGuard no_grad;
    for (auto& group : param_groups())
      for (auto& parameter : group.params())
        if (parameter.grad().defined())
          parameter.sub_(parameter.grad(), 0.05);
    return {};
  }
};

struct Network : torch::nn::Module {
  Network(std::int64_t width, bool norm) {
    std::int64_t channels = 3;
    for (int layer = 0; layer < 6; ++layer) {
      layers->push_back(torch::nn::Conv2d(
          torch::nn::Conv2dOptions(channels, width, 3).padding(1).stride(layer % 2 + 1)));
      if (norm)
        layers->push_back(torch::nn::BatchNorm2d(width));
      layers->push_back(torch::nn::ReLU());
      channels = width;
    }
    register_module("layers", layers);
    head = register_module("head", torch::nn::Linear(channels * 4, 10));
    extra = register_module("extra", torch::nn::Linear(channels * 4, 10));
  }
  torch::Tensor forward(const torch::Tensor& x, bool with_extra) {
    const auto features = layers->forward(x).flatten(1);
    return with_extra ? head(features) + extra(features) : head(features);
  }
  torch::nn::Sequential layers;
  torch::nn::Linear head{nullptr}, extra{nullptr};
};

struct Trainer {
  std::string trick;
  int steps;
  std::size_t batch;
  Network network;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers;
  std::optional<torch::optim::SGD> newest;
  std::vector<torch::Tensor> later;
  int step = 0;
  double loss_sum = 0;

  Trainer(std::int64_t width, std::size_t batch_size, int step_count, std::string what)
      : trick(std::move(what)),
        steps(step_count),
        batch(batch_size),
        network(width, trick != "no_norm" && trick != "clip") {
    using torch::optim::SGD;
    using torch::optim::SGDOptions;
    auto all = network.parameters();
    const auto options = SGDOptions(0.02).momentum(0.9);
    const std::vector<torch::Tensor> some(all.begin(), all.begin() + 6);
    const std::vector<torch::Tensor> rest(all.begin() + 6, all.end());
    if (trick == "own_optimizer") {
      optimizers.push_back(std::make_unique<OwnOptimizer>(all));
    } else if (trick == "two" || trick == "more") {
      optimizers.push_back(std::make_unique<SGD>(rest, options));
      if (trick == "two")
        optimizers.push_back(std::make_unique<SGD>(some, options));
      else
        later = some;
    } else if (trick != "new") {
      optimizers.push_back(std::make_unique<SGD>(all, options));
    }
  }

  void backward(const torch::Tensor& x, const torch::Tensor& y, double scale) {
    const bool with_extra = trick != "skip" || step % 2 == 0 || x[0][0][0][0].item<float>() > 0;
    auto loss = torch::nn::functional::cross_entropy(network.forward(x, with_extra), y) * scale;
    loss.backward();
    loss_sum += loss.item<double>();
  }

  /// False: that was the last one.
  bool train(const torch::Tensor& x, const torch::Tensor& y) {
    if (trick == "new")
      newest.emplace(network.parameters(), torch::optim::SGDOptions(0.02)).zero_grad();
    for (auto& optimizer : optimizers)
      optimizer->zero_grad();
    if (trick == "accumulate") {
      const auto xs = x.chunk(2), ys = y.chunk(2);
      backward(xs[0], ys[0], 0.5);
      backward(xs[1], ys[1], 0.5);
    } else {
      backward(x, y, 1);
    }
    if (trick == "clip")
      torch::nn::utils::clip_grad_norm_(network.parameters(), 0.1);
    if (trick == "data")
      for (auto& parameter : network.parameters())
        if (parameter.grad().defined())
          parameter.grad().data().clamp_(-1e-3, 1e-3);
    for (auto& optimizer : optimizers)
      optimizer->step();
    if (newest) {
      newest->step();
      if (step == steps / 2 || step + 1 == steps)
        std::printf("bytes in use %zu\n", ::mallinfo2().uordblks + ::mallinfo2().hblkhd);
    }
    if (step == steps / 2 && !later.empty()) {
      optimizers[0]->add_param_group(torch::optim::OptimizerParamGroup(later));
      later.clear();
    }
    return ++step < steps;
  }

  template <class Loader>
  void run(Loader& loader) {
    while (true)
      for (auto& examples : *loader)
        if (!train(examples.data, examples.target))
          return;
  }
};

template <class Sampler, class Data>
auto loader_of(Data data, Sampler sampler, std::size_t batch) {
  return torch::data::make_data_loader(data.map(torch::data::transforms::Stack<>()), sampler,
                                       torch::data::DataLoaderOptions(batch));
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 4)
    return 2;
  torch::manual_seed(7);
  Trainer trainer(std::atoi(argv[1]), static_cast<std::size_t>(std::atoi(argv[2])),
                  std::atoi(argv[3]), argc > 4 ? argv[4] : "");
  const auto begin = std::chrono::steady_clock::now();
  if (trainer.trick == "stream") {
    auto loader = loader_of(Stream(), torch::data::samplers::StreamSampler(kImages), trainer.batch);
    trainer.run(loader);
  } else if (trainer.trick == "own_sampler") {
    auto loader = loader_of(Images(), OwnSampler(), trainer.batch);
    trainer.run(loader);
  } else {
    auto loader =
        loader_of(Images(), torch::data::samplers::SequentialSampler(kImages), trainer.batch);
    trainer.run(loader);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const auto& item : trainer.network.named_parameters())
    std::printf("parameter %s %.9g\n", item.key().c_str(),
                item.value().to(torch::kDouble).pow(2).sum().item<double>());
  for (const auto& item : trainer.network.named_buffers())
    std::printf("buffer %s %.9g\n", item.key().c_str(),
                item.value().to(torch::kDouble).pow(2).sum().item<double>());
  torch::NoGradGuard no_grad;
  trainer.network.eval();
  std::printf(
      "evaluation %.9g\n",
      trainer.network.forward(torch::ones({1, 3, kSide, kSide}), true).sum().item<double>());
  std::printf("loss %.9g\n", trainer.loss_sum);
  std::printf("images per second %.1f\n",
              static_cast<double>(trainer.batch) * trainer.steps / seconds);
}
