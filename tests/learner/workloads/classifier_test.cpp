#include <torch/nn.h>

#include "tests/doctest_torch.hpp"

#include <cmath>

#include "learner/nn/picture_normaliser.hpp"
#include "learner/replicas/strategy_options.hpp"
#include "tests/learner/replicas.hpp"
#include "tests/learner/tensor_maps.hpp"
#include "tests/learner/workloads/classifier_fixture.hpp"
#include "tests/text.hpp"

namespace troupe::learner {
namespace {

std::string refusal(const ClassifierConfig& config, const ClassifierSpec& spec) {
  return error_of<std::invalid_argument>([&] { check(config, spec); });
}

} // namespace

TEST_CASE("Classifiers on 2 and 3 replicas with parts of the batch learn as one on the whole") {
  for (const auto* optimizer : {"sgd", "rmsprop", "adamw"}) {
    auto config = config_of("resnet20");
    config.optimizer = optimizer;
    config.average_decay = 0.5;
    config.gradient_norm = 1;
    config.momentum = 0.9;
    auto spec = spec_of();
    spec.input = shared_batches([](std::uint64_t step) { return pictures(kBatch, step); });
    const auto train = [&](int replicas) {
      Replicas run([&] { return make_classifier(config, spec); }, replicas);
      const auto reports = run.run(4);
      for (int i = 1; i < replicas; ++i)
        CHECK(same(run.replica(i).parameters(), run.replica(0).parameters(), 1e-9));
      return copy_of(run.replica(0).parameters());
    };
    const auto whole = train(1);
    for (const int replicas : {2, 3})
      CHECK(same(train(replicas), whole, 1e-6));
    config.global_batch_norm = false;
    if (optimizer == std::string("sgd")) {
      Replicas run([&] { return make_classifier(config, spec); }, 2);
      run.run(4);
      CHECK_FALSE(same(run.replica(0).parameters(), whole, 1e-6));
    }
  }
}

TEST_CASE("A saved and resumed classifier continues bit for bit, including averages and schedule") {
  for (const auto* optimizer : {"sgd", "rmsprop", "adamw"}) {
    auto config = config_of("resnet20");
    config.optimizer = optimizer;
    config.precision = "float32";
    config.average_decay = 0.9;
    Alone whole(config, spec_of()), first(config, spec_of()), second(config, spec_of(), 9);
    Metrics expected;
    for (std::uint64_t step = 0; step < 6; ++step)
      expected = whole.step(pictures(kBatch, step));
    for (std::uint64_t step = 0; step < 3; ++step)
      first.step(pictures(kBatch, step));
    second.step(pictures(kBatch, 77)); // to be replaced by load()
    second.classifier->load(copy_of(first.classifier->parameters()),
                            copy_of(first.classifier->optimizer_state()));
    Metrics resumed;
    for (std::uint64_t step = 3; step < 6; ++step)
      resumed = second.step(pictures(kBatch, step));
    CHECK(resumed == expected);
    CHECK(same(second.classifier->parameters(), whole.classifier->parameters(), 0));
  }
}

TEST_CASE("Weight decay applies to weights but not to biases and batch norms") {
  auto config = config_of("resnet20");
  config.zero_last_gamma = false;
  config.warmup_epochs = 0;
  config.schedule = "constant";
  const auto after_a_step = [&](double decay) {
    config.weight_decay = decay;
    Alone alone(config, spec_of());
    const auto before = copy_of(alone.classifier->parameters());
    alone.step(pictures(kBatch, 1));
    return std::pair(before, copy_of(alone.classifier->parameters()));
  };
  const auto [before, with] = after_a_step(0.2);
  const auto without = after_a_step(0).second;
  for (const auto& [name, tensor] : without) {
    const bool weight = tensor.dim() > 1;
    const auto expected = weight ? tensor - 0.05 * 0.2 * before.at(name) : tensor;
    CHECK_MESSAGE(torch::allclose(with.at(name), expected, 1e-9, 1e-12), name);
  }
}

TEST_CASE("The learning rate warms up, scales with the batch, and follows its schedule") {
  auto config = config_of("mlp");
  config.linear_scaling = true;
  config.batch_size = 512;
  config.learning_rate = 0.1;
  config.warmup_epochs = 1; // 4 steps
  config.epochs = 3;
  const auto rates = [&](const std::string& schedule, int steps) {
    config.schedule = schedule;
    Alone alone(config, spec_of(false));
    std::vector<double> all;
    for (int step = 0; step < steps; ++step)
      all.push_back(alone.step(features(4, 1)).at("learning_rate"));
    return all;
  };
  const auto cosine = rates("cosine", 13);
  CHECK(cosine[0] == 0);
  CHECK(cosine[2] == doctest::Approx(0.1)); // half of 0.1 · 512 / 256
  CHECK(cosine[4] == doctest::Approx(0.2));
  CHECK(cosine[8] == doctest::Approx(0.1));
  CHECK(cosine[12] == doctest::Approx(0).epsilon(1e-9));
  config.milestones = {1.5, 2};
  config.decay = 0.1;
  const auto steps = rates("steps", 9);
  CHECK(steps[5] == doctest::Approx(0.2));
  CHECK(steps[6] == doctest::Approx(0.02));
  CHECK(steps[8] == doctest::Approx(0.002));
  config.decay = 0.94;
  config.decay_epochs = 0.5;
  const auto exponential = rates("exponential", 9);
  CHECK(exponential[5] == doctest::Approx(0.2));
  CHECK(exponential[6] == doctest::Approx(0.2 * 0.94));
  CHECK(exponential[8] == doctest::Approx(0.2 * 0.94 * 0.94));
}

TEST_CASE("The average follows the weights and buffers, and evaluation uses it") {
  auto config = config_of("resnet20");
  config.average_decay = 0.2; // above the warm-up's 2/11 from the second update on
  Alone alone(config, spec_of());
  const auto rows = pictures(kBatch, 50);
  auto expected = copy_of(alone.classifier->parameters());
  for (std::uint64_t step = 0; step < 4; ++step) {
    alone.step(pictures(kBatch, step));
    const double n = static_cast<double>(step) + 1;
    const double decay = std::min(0.2, (1 + n) / (10 + n));
    for (const auto& [name, live] : alone.classifier->parameters())
      if (!name.starts_with("average.")) {
        auto& mean = expected.at("average." + name);
        mean = live.is_floating_point() ? mean * decay + live * (1 - decay) : live.clone();
      }
  }
  const auto state = alone.classifier->parameters();
  TensorMap averaged;
  for (const auto& [name, tensor] : state)
    if (name.starts_with("average.")) {
      CHECK(torch::allclose(tensor, expected.at(name), 1e-9, 1e-12));
      averaged[name.substr(8)] = tensor.clone();
    }
  config.average_decay = 0;
  Alone other(config, spec_of());
  other.classifier->load(averaged, {}); // only the parameters
  CHECK(same(other.classifier->measure(rows), alone.classifier->measure(rows), 1e-9));
}

TEST_CASE("The loss is the cross entropy with smoothed labels") {
  auto config = config_of("mlp");
  config.label_smoothing = 0.3;
  Alone alone(config, spec_of(false));
  const auto rows = features(6, 3);
  const auto logs = alone.classifier->describe(rows.at("features")).at("logits").log_softmax(1);
  const auto right = logs.gather(1, rows.at("label").unsqueeze(1)).mean().item<double>();
  const auto any = logs.mean().item<double>();
  CHECK(alone.step(rows).at("loss") == doctest::Approx(-(0.7 * right + 0.3 * any)));
}

TEST_CASE("Features are the inputs of the last layer, for pictures and for rows") {
  Alone alone(config_of("resnet20"), spec_of()), rows(config_of("mlp"), spec_of(false));
  for (const auto& [of, input, size] : {std::tuple(&alone, pictures(4, 1).at("picture"), 64),
                                        std::tuple(&rows, features(4, 1).at("features"), 8)}) {
    const auto seen = of->classifier->describe(input);
    CHECK(seen.at("features").sizes() == at::IntArrayRef({4, size}));
    const auto state = of->classifier->parameters();
    CHECK(torch::allclose(seen.at("logits"), seen.at("features").matmul(state.at("fc.weight").t())
                                                 + state.at("fc.bias")));
  }
}

TEST_CASE("Evaluation counts each row once on any number of replicas") {
  auto dataset = std::make_shared<TensorDataset>(pictures(17, 4));
  auto config = config_of("resnet20");
  auto spec = spec_of();
  spec.validation = dataset;
  const auto evaluate = [&](int replicas, std::int64_t batch) {
    Replicator replicator(make_mirrored_strategy(replicas));
    const auto all = replicator.build<Classifier>([&](ReplicaContext& context) {
      std::shared_ptr<Classifier> made = make_classifier(config, spec);
      made->build(context);
      return made;
    });
    std::vector<Metrics> metrics(static_cast<std::size_t>(replicas));
    replicator.call([&](ReplicaContext& context) {
      metrics[static_cast<std::size_t>(context.local_id())] =
          batch > 0 ? evaluate_classifier(context, all.of(context), *dataset, batch)
                    : all.of(context).evaluate(context);
      return TensorMap{};
    });
    for (const auto& one : metrics)
      CHECK(one == metrics[0]);
    return metrics[0];
  };
  const auto expected = evaluate(1, 17);
  CHECK(expected.at("top5") == 1); // of only three classes
  for (const int replicas : {2, 3})
    for (const auto& [name, value] : evaluate(replicas, replicas == 2 ? 4 : 0))
      CHECK(value == doctest::Approx(expected.at(name)).epsilon(1e-9));
  dataset = std::make_shared<TensorDataset>(pictures(2, 4)); // a replica without rows
  const auto of_two = evaluate(1, 2);
  for (const auto& [name, value] : evaluate(3, 4))
    CHECK(value == doctest::Approx(of_two.at(name)).epsilon(1e-9));
}

TEST_CASE("A classifier learns and is evaluated under every strategy and optimizer") {
  const std::vector<std::pair<std::string, std::string>> runs{
      {"central_storage replicas=2", "sgd"},
      {"parameter_server replicas=2", "sgd"},
      {"sync_groups replicas=4", "adamw"},
      {"backup_workers replicas=3", "rmsprop"},
      {"local_sgd replicas=2 local_steps=4", "sgd"}};
  for (const auto& [strategy, optimizer] : runs) {
    CAPTURE(strategy);
    auto config = config_of("mlp");
    config.optimizer = optimizer;
    config.label_smoothing = 0;
    // With stale gradients, momentum and a large rate let the loss rise again by chance.
    const bool small = optimizer == "adamw" || strategy.starts_with("parameter_server");
    config.learning_rate = small ? 0.01 : 0.05;
    config.schedule = "constant";
    config.average_decay = 0.5;
    auto spec = spec_of(false);
    spec.input = shared_batches([](std::uint64_t step) { return features(24, step % 4); });
    spec.validation = std::make_shared<TensorDataset>(features(40, 99));
    Replicator replicator(make_strategy(parse_strategy(strategy)));
    ReplicaProgram program(replicator, [&] { return make_classifier(config, spec); });
    const auto evaluate = [&] {
      Metrics metrics;
      replicator.call([&](ReplicaContext& context) {
        const auto mine = program.replica(context.local_id()).evaluate(context);
        if (context.replica_id() == 0)
          metrics = mine;
        return TensorMap{};
      });
      return metrics;
    };
    const auto before = evaluate();
    program.run(150);
    const auto after = evaluate();
    CHECK(after.at("loss") < 0.6 * before.at("loss"));
    CHECK(after.at("top1") > 0.75);
  }
}

TEST_CASE("A few pictures are memorised in every precision, from bytes and from floats") {
  for (const auto* precision : {"float32", "bfloat16"}) {
    auto config = config_of("resnet20");
    config.precision = precision;
    config.label_smoothing = 0;
    config.weight_decay = 0;
    config.learning_rate = 0.1;
    const bool bytes = precision == std::string("float32");
    const auto rows = pictures(kBatch, 8, bytes ? at::kByte : at::kFloat);
    Alone alone(config, spec_of());
    const double before = alone.step(rows).at("loss");
    Metrics metrics;
    for (int step = 0; step < 25; ++step)
      metrics = alone.step(rows);
    CHECK(metrics.at("loss") < 0.2 * before);
    CHECK(metrics.at("accuracy") == 1);
    CHECK(metrics.at("gradient_norm") > 0);
  }
}

TEST_CASE("Bytes are normalised as configured in either layout") {
  const PictureNormaliser normalise({0.5, 0.25, 0.1}, {0.2, 0.5, 1}, 3);
  const auto rows = pictures(3, 1).at("picture");
  const auto mean = torch::tensor({0.5, 0.25, 0.1}, at::kDouble).view({1, 3, 1, 1});
  const auto deviation = torch::tensor({0.2, 0.5, 1.0}, at::kDouble).view({1, 3, 1, 1});
  const auto expected = (rows.to(at::kDouble) / 255 - mean) / deviation;
  for (const auto& in : {rows, rows.contiguous()}) {
    CHECK(torch::allclose(normalise(in, at::kDouble), expected, 1e-9, 1e-12));
    CHECK(torch::allclose(normalise(in, at::kFloat).to(at::kDouble), expected, 1e-5, 1e-6));
    CHECK(normalise(in, at::kBFloat16).suggest_memory_format() == in.suggest_memory_format());
  }
  const auto grey = rows.narrow(1, 0, 1).contiguous();
  CHECK(torch::allclose(PictureNormaliser({0.5}, {0.2}, 1)(grey, at::kDouble),
                        expected.narrow(1, 0, 1), 1e-9, 1e-12));
  CHECK_THROWS_AS(PictureNormaliser({0.5, 0.5}, {0.2}, 3), std::invalid_argument);
  CHECK_THROWS_AS(PictureNormaliser({0.5}, {0}, 3), std::invalid_argument);
}

TEST_CASE("NaN and labels out of range are refused by name before a weight changes") {
  Alone alone(config_of("mlp"), spec_of(false));
  const auto before = copy_of(alone.classifier->parameters());
  auto rows = features(4, 1);
  rows.at("features")[2][1] = NAN;
  CHECK_THROWS_WITH_AS(
      alone.step(rows),
      "NaN or infinity in batch tensor \"features\" at update 1: it came from the data set",
      std::runtime_error);
  rows = features(4, 1);
  rows.at("label")[3] = 3;
  CHECK_THROWS_WITH_AS(alone.step(rows), doctest::Contains("label 3 at update 1 is not in [0, 3)"),
                       std::runtime_error);
  rows = features(4, 1);
  rows.at("features") = rows.at("features").to(at::kDouble) * 1e200; // its square overflows
  CHECK_THROWS_AS(alone.step({{"label", rows.at("label")}}), std::invalid_argument);
  CHECK_THROWS_AS(alone.step(rows), std::runtime_error);
  CHECK(same(alone.classifier->parameters(), before, 0));
  CHECK_THROWS_AS(alone.step({{"features", torch::randn({4, 6})}, {"label", rows.at("label")}}),
                  std::invalid_argument);
}

TEST_CASE("An invalid classifier configuration is refused by field, value and rule") {
  const auto of = [](auto&& change) {
    auto config = config_of("resnet20");
    auto spec = spec_of();
    change(config, spec);
    return refusal(config, spec);
  };
  CHECK(of([](auto&, auto&) {}).empty());
  CHECK(of([](auto& c, auto&) { c.learning_rate = -1; }) == "learning_rate -1 must be above 0");
  CHECK(of([](auto& c, auto&) { c.label_smoothing = 1; })
        == "label_smoothing 1 must lie in [0, 1)");
  CHECK(of([](auto& c, auto&) { c.optimizer = "lion"; })
        == "optimizer \"lion\" must be \"sgd\", \"rmsprop\" or \"adamw\"");
  CHECK(of([](auto& c, auto&) { c.model = "resnet19"; }).starts_with("model \"resnet19\" is not"));
  CHECK(of([](auto& c, auto&) {
          c.model = "inception_v3";
        }).starts_with("model \"inception_v3\" takes pictures of 3 channels and at least 299"));
  CHECK(
      of([](auto&, auto& s) { s.features = 4; }).starts_with("model \"resnet20\" takes pictures"));
  CHECK(of([](auto&, auto& s) { s.classes = 1; }) == "classes 1 must be at least 2");
  CHECK(of([](auto& c, auto&) { c.precision = "int8"; }).starts_with("precision \"int8\" must be"));
}

} // namespace troupe::learner
