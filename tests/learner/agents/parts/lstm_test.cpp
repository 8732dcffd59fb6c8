#include "learner/agents/parts/lstm.hpp"

#include "learner/agents/ppo/ppo.hpp"
#include "tests/learner/agents/parts/actor_critic_fixture.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

constexpr std::int64_t kSize = 6;

struct Cells {
  Cells() {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{3});
    lstm.initialise(layout, flat = at::zeros({layout.count()}), generator);
    leaves = leaves_of(layout, flat);
  }
  ParameterLayout layout;
  Lstm lstm{layout, "lstm", 5, kSize};
  at::Tensor flat;
  Leaves leaves;
};

} // namespace

TEST_CASE("The LSTM computes the same as LibTorch's") {
  const Cells cells;
  const at::Tensor x = uniform({3, 7, 5}, 1);
  const at::Tensor state = uniform({3, 2 * kSize}, 2);
  // LibTorch orders the gates as input, forget, cell, output.
  const auto reordered = [](const at::Tensor& shown) {
    const auto parts = shown.chunk(4, 0);
    return at::cat({parts[0], parts[1], parts[3], parts[2]}, 0).contiguous();
  };
  TensorMap shown;
  cells.layout.show(cells.flat, "", shown);
  const std::vector<at::Tensor> weights{
      reordered(shown.at("lstm.inputs.weight")), reordered(shown.at("lstm.recurrent.weight")),
      reordered(shown.at("lstm.inputs.bias")), at::zeros({4 * kSize})};
  const auto parts = state.chunk(2, 1);
  const auto [wanted, hidden, cell] =
      at::lstm(x, {parts[0].unsqueeze(0).contiguous(), parts[1].unsqueeze(0).contiguous()}, weights,
               true, 1, 0, false, false, true);
  const Lstm::Output got = cells.lstm.forward(cells.leaves, x, state);
  CHECK((got.hidden - wanted).abs().max().item<double>() < 1e-6);
  CHECK((got.state - at::cat({hidden[0], cell[0]}, 1)).abs().max().item<double>() < 1e-6);
}

TEST_CASE("The LSTM state is reset where an episode begins") {
  const Cells cells;
  const at::Tensor x = uniform({2, 7, 5}, 1);
  const at::Tensor state = uniform({2, 2 * kSize}, 2);
  at::Tensor first = at::zeros({2, 7}, at::kByte);
  first[1][3] = 1;
  const Lstm::Output got = cells.lstm.forward(cells.leaves, x, state, first);
  const Lstm::Output whole = cells.lstm.forward(cells.leaves, x, state);
  const Lstm::Output later =
      cells.lstm.forward(cells.leaves, x.narrow(1, 3, 4), at::zeros({2, 2 * kSize}));
  CHECK(at::equal(got.hidden[0], whole.hidden[0]));
  CHECK(at::allclose(got.hidden[1].narrow(0, 0, 3), whole.hidden[1].narrow(0, 0, 3)));
  CHECK(at::allclose(got.hidden[1].narrow(0, 3, 4), later.hidden[1]));
  CHECK_FALSE(at::allclose(got.hidden[1].narrow(0, 3, 4), whole.hidden[1].narrow(0, 3, 4)));
}

TEST_CASE("PPO with a memory acts step by step as it learns from a sequence") {
  PpoConfig config;
  config.layers = {8};
  config.lstm = 6;
  config.rollout = kRollout;
  config.batch_size = kLanes;
  config.epochs = config.minibatches = 1;
  Learning learning(make_ppo_agent(config), 4);
  TensorMap batch = learning.batch(1);
  batch["first"].zero_();
  const at::Tensor begun = batch.at(kMemory).select(1, 0).contiguous();
  at::Tensor state = begun.clone();
  std::vector<std::byte*> extras(2 * kLanes);
  at::Tensor stored = at::empty_like(state);
  for (std::int64_t t = 0; t < kRollout; ++t) {
    const at::Tensor seen = batch["observation"].select(1, t).contiguous();
    at::Tensor logarithm = at::empty({kLanes});
    std::vector<float> actions(kLanes);
    std::vector<const std::byte*> frames;
    for (std::int64_t i = 0; i < kLanes; ++i) {
      const auto row = static_cast<std::size_t>(i);
      frames.push_back(bytes_of(seen).data() + row * 5 * sizeof(float));
      extras[row] = reinterpret_cast<std::byte*>(logarithm.mutable_data_ptr<float>() + i);
      extras[kLanes + row] =
          reinterpret_cast<std::byte*>(stored.mutable_data_ptr<float>() + i * 2 * 6);
    }
    const at::Tensor before = state.clone();
    const std::vector<ActingRandom*> randoms(kLanes, &learning.random);
    learning.policy->explore({.frames = frames,
                              .frame_bytes = 5 * sizeof(float),
                              .batch = kLanes,
                              .state = {state.mutable_data_ptr<float>(), kLanes * 2 * 6}},
                             {.random = randoms, .extras = extras}, actions);
    CHECK(at::equal(stored, before));
    CHECK_FALSE(at::equal(state, before));
    batch["action"].select(1, t).copy_(at::tensor(actions).unsqueeze(1));
    batch[kLogProbability].select(1, t).copy_(logarithm);
  }
  // The probability ratio is 1 if the learner's memory equals the policy's.
  CHECK(learning.replica->step_fn(learning.context, batch).at("divergence")
        == doctest::Approx(0).epsilon(1e-6));
  Learning other(make_ppo_agent(config), 4);
  batch[kMemory].zero_();
  CHECK(other.replica->step_fn(other.context, batch).at("divergence") > 1e-7);
  CHECK_THROWS_WITH_AS(
      learning.policy->act(bytes_of(begun), 2, std::span(std::vector<float>(2).data(), 2)),
      doctest::Contains("numbers of state"), std::invalid_argument);
}
