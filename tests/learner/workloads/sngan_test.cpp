#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include <cmath>

#include "collectives/timeline.hpp"
#include "learner/nn/conditional_batch_norm.hpp"
#include "learner/nn/spectral_norm.hpp"
#include "learner/replicas/strategy_options.hpp"
#include "learner/workloads/sngan.hpp"
#include "learner/workloads/sngan_networks.hpp"
#include "tests/learner/replicas.hpp"
#include "tests/learner/tensor_maps.hpp"
#include "tests/text.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kCriticRows = 6; // global rows per critic step
constexpr std::int64_t kShades = 2;

SnganConfig small_config() {
  SnganConfig config;
  config.latent = 8;
  config.generator_channels = 4;
  config.critic_channels = 4;
  config.critic_steps = 2;
  config.batch_size = kCriticRows;
  config.decay_steps = 10;
  config.precision = "float64";
  return config;
}

SnganSpec small_spec() {
  return {.classes = kShades, .size = 32};
}

/// Dark and bright shaded_pictures with some noise. The class is the brightness.
TensorMap shaded_pictures(std::int64_t rows, std::uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto label = torch::randint(0, kShades, {rows}, generator, at::kLong);
  const auto noise = torch::randint(0, 40, {rows, 3, 32, 32}, generator, at::kLong);
  return {{"picture", (noise + 20 + label.view({rows, 1, 1, 1}) * 180).to(at::kByte)},
          {"label", label}};
}

struct AloneGan {
  explicit AloneGan(const SnganConfig& config, std::uint64_t seed = 1)
      : context(nullptr, seed), gan(make_sngan(config, small_spec())) {
    gan->build(context);
  }
  Metrics step(std::uint64_t number) {
    return gan->step_fn(context, shaded_pictures(2 * kCriticRows, number));
  }
  ReplicaContext context;
  std::unique_ptr<Sngan> gan;
};

} // namespace

TEST_CASE("The critic's hinge loss is 0 beyond 1, and the generator's loss has no hinge") {
  const auto real = torch::tensor({2.0, 1.0, 0.5, -1.0});
  const auto fake = torch::tensor({-2.0, -1.0, 0.0, 3.0});
  CHECK(hinge_critic_loss(real, fake).item<double>()
        == doctest::Approx((0 + 0 + 0.5 + 2) / 4 + (0 + 0 + 1 + 4) / 4.0));
  CHECK(hinge_generator_loss(fake).item<double>() == doctest::Approx(0));
}

TEST_CASE("The power iteration finds the largest singular value of each layer") {
  torch::manual_seed(1);
  torch::nn::Sequential network(torch::nn::Conv2d(3, 5, 3), torch::nn::Flatten(),
                                torch::nn::Linear(20, 7), torch::nn::ReLU());
  torch::nn::Embedding table(6, 4);
  network->push_back(table);
  const auto weight = network->named_parameters()["0.weight"];
  SpectralNorm norm(*network, 3);
  CHECK(network->named_parameters()["0.weight"].is_same(weight));
  CHECK(network->named_buffers().contains("0.weight_u"));
  for (int i = 0; i < 300; ++i)
    norm.apply(true);
  const auto* layer = (*network)[0]->as<torch::nn::Conv2d>();
  const auto* linear = (*network)[2]->as<torch::nn::Linear>();
  for (const auto& used : {layer->weight, linear->weight, table->weight})
    CHECK(torch::linalg_svdvals(used.detach().flatten(1)).max().item<double>()
          == doctest::Approx(1).epsilon(1e-4));
  // The output does not depend on the length of a weight, so there is no gradient in its direction.
  layer->weight.pow(3).sum().backward();
  CHECK(weight.grad().abs().max().item<double>() > 0.01);
  CHECK((weight.grad() * weight.detach()).sum().item<double>() == doctest::Approx(0).epsilon(1e-5));
  torch::nn::ReLU none;
  CHECK_THROWS_AS(SpectralNorm(*none, 1), std::invalid_argument);
}

TEST_CASE("Each training pass makes one power iteration, and other passes make none") {
  torch::manual_seed(2);
  torch::nn::Linear layer(9, 8);
  SpectralNorm norm(*layer, 1);
  const auto u = layer->named_buffers()["weight_u"];
  const auto before = u.clone();
  norm.apply(false);
  CHECK(torch::equal(u, before));
  const auto first = layer->weight;
  norm.apply(true);
  CHECK_FALSE(torch::equal(u, before));
  first.sum().backward(); // of an earlier pass
  CHECK(layer->named_parameters()["weight"].grad().defined());
}

TEST_CASE("A conditional batch norm applies the gain and bias of each row's class") {
  ConditionalBatchNorm norm(3, 2);
  torch::nn::BatchNorm2d plain(torch::nn::BatchNormOptions(3).affine(false));
  const at::NoGradGuard guard;
  auto parameters = norm->named_parameters();
  parameters["gain"].copy_(torch::randn({2, 3}));
  parameters["bias"].copy_(torch::randn({2, 3}));
  const auto x = torch::randn({4, 3, 5, 5}) * 2 + 1;
  const auto labels = torch::tensor({0, 1, 1, 0}, at::kLong);
  const auto y = norm->forward(x, labels), normal = plain->forward(x);
  for (std::int64_t row = 0; row < 4; ++row) {
    const auto of_class = [&](const char* name) {
      return parameters[name][labels[row].item<std::int64_t>()].view({3, 1, 1});
    };
    CHECK(torch::allclose(y[row], normal[row] * of_class("gain") + of_class("bias"), 1e-5, 1e-5));
  }
}

TEST_CASE("Generators and critics of 32, 64 and 128 pixels fit each other") {
  const at::NoGradGuard guard;
  auto random = at::make_generator<at::CPUGeneratorImpl>(1);
  for (const std::int64_t size : {32, 64, 128})
    for (const std::int64_t classes : {1, 3}) {
      const SnganShape shape{.size = size,
                             .classes = classes,
                             .latent = 4,
                             .generator_channels = 2,
                             .critic_channels = 2};
      SnganGenerator generator(shape, random);
      SnganCritic critic(shape, random);
      const auto labels = torch::zeros({2}, at::kLong);
      const auto made = generator->forward(torch::randn({2, 4}), labels);
      CHECK(made.sizes() == at::IntArrayRef({2, 3, size, size}));
      CHECK(made.abs().max().item<double>() <= 1);
      CHECK(critic->forward(made, labels).sizes() == at::IntArrayRef({2}));
      const auto last = labels + (classes - 1);
      const bool conditional =
          !torch::equal(critic->forward(made, labels), critic->forward(made, last));
      CHECK(conditional == (classes > 1));
    }
}

TEST_CASE("Tapered networks of 32 pixels have twice the channels at half the size") {
  const at::NoGradGuard guard;
  auto random = at::make_generator<at::CPUGeneratorImpl>(1);
  SnganShape shape{.size = 32, .latent = 4, .generator_channels = 2, .critic_channels = 3};
  for (const bool tapered : {false, true}) {
    CAPTURE(tapered);
    shape.tapered = tapered;
    SnganGenerator generator(shape, random);
    SnganCritic critic(shape, random);
    const auto channels = [](const torch::nn::Module& module, const char* block) {
      return module.named_parameters()[std::string(block) + ".conv2.weight"].size(0);
    };
    CHECK(channels(*generator, "block1") == (tapered ? 8 : 2));
    CHECK(channels(*generator, "block2") == (tapered ? 4 : 2));
    CHECK(channels(*generator, "block3") == 2);
    CHECK(channels(*critic, "block1") == 3);
    CHECK(channels(*critic, "block2") == (tapered ? 6 : 3));
    CHECK(channels(*critic, "block3") == (tapered ? 12 : 3));
    CHECK(channels(*critic, "block4") == (tapered ? 12 : 3));
    const auto labels = torch::zeros({2}, at::kLong);
    const auto made = generator->forward(torch::randn({2, 4}), labels);
    CHECK(made.sizes() == at::IntArrayRef({2, 3, 32, 32}));
    CHECK(critic->forward(made, labels).sizes() == at::IntArrayRef({2}));
    const SnganShape papers{.size = 32, .latent = 4, .tapered = tapered};
    CHECK(channels(*SnganGenerator(papers, random), "block1") == 256);
    CHECK(channels(*SnganGenerator(papers, random), "block3") == (tapered ? 64 : 256));
    CHECK(channels(*SnganCritic(papers, random), "block1") == (tapered ? 64 : 128));
  }
}

TEST_CASE("Both optimizers work under every strategy") {
  auto spec = small_spec();
  spec.input =
      shared_batches([](std::uint64_t step) { return shaded_pictures(2 * kCriticRows, step); });
  for (const auto* strategy : {"central_storage replicas=2", "parameter_server replicas=2",
                               "backup_workers replicas=3", "local_sgd replicas=2 local_steps=2"}) {
    CAPTURE(strategy);
    Replicator replicator(make_strategy(parse_strategy(strategy)));
    ReplicaProgram program(replicator, [&] { return make_sngan(small_config(), spec); });
    const auto before = copy_of(program.replica(0).parameters());
    for (const auto& report : program.run(4)) {
      CHECK(report.steps == 4);
      CHECK(std::isfinite(report.last.at("critic_loss")));
      CHECK(std::isfinite(report.last.at("generator_loss")));
    }
    CHECK_FALSE(same(program.replica(0).parameters(), before, 1e-6, "generator."));
    CHECK_FALSE(same(program.replica(0).parameters(), before, 1e-6, "critic."));
  }
}

TEST_CASE("GANs on 2 and 3 replicas with parts of the batch learn as one on the whole") {
  auto spec = small_spec();
  spec.input =
      shared_batches([](std::uint64_t step) { return shaded_pictures(2 * kCriticRows, step); });
  const auto train = [&](int replicas) {
    Replicas run([&] { return make_sngan(small_config(), spec); }, replicas, {.seed = 13});
    const auto metrics = run.run(3)[0].last;
    // Neither hinge hides a row, so the metrics show which rows each step takes.
    CHECK(metrics.at("critic_loss")
          == doctest::Approx(2 - metrics.at("critic_real") + metrics.at("critic_fake")));
    for (int i = 1; i < replicas; ++i) // the power iteration too
      CHECK(same(run.replica(i).parameters(), run.replica(0).parameters(), 1e-9));
    return copy_of(run.replica(0).parameters());
  };
  const auto whole = train(1);
  for (const int replicas : {2, 3})
    CHECK(same(train(replicas), whole, 1e-6));
}

TEST_CASE("A saved and resumed GAN continues bit for bit") {
  auto config = small_config();
  config.precision = "float32";
  AloneGan whole(config), first(config), second(config);
  Metrics expected, resumed;
  for (std::uint64_t step = 0; step < 4; ++step)
    expected = whole.step(step);
  for (std::uint64_t step = 0; step < 2; ++step)
    first.step(step);
  second.step(9); // to be replaced by load()
  second.gan->load(copy_of(first.gan->parameters()), copy_of(first.gan->optimizer_state()));
  for (std::uint64_t step = 2; step < 4; ++step)
    resumed = second.step(step);
  CHECK(resumed == expected);
  CHECK(same(second.gan->parameters(), whole.gan->parameters(), 0));
  CHECK(expected.at("learning_rate") == doctest::Approx(2e-4 * 0.7)); // the fourth of 10 steps
}

TEST_CASE("Each step function changes only the weights of its own network") {
  AloneGan alone(small_config());
  const auto batch = shaded_pictures(kCriticRows, 1);
  auto before = copy_of(alone.gan->parameters());
  alone.gan->critic_step(alone.context, batch);
  const auto weights_of = [](const TensorMap& state, const std::string& prefix) {
    TensorMap weights; // without what a forward pass changes
    for (const auto& [name, tensor] : state)
      if (name.starts_with(prefix) && name.find("running") == std::string::npos
          && name.find("tracked") == std::string::npos && !name.ends_with("_u")
          && !name.ends_with("_v"))
        weights[name] = tensor;
    return weights;
  };
  const auto unchanged = [&](const std::string& prefix) {
    return same(weights_of(alone.gan->parameters(), prefix), weights_of(before, prefix), 0);
  };
  CHECK(unchanged("generator."));
  CHECK_FALSE(unchanged("critic."));
  before = copy_of(alone.gan->parameters());
  alone.gan->generator_step(alone.context, kCriticRows);
  CHECK_FALSE(unchanged("generator."));
  CHECK(unchanged("critic."));
}

TEST_CASE("A timeline shows the steps of the critic and of the generator") {
  collectives::Timeline timeline(0);
  ReplicaContext context(ReplicaAssignment{.timeline = &timeline}, 1);
  const auto gan = make_sngan(small_config(), small_spec());
  gan->build(context);
  timeline.clear();
  gan->step_fn(context, shaded_pictures(2 * kCriticRows, 1));
  std::string shown;
  for (const auto& event : timeline.events())
    shown += std::string(event.name) + ' ';
  CHECK(shown == "optimizer critic optimizer critic optimizer generator ");
}

TEST_CASE("A GAN learns which class is dark and which is bright") {
  auto config = small_config();
  config.precision = "float32";
  config.generator_channels = config.critic_channels = 8;
  config.generator_learning_rate = config.critic_learning_rate = 2e-3;
  config.critic_steps = 1;
  config.decay_steps = 0;
  config.average_decay = 0.9;
  AloneGan alone(config);
  Metrics metrics;
  for (std::uint64_t step = 0; step < 60; ++step)
    metrics = alone.gan->step_fn(alone.context, shaded_pictures(16, step));
  for (const char* name : {"critic_loss", "critic_real", "critic_fake", "generator_loss"})
    CHECK(std::isfinite(metrics.at(name)));
  const auto draw = [&](std::uint64_t seed) {
    return alone.gan->sample(torch::tensor({0, 0, 0, 0, 1, 1, 1, 1}, at::kLong),
                             at::make_generator<at::CPUGeneratorImpl>(seed));
  };
  const auto samples = draw(1);
  CHECK(torch::equal(samples, draw(1)));
  CHECK_FALSE(torch::equal(samples, draw(2)));
  CHECK((samples.scalar_type() == at::kByte));
  const auto brightness = samples.to(at::kDouble).mean({1, 2, 3});
  const auto dark = brightness.narrow(0, 0, 4), bright = brightness.narrow(0, 4, 4);
  CHECK(dark.max().item<double>() < bright.min().item<double>());
  CHECK(bright.mean().item<double>() - dark.mean().item<double>() > 60);
}

TEST_CASE("Samples are evaluated against real pictures, equally on any number of replicas") {
  auto config = small_config();
  config.evaluation_samples = 120; // three portions, the last of them smaller
  auto spec = small_spec();
  spec.real = std::make_shared<TensorDataset>(shaded_pictures(31, 5));
  spec.describe = [](const at::Tensor& seen) -> TensorMap {
    const auto colours = seen.to(at::kDouble).mean({2, 3}) / 255;
    return {{"features", colours}, {"logits", colours * 9}};
  };
  const auto evaluate = [&](int replicas) {
    Replicator replicator(make_mirrored_strategy(replicas));
    std::vector<Metrics> all(static_cast<std::size_t>(replicas));
    TensorMap shown;
    replicator.call([&](ReplicaContext& context) {
      const auto gan = make_sngan(config, spec);
      gan->build(context);
      all[static_cast<std::size_t>(context.local_id())] = gan->evaluate(context);
      if (context.local_id() == 0)
        shown = gan->pictures();
      return TensorMap{};
    });
    CHECK(all.back() == all[0]);
    CHECK(shown.at("samples").sizes() == at::IntArrayRef({3, 2 * 32, 8 * 32}));
    return all[0];
  };
  const auto expected = evaluate(1);
  CHECK(expected.at("frechet_distance") > 0.01); // nothing is learnt yet
  CHECK(expected.at("class_score") >= 1);
  for (const int replicas : {2, 3})
    for (const auto& [name, value] : evaluate(replicas))
      CHECK(value == doctest::Approx(expected.at(name)).epsilon(1e-6));
  // The distance of the real shaded_pictures to themselves is zero.
  ReplicaContext alone(nullptr);
  const auto real = statistics_of(alone, *spec.real, 7, spec.describe);
  CHECK(real.rows() == 31);
  CHECK(frechet_distance(real, real) < 1e-9);
}

TEST_CASE("Samples are arranged in a grid row by row") {
  auto samples = torch::zeros({3, 3, 2, 4}, at::kByte);
  for (std::int64_t i = 0; i < 3; ++i)
    samples[i].fill_(i + 1);
  const auto grid = picture_grid(samples, 2);
  CHECK(grid.sizes() == at::IntArrayRef({3, 4, 8}));
  CHECK(grid[0][0][0].item<int>() == 1);
  CHECK(grid[2][1][4].item<int>() == 2);
  CHECK(grid[1][2][3].item<int>() == 3);
  CHECK(grid[1][3][7].item<int>() == 0);
  CHECK_THROWS_AS(picture_grid(samples, 0), std::invalid_argument);
}

TEST_CASE("An invalid GAN configuration or batch is refused by field, value and rule") {
  const auto of = [](auto&& change) {
    auto config = small_config();
    auto spec = small_spec();
    change(config, spec);
    return error_of<std::invalid_argument>([&] { check(config, spec); });
  };
  CHECK(of([](auto&, auto&) {}).empty());
  CHECK(of([](auto&, auto& s) { s.size = 48; }) == "size 48 must be 32, 64 or 128 pixels");
  CHECK(of([](auto& c, auto&) { c.critic_steps = 0; }) == "critic_steps 0 must be at least 1");
  CHECK(of([](auto& c, auto&) { c.beta2 = 1; }) == "beta2 1 must lie in [0, 1)");
  AloneGan alone(small_config());
  CHECK_THROWS_WITH_AS(
      alone.gan->step_fn(alone.context, shaded_pictures(5, 1)),
      "the batch has 5 rows; it must be 2 (critic_steps) times as many as one critic step takes",
      std::invalid_argument);
  auto rows = shaded_pictures(4, 1);
  rows["picture"] = torch::full({4, 3, 32, 32}, NAN);
  CHECK_THROWS_WITH_AS(
      alone.gan->step_fn(alone.context, rows),
      "NaN or infinity in batch tensor \"picture\" at critic step 1: it came from the data set",
      std::runtime_error);
}

} // namespace troupe::learner
