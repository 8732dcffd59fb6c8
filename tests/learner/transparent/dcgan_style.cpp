// A generative adversarial program as users of LibTorch write it, without anything from Troupe: two
// networks with batch norm, two Adams, a shuffling loader with worker threads, checkpoints.
//   dcgan_style FOLDER STEPS: trains on pictures that it draws itself; saves into FOLDER.
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace nn = torch::nn;

constexpr std::int64_t kNoise = 16;
constexpr std::int64_t kSide = 8;

struct Blobs : torch::data::datasets::Dataset<Blobs> {
  torch::data::Example<> get(std::size_t index) override {
    auto picture = torch::full({1, kSide, kSide}, -1.0f);
    const auto row = static_cast<std::int64_t>(index % 6);
    picture.slice(1, row, row + 3).fill_(static_cast<float>(index % 10) / 10);
    return {picture, torch::tensor(static_cast<std::int64_t>(index))};
  }
  std::optional<std::size_t> size() const override { return 250; }
};

int main(int argc, char** argv) {
  if (argc != 3)
    return 2;
  const std::string folder = argv[1];
  const int steps = std::atoi(argv[2]);
  nn::Sequential generator(
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(kNoise, 16, 4).bias(false)),
      nn::BatchNorm2d(16), nn::ReLU(),
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(16, 1, 4).stride(2).padding(1)), nn::Tanh());
  nn::Sequential discriminator(
      nn::Conv2d(nn::Conv2dOptions(1, 16, 4).stride(2).padding(1).bias(false)), nn::BatchNorm2d(16),
      nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)), nn::Dropout(0.2),
      nn::Conv2d(nn::Conv2dOptions(16, 1, 4)), nn::Sigmoid());

  auto loader =
      torch::data::make_data_loader(Blobs().map(torch::data::transforms::Stack<>()),
                                    torch::data::DataLoaderOptions().batch_size(16).workers(2));
  torch::optim::Adam generator_optimizer(generator->parameters(),
                                         torch::optim::AdamOptions(2e-3).betas({0.5, 0.999}));
  torch::optim::Adam discriminator_optimizer(discriminator->parameters(),
                                             torch::optim::AdamOptions(2e-3).betas({0.5, 0.999}));
  int step = 0;
  for (int epoch = 1; step < steps; ++epoch) {
    std::printf("epoch %d\nsamples", epoch);
    for (auto& batch : *loader) {
      for (std::int64_t i = 0; i < batch.target.numel(); ++i)
        std::printf(" %lld", static_cast<long long>(batch.target[i].item<std::int64_t>()));
      discriminator->zero_grad();
      auto real_labels = torch::empty(batch.data.size(0)).uniform_(0.8, 1.0);
      auto real_output = discriminator->forward(batch.data).view(-1);
      auto real_loss = torch::binary_cross_entropy(real_output, real_labels);
      real_loss.backward();

      auto noise = torch::randn({batch.data.size(0), kNoise, 1, 1});
      auto fake = generator->forward(noise);
      auto fake_output = discriminator->forward(fake.detach()).view(-1);
      auto fake_loss = torch::binary_cross_entropy(fake_output, torch::zeros(batch.data.size(0)));
      fake_loss.backward();
      discriminator_optimizer.step();

      generator->zero_grad();
      auto output = discriminator->forward(fake).view(-1);
      auto loss = torch::binary_cross_entropy(output, torch::ones(batch.data.size(0)));
      loss.backward();
      generator_optimizer.step();
      ++step;
    }
    std::printf("\n");
    torch::save(generator, folder + "/generator.pt");
    torch::save(discriminator_optimizer, folder + "/discriminator-optimizer.pt");
  }
  for (const auto& parameter : generator->parameters())
    std::printf("generator %.17g\n",
                parameter.detach().to(torch::kDouble).abs().sum().item<double>());
  for (const auto& parameter : discriminator->parameters())
    std::printf("discriminator %.17g\n",
                parameter.detach().to(torch::kDouble).abs().sum().item<double>());
  std::printf("noise %.9g\n", torch::randn({1}).item<double>());
}
