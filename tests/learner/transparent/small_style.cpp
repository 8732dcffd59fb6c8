// A small training program without anything from Troupe. It fits a line with the named optimizer.
//   small_style OPTIMIZER BATCH STEPS [TRICK]
// TRICK: what some programs do. clock: each process has its own initial parameters; lead: the
// process that makes the folder ./lead first trains for half as many steps; noise: adds random
// numbers to the parameters; unused: has a parameter without gradients, and one with gradients in
// some batches only; accumulate: two backward passes per step; throw: the first process to make
// ./lead throws after two steps; exit: that process calls exit(3) instead; renew: see renew().
#include <torch/torch.h>
#include <unistd.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

struct Line : torch::data::datasets::Dataset<Line> {
  torch::data::Example<> get(std::size_t index) override {
    const auto x = torch::arange(4, torch::kFloat) * 0.1f + static_cast<float>(index % 50) * 0.02f;
    return {x, (x * torch::tensor({1.0f, -2.0f, 3.0f, 0.5f})).sum().unsqueeze(0) + 0.3f};
  }
  std::optional<std::size_t> size() const override { return 960; }
};

struct Model : torch::nn::Module {
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(4, 8));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(8, 1));
  torch::Tensor sometimes = register_parameter("sometimes", torch::ones({1}));
  torch::Tensor never = register_parameter("never", torch::ones({3}));
  torch::Tensor forward(const torch::Tensor& x) { return last(torch::tanh(hidden(x))); }
};

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name,
                                                        const std::vector<torch::Tensor>& all) {
  using namespace torch::optim;
  if (name == "sgd")
    return std::make_unique<SGD>(all, SGDOptions(0.05).momentum(0.9));
  if (name == "adam")
    return std::make_unique<Adam>(all, AdamOptions(0.01));
  if (name == "adamw")
    return std::make_unique<AdamW>(all, AdamWOptions(0.01));
  if (name == "rmsprop")
    return std::make_unique<RMSprop>(all, RMSpropOptions(0.01));
  if (name == "adagrad")
    return std::make_unique<Adagrad>(all, AdagradOptions(0.1));
  if (name == "lbfgs")
    return std::make_unique<LBFGS>(all,
                                   LBFGSOptions(0.5).line_search_fn("strong_wolfe").max_iter(4));
  throw std::invalid_argument("optimizer " + name);
}

/// Removes its folder, creates it again, and uses every call that changes names. The other ranks
/// follow once rank 0 has written, and then have nested folders to remove.
void renew() {
  namespace fs = std::filesystem;
  const char* const rank = std::getenv("RANK");
  const bool first = rank != nullptr && *rank == '0';
  if (!first) { // waits for the named pipe
    int word = 0;
    std::ifstream("go") >> word;
  }
  fs::remove_all("ckpt");
  fs::create_directories("ckpt/part");
  std::ofstream("ckpt/part/model") << "weights";
  int bad = fs::file_size("ckpt/part/model") == 7 ? 0 : 1; // sees what it wrote
  fs::rename("ckpt/part", "ckpt/whole");
  bad += fs::exists("ckpt/whole/model") ? 0 : 2;
  fs::create_hard_link("ckpt/whole/model", "ckpt/second");
  fs::create_symlink("second", "ckpt/latest");
  const int folder = ::open("ckpt", O_RDONLY | O_DIRECTORY);
  bad += ::symlinkat("second", folder, "best") == 0 ? 0 : 32;
  ::close(folder);
  fs::resize_file("ckpt/second", 3);
  char name[] = "ckpt_XXXXXX"; // written elsewhere first, renamed when complete
  const int descriptor = ::mkstemp(name);
  bad += ::write(descriptor, "whole", 5) == 5 ? 0 : 4;
  ::close(descriptor);
  fs::rename(name, "ckpt/atomic");
  std::string text;
  std::ifstream("ckpt/atomic") >> text;
  bad += text == "whole" ? 0 : 8;
  std::ofstream("file_in_the_way") << "x";
  bad += ::mkdir("file_in_the_way", 0755) == -1 && errno == EEXIST ? 0 : 16;
  fs::create_directory("gone");
  fs::remove("gone");
  if (first)
    std::ofstream("go") << 1;
  std::printf("renewed, bad %d\n", bad);
}

int main(int argc, char** argv) {
  if (argc < 4)
    return 2;
  const std::string name = argv[1];
  const int steps = std::atoi(argv[3]);
  const std::string trick = argc > 4 ? argv[4] : "";
  torch::manual_seed(trick == "clock" ? static_cast<std::uint64_t>(::getpid()) : 7);
  Model model;
  auto optimizer = make_optimizer(name, model.parameters());
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Line().map(torch::data::transforms::Stack<>()), static_cast<std::size_t>(std::atoi(argv[2])));
  const bool leads =
      (trick == "lead" || trick == "throw" || trick == "exit") && ::mkdir("lead", 0755) == 0;
  int step = 0;
  double first = 0;
  double last = 0;
  while (step < steps)
    for (auto& batch : *loader) {
      if (step == steps || (leads && trick == "lead" && step == steps / 2))
        break;
      if (leads && trick == "throw" && step == 2)
        throw std::runtime_error("the data are on fire");
      if (leads && trick == "exit" && step == 2)
        std::exit(3);
      const auto loss_of = [&](const torch::Tensor& x, const torch::Tensor& y) {
        auto loss = torch::mse_loss(model.forward(x), y);
        if (trick == "unused" && x[0][0].item<float>() > 0.4f)
          loss = loss + 0.01 * model.sometimes.pow(2).sum();
        return loss;
      };
      const auto closure = [&] {
        optimizer->zero_grad();
        if (trick == "accumulate") {
          const auto x = batch.data.chunk(2);
          const auto y = batch.target.chunk(2);
          auto loss = loss_of(x[0], y[0]) / 2;
          loss.backward();
          auto second = loss_of(x[1], y[1]) / 2;
          second.backward();
          return (loss + second).detach();
        }
        auto loss = loss_of(batch.data, batch.target);
        loss.backward();
        return loss;
      };
      if (name == "lbfgs") {
        last = optimizer->step(closure).item<double>();
      } else {
        last = closure().item<double>();
        optimizer->step();
      }
      if (step == 0)
        first = last;
      if (trick == "noise") {
        torch::NoGradGuard no_grad;
        model.last->weight.add_(torch::randn_like(model.last->weight) * 1e-3);
      }
      if (++step % 100 == 0 || step == 2)
        std::printf("step %d process %d\n", step, static_cast<int>(::getpid())),
            std::fflush(stdout);
      if (leads && trick == "lead" && step == steps / 2)
        step = steps;
    }
  if (trick == "renew")
    renew();
  if (trick == "writes") {
    std::ofstream("temporary.txt") << ::getpid();
    std::rename("temporary.txt", "who.txt");
    int who = 0;
    std::ifstream("who.txt") >> who;
    std::printf("wrote %d\n", who == ::getpid() ? 1 : 0);
    std::ofstream("log.txt", std::ios::app) << "line\n";
    std::remove("old.txt");
    torch::save(model.last->weight, "weight.pt");
  }
  for (const auto& item : model.named_parameters())
    for (std::int64_t i = 0; i < item.value().numel(); ++i)
      std::printf("parameter %s %.9g\n", item.key().c_str(),
                  item.value().view(-1)[i].item<double>());
  std::printf("unused gradients: %d\n", model.never.grad().defined() ? 1 : 0);
  std::printf("loss %.9g to %.9g\n", first, last);
}
