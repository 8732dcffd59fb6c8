// A training program as users of LibTorch write it, without anything from Troupe.
//   mnist_style DATA BATCH STEPS LEARNING_RATE FILE
// Trains on the MNIST files in DATA, in their order, for STEPS batches, evaluates, and saves the
// parameters to FILE.
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

struct Net : torch::nn::Module {
  Net() {
    convolution1 = register_module("convolution1",
                                   torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 5).stride(2)));
    convolution2 = register_module("convolution2",
                                   torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 16, 5).stride(2)));
    linear1 = register_module("linear1", torch::nn::Linear(256, 64));
    linear2 = register_module("linear2", torch::nn::Linear(64, 10));
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(convolution1->forward(x));
    x = torch::relu(convolution2->forward(x));
    x = torch::relu(linear1->forward(x.view({-1, 256})));
    return torch::log_softmax(linear2->forward(x), 1);
  }

  torch::nn::Conv2d convolution1{nullptr}, convolution2{nullptr};
  torch::nn::Linear linear1{nullptr}, linear2{nullptr};
};

template <typename Loader>
void train(Net& model, Loader& loader, torch::optim::Optimizer& optimizer, int steps) {
  model.train();
  int step = 0;
  std::int64_t images = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (auto& batch : loader) {
    if (step == steps)
      break;
    optimizer.zero_grad();
    auto output = model.forward(batch.data);
    auto loss = torch::nll_loss(output, batch.target);
    loss.backward();
    optimizer.step();
    images += batch.data.size(0);
    std::printf("step %d loss %.9g\n", ++step, loss.template item<double>());
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("images/s %.1f\n", static_cast<double>(images) / seconds.count());
}

template <typename Loader>
void test(Net& model, Loader& loader) {
  torch::NoGradGuard no_grad;
  model.eval();
  std::int64_t correct = 0;
  std::int64_t seen = 0;
  for (const auto& batch : loader) {
    auto output = model.forward(batch.data);
    correct += output.argmax(1).eq(batch.target).sum().template item<std::int64_t>();
    seen += batch.data.size(0);
  }
  std::printf("test: %lld of %lld\n", static_cast<long long>(correct),
              static_cast<long long>(seen));
}

int main(int argc, char** argv) {
  if (argc != 6)
    return 2;
  const std::string root = argv[1];
  const auto batch_size = static_cast<std::size_t>(std::atoi(argv[2]));
  const int steps = std::atoi(argv[3]);
  torch::manual_seed(1);
  Net model;

  auto train_dataset = torch::data::datasets::MNIST(root)
                           .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                           .map(torch::data::transforms::Stack<>());
  auto train_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(train_dataset), batch_size);
  auto test_dataset = torch::data::datasets::MNIST(root, torch::data::datasets::MNIST::Mode::kTest)
                          .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                          .map(torch::data::transforms::Stack<>());
  auto test_loader = torch::data::make_data_loader(std::move(test_dataset), 1000);

  torch::optim::SGD optimizer(model.parameters(),
                              torch::optim::SGDOptions(std::atof(argv[4])).momentum(0.5));
  train(model, *train_loader, optimizer, steps);
  test(model, *test_loader);
  torch::save(model.parameters(), argv[5]);
}
