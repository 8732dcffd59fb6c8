#include "tests/doctest_torch.hpp"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>

#include "learner/gradients/update_rule.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

std::vector<Variant> variants() {
  D4pgConfig pixels = small_config();
  pixels.encoder_channels = 8;
  pixels.feature_size = 12;
  D4pgConfig drq = pixels;
  drq.encoder = "drq";
  drq.precision = "bfloat16";
  D4pgConfig wide = small_config();
  wide.precision = "float64";
  D4pgConfig wide_pixels = pixels;
  wide_pixels.precision = "float64";
  D4pgConfig plain = small_config();
  plain.layer_norm = false;
  return {{"states", small_config(), state_spec(7, 2)},
          {"states without LayerNorm", plain, state_spec(7, 2)},
          {"states in float64", wide, state_spec(7, 2)},
          {"pixels", pixels, pixel_spec(40, 3, 2)},
          {"pixels in float64", wide_pixels, pixel_spec(40, 3, 2)},
          {"drq pixels in bfloat16", drq, pixel_spec(30, 3, 2)}};
}

/// Adds 1 to every parameter at each update, and reports that `advanced` updates were made
/// meanwhile.
class Ahead : public UpdateRule {
public:
  explicit Ahead(std::int64_t advanced) : updates_applied_(advanced) {}
  void begin(torch::optim::Optimizer&, const std::vector<at::Tensor>& parameters) override {
    parameters_ = parameters;
  }
  void update() override {
    const at::NoGradGuard guard;
    for (auto& parameter : parameters_)
      parameter.add_(1);
  }
  std::int64_t updates_applied() const override { return updates_applied_; }

private:
  std::int64_t updates_applied_;
  std::vector<at::Tensor> parameters_;
};

} // namespace

TEST_CASE("Targets follow every update of the parameters, also those of other replicas") {
  const auto spec = state_spec(7, 2);
  struct Case {
    std::int64_t advanced;
    int period;
    double weight; // of the parameters in the targets, after two steps of 1 each
  };
  // Each step moves the parameters by 1. With k target updates due, the targets then move by the
  // share 1 - 0.75^k.
  for (const Case& c : {Case{.advanced = 1, .period = 1, .weight = 0.75 * 0.25 + 0.25 * 2},
                        Case{.advanced = 2, .period = 1, .weight = 0.5625 * 0.4375 + 0.4375 * 2},
                        Case{.advanced = 3, .period = 2, .weight = 0.5625 * 0.25 + 0.4375 * 2},
                        Case{.advanced = 0, .period = 1, .weight = 0},
                        Case{.advanced = 1, .period = 4, .weight = 0}}) {
    CAPTURE(c.advanced);
    CAPTURE(c.period);
    D4pgConfig config = small_config();
    config.precision = "float64";
    config.target_update = 0.25;
    config.target_period = c.period;
    ReplicaContext context(
        ReplicaAssignment{.update_rule = [&](int) { return std::make_unique<Ahead>(c.advanced); }});
    const auto replica = built(config, spec, context);
    const TensorMap before = copied(replica->parameters());
    for (std::uint64_t i = 0; i < 2; ++i)
      replica->step_fn(context, random_batch(spec, 6, i));
    for (const auto& [name, tensor] : replica->parameters()) {
      const bool is_target = has(name, "target.");
      CAPTURE(name);
      CHECK(at::allclose(tensor, before.at(name) + (is_target ? c.weight : 2), 1e-9, 1e-9));
    }
  }
}

TEST_CASE("Rows of weight 1 learn as without weights, and priorities are the losses of the rows") {
  for (const Variant& v : variants()) {
    CAPTURE(v.name);
    ReplicaContext context(nullptr, 3);
    const auto plain = built(v.config, v.spec, context);
    const auto weighted = built(v.config, v.spec, context);
    const auto other = built(v.config, v.spec, context);
    for (int i = 0; i < 3; ++i) {
      TensorMap batch = random_batch(v.spec, 6, 10 + static_cast<std::uint64_t>(i));
      const double loss = plain->step_fn(context, batch).at("critic_loss");
      CHECK_FALSE(plain->priorities().defined());
      batch["weight"] = at::ones({6});
      CHECK(weighted->step_fn(context, batch).at("critic_loss") == loss);
      const at::Tensor priorities = weighted->priorities();
      REQUIRE(priorities.dim() == 1);
      REQUIRE(priorities.numel() == 6);
      CHECK((priorities.scalar_type() == at::kDouble));
      CHECK(priorities.min().item<double>() >= 0);
      CHECK(priorities.mean().item<double>() == doctest::Approx(loss).epsilon(1e-5));
      batch["weight"] = uniform({6}, 5, 0, 1);
      CHECK(other->step_fn(context, batch).at("critic_loss") < loss);
      if (i == 0)
        CHECK(at::allclose(other->priorities(), priorities, 1e-5, 1e-6));
    }
    CHECK(equal(plain->parameters(), weighted->parameters()));
    CHECK_FALSE(equal(plain->parameters(), other->parameters()));
    TensorMap batch = random_batch(v.spec, 6, 10);
    batch["weight"] = at::ones({5});
    CHECK(has(error_of([&] { plain->step_fn(context, batch); }), "'weight'"));
  }
}

TEST_CASE("Steps move every parameter and report finite metrics for every kind of network") {
  for (const Variant& v : variants()) {
    CAPTURE(v.name);
    ReplicaContext context(nullptr, 3);
    const auto replica = built(v.config, v.spec, context);
    const TensorMap before = copied(replica->parameters());
    Metrics metrics;
    for (std::uint64_t i = 0; i < 3; ++i)
      metrics = replica->step_fn(context, random_batch(v.spec, 12, 10 * i));
    for (const char* name :
         {"critic_loss", "policy_loss", "q_mean", "saturation", "gradient_norm"}) {
      CAPTURE(std::string(name));
      REQUIRE(metrics.count(name) == 1);
      CHECK(std::isfinite(metrics[name]));
    }
    CHECK(metrics["gradient_norm"] > 0);
    for (const auto& [name, tensor] : replica->parameters()) {
      CAPTURE(name);
      if (v.config.precision != "bfloat16") // there, a small step may be rounded away in a target
        CHECK_FALSE(at::equal(tensor, before.at(name)));
    }
  }
}

TEST_CASE("Parameters have PyTorch's shapes and readable names") {
  const Variant v = variants()[3];
  ReplicaContext context(nullptr, 3);
  const auto replica = built(v.config, v.spec, context);
  const TensorMap parameters = replica->parameters();
  const TensorMap state = replica->optimizer_state();
  CHECK(parameters.at("encoder.conv0.weight").sizes() == at::IntArrayRef({8, 3, 4, 4}));
  CHECK(parameters.at("encoder.conv1.weight").sizes() == at::IntArrayRef({8, 8, 3, 3}));
  CHECK(parameters.at("critic.trunk.norm.weight").sizes() == at::IntArrayRef({12}));
  CHECK(parameters.at("critic.layer0.weight").sizes() == at::IntArrayRef({28, 14}));
  CHECK(parameters.at("target.policy.output.weight").sizes() == at::IntArrayRef({2, 20}));
  CHECK(state.at("adam.exp_avg.critic.layer0.weight").sizes() == at::IntArrayRef({28, 14}));
  CHECK(state.count("counters.updates") == 1);
  CHECK(state.count("random.state") == 1);
}

TEST_CASE("A saved and loaded learner makes the same next ten updates bit for bit") {
  for (const Variant& v : variants()) {
    CAPTURE(v.name);
    ReplicaContext context(nullptr, 3);
    const auto first = built(v.config, v.spec, context);
    for (std::uint64_t i = 0; i < 5; ++i)
      first->step_fn(context, random_batch(v.spec, 12, 10 * i));
    ReplicaContext other(nullptr, 77);
    const auto second = built(v.config, v.spec, other);
    CHECK_FALSE(equal(first->parameters(), second->parameters()));
    second->load(copied(first->parameters()), copied(first->optimizer_state()));
    for (std::uint64_t i = 5; i < 15; ++i) {
      const TensorMap batch = random_batch(v.spec, 12, 10 * i);
      CHECK(first->step_fn(context, batch) == second->step_fn(other, batch));
    }
    CHECK(equal(first->parameters(), second->parameters()));
    CHECK(equal(first->optimizer_state(), second->optimizer_state()));
  }
}

TEST_CASE("Loading a state that does not fit names the differences and changes nothing") {
  ReplicaContext context(nullptr, 3);
  const auto replica = built(small_config(), state_spec(7, 2), context);
  const TensorMap before = copied(replica->parameters());
  TensorMap parameters = copied(before);
  for (auto& [name, tensor] : parameters)
    tensor.add_(1);
  parameters.erase("critic.layer0.bias");
  parameters["critic.layer9.bias"] = at::zeros({2});
  parameters["policy.output.weight"] = at::zeros({2, 21});
  const std::string error =
      error_of([&] { replica->load(parameters, replica->optimizer_state()); });
  CHECK(has(error, "critic.layer0.bias Float[28] is missing"));
  CHECK(has(error, "critic.layer9.bias Float[2] is not part of it"));
  CHECK(has(error, "policy.output.weight"));
  CHECK(equal(before, replica->parameters()));
  CHECK(has(error_of([&] { replica->load(before, {}); }), "is missing"));
}

TEST_CASE("Targets move by their share at each period") {
  for (const Variant& v : {variants()[0], variants()[3]}) {
    CAPTURE(v.name);
    D4pgConfig config = v.config;
    config.target_update = 0.25;
    config.target_period = 2;
    ReplicaContext context(nullptr, 3);
    const auto replica = built(config, v.spec, context);
    const TensorMap start = copied(replica->parameters());
    for (const auto& [name, tensor] : start)
      if (start.count("target." + name) == 1)
        CHECK(at::equal(tensor, start.at("target." + name)));
    replica->step_fn(context, random_batch(v.spec, 8, 1));
    for (const auto& [name, tensor] : replica->parameters())
      if (name.rfind("target.", 0) == 0)
        CHECK(at::equal(tensor, start.at(name)));
    replica->step_fn(context, random_batch(v.spec, 8, 2));
    const TensorMap after = replica->parameters();
    for (const auto& [name, tensor] : after)
      if (name.rfind("target.", 0) == 0) {
        CAPTURE(name);
        const at::Tensor expected =
            start.at(name) + 0.25 * (after.at(name.substr(7)) - start.at(name));
        CHECK((tensor - expected).abs().max().item<double>() < 1e-6);
      }
  }
}

TEST_CASE("NaN or infinity in any tensor of a batch stops the update and is named") {
  ReplicaContext context(nullptr, 3);
  const replay::TransitionSpec spec = state_spec(7, 2);
  const auto replica = built(small_config(), spec, context);
  replica->step_fn(context, random_batch(spec, 8, 1));
  const TensorMap before = copied(replica->parameters());
  for (const char* name : {"observation", "next_observation", "action", "reward", "discount"})
    for (const float bad : {NAN, INFINITY}) {
      TensorMap batch = random_batch(spec, 8, 2);
      batch[name].view({-1})[3] = bad;
      const std::string error = error_of([&] { replica->step_fn(context, batch); });
      CHECK(has(error, std::string("'") + name + "'"));
      CHECK(has(error, "update 2"));
    }
  CHECK(equal(before, replica->parameters()));
}

TEST_CASE("A NaN among the parameters is found and named at the next loss") {
  ReplicaContext context(nullptr, 3);
  const replay::TransitionSpec spec = state_spec(7, 2);
  const auto replica = built(small_config(), spec, context);
  at::Tensor weight = replica->parameters().at("critic.layer1.weight");
  weight[0][0] = NAN;
  const std::string error = error_of([&] { replica->step_fn(context, random_batch(spec, 8, 2)); });
  CHECK(has(error, "critic.layer1.weight"));
  CHECK(has(error, "update 1"));
}

TEST_CASE(
    "A batch with a missing tensor or another shape or type is refused by the tensor's name") {
  ReplicaContext context(nullptr, 3);
  const replay::TransitionSpec spec = state_spec(7, 2);
  const auto replica = built(small_config(), spec, context);
  TensorMap batch = random_batch(spec, 8, 2);
  batch["action"] = at::zeros({8, 3});
  CHECK(has(error_of([&] { replica->step_fn(context, batch); }),
            "'action' is Float[8, 3]; it must be dense Float [batch] + [2]"));
  batch = random_batch(spec, 8, 2);
  batch.erase("reward");
  CHECK(has(error_of([&] { replica->step_fn(context, batch); }), "'reward'"));
  batch = random_batch(spec, 8, 2);
  batch["observation"] = batch["observation"].to(at::kDouble);
  CHECK(has(error_of([&] { replica->step_fn(context, batch); }), "'observation'"));
}

TEST_CASE("The acting policy equals the learner's policy, for one observation and for a batch") {
  for (const Variant& v : variants()) {
    CAPTURE(v.name);
    if (v.config.precision == "bfloat16")
      continue; // the learner rounds there
    D4pgConfig config = v.config;
    config.shift_pixels = 0; // as when acting
    config.policy_learning_rate = 1e-30;
    config.critic_learning_rate = 1e-30;
    ReplicaContext context(nullptr, 3);
    const auto replica = built(config, v.spec, context);
    const TensorMap batch = random_batch(v.spec, 9, 1);
    const at::Tensor together = act(*replica, config, v.spec, batch.at("observation"));
    for (std::int64_t i = 0; i < 9; ++i)
      CHECK((act(*replica, config, v.spec, batch.at("observation").narrow(0, i, 1)) - together[i])
                .abs()
                .max()
                .item<double>()
            < 1e-6);
    CHECK(together.abs().max().item<double>() < 1);
    // The saturation penalty uses the learner's own actions, here of a policy at the bounds.
    for (const char* name : {"policy.output.bias", "target.policy.output.bias"}) {
      at::Tensor bias = replica->parameters().at(name); // of states the averaged one is published
      bias.fill_(1.6);
    }
    const at::Tensor moved = act(*replica, config, v.spec, batch.at("observation"));
    const double share = (moved.abs() > 0.95).to(at::kDouble).mean().item<double>();
    const Metrics metrics = replica->step_fn(context, batch);
    CHECK(metrics.at("saturation") == doctest::Approx(share));
    CHECK(metrics.at("policy_loss") + metrics.at("q_mean")
          == doctest::Approx((moved.to(at::kDouble).atanh().abs() - 1.5)
                                 .clamp_min(0)
                                 .square()
                                 .mean()
                                 .item<double>())
                 .epsilon(1e-3));
  }
}

TEST_CASE("The acting policy refuses wrong parameter counts, NaN and wrong sizes") {
  const replay::TransitionSpec spec = state_spec(7, 2);
  const auto policy = make_d4pg_agent(small_config())->make_policy(spec);
  std::vector<float> parameters(static_cast<std::size_t>(policy->parameter_count()), 0.1f);
  policy->load(parameters);
  parameters.push_back(0);
  CHECK_THROWS_AS(policy->load(parameters), std::invalid_argument);
  parameters.pop_back();
  parameters[5] = NAN;
  CHECK_THROWS_AS(policy->load(parameters), std::invalid_argument);
  at::Tensor observation = at::zeros({2, 7});
  std::vector<float> actions(4);
  policy->act(bytes_of(observation), 2, actions);
  CHECK_THROWS_AS(policy->act(bytes_of(observation), 3, actions), std::invalid_argument);
  CHECK_THROWS_AS(policy->act(bytes_of(observation), 2, std::span(actions).first(3)),
                  std::invalid_argument);
  observation[1][2] = NAN;
  CHECK_THROWS_AS(policy->act(bytes_of(observation), 2, actions), std::runtime_error);
}

TEST_CASE("The acting policy reads stacked frames from any addresses") {
  const replay::TransitionSpec spec = pixel_spec(40, 3, 2);
  const auto policy = make_d4pg_agent(small_config())->make_policy(spec);
  at::manual_seed(3);
  const at::Tensor parameters = at::randn({policy->parameter_count()}) * 0.05;
  policy->load(
      {parameters.const_data_ptr<float>(), static_cast<std::size_t>(policy->parameter_count())});
  const at::Tensor observation = at::randint(0, 256, {2, 3, 40, 40}, at::kByte);
  std::vector<float> whole(4), actions(4);
  policy->act(bytes_of(observation), 2, whole);
  std::vector<std::vector<std::byte>> frames;
  std::vector<const std::byte*> places;
  for (std::int64_t frame = 0; frame < 6; ++frame) {
    const auto bytes = bytes_of(observation[frame / 3][frame % 3]);
    frames.emplace_back(bytes.begin(), bytes.end());
    places.push_back(frames.back().data());
  }
  policy->act({places, 40 * 40, 2}, actions);
  CHECK(actions == whole);
  CHECK(whole[0] != whole[2]);
}

TEST_CASE("Pictures too small for the encoder and unknown encoders are refused") {
  const auto refusal = [](const D4pgConfig& config, std::int64_t size) {
    return error_of([&] { make_d4pg_agent(config)->make_replica(pixel_spec(size, 3, 2)); });
  };
  CHECK(has(refusal({}, 10), "must have at least"));
  D4pgConfig unknown;
  unknown.encoder = "resnet";
  CHECK(has(refusal(unknown, 64), "d4pg.encoder"));
}
