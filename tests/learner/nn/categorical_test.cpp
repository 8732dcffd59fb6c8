#include "tests/doctest_torch.hpp"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>

#include "learner/nn/categorical.hpp"
#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/policy_head.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

using namespace troupe::learner;
using troupe::tests::uniform;

namespace {

/// By definition, atom by atom: the mass of an atom goes to the two neighbours of its image in
/// proportion.
std::vector<double> slow_projection(const Support& s, const std::vector<double>& mass,
                                    double reward, double discount) {
  const double spacing = (s.maximum - s.minimum) / static_cast<double>(s.atoms - 1);
  std::vector<double> out(mass.size(), 0);
  for (std::size_t j = 0; j < mass.size(); ++j) {
    const double atom = s.minimum + spacing * static_cast<double>(j);
    const double moved = std::min(std::max(reward + discount * atom, s.minimum), s.maximum);
    for (std::size_t i = 0; i < mass.size(); ++i) {
      const double here = s.minimum + spacing * static_cast<double>(i);
      out[i] += mass[j] * std::max(0.0, 1 - std::abs(moved - here) / spacing);
    }
  }
  return out;
}

struct Problem {
  Support support;
  at::Tensor target, reward, discount, logits;
};

Problem problem(Support support, double low, double high) {
  return {support, uniform({40, support.atoms}, 1, -3, 3), uniform({40}, 2, low, high),
          uniform({40}, 3, 0, 1), uniform({40, support.atoms}, 4, -3, 3)};
}

} // namespace

TEST_CASE("The projection equals a naive loop and conserves mass, on and beyond the support") {
  for (const Support& support : {Support{51, 0, 100}, Support{51, -150, 150}, Support{2, -1, 3}}) {
    Problem p = problem(support, -200, 200);
    p.reward[0] = 0;
    p.discount[0] = 1; // every atom stays in place
    p.reward[1] = 1e6; // all mass on the last atom
    p.reward[2] = -1e6;
    p.discount[3] = 0; // a termination
    const at::Tensor wide = p.target.to(at::kDouble);
    const at::Tensor projected =
        project(support, wide, p.reward.to(at::kDouble), p.discount.to(at::kDouble));
    const at::Tensor mass = at::softmax(wide, 1).contiguous();
    for (std::int64_t i = 0; i < 40; ++i) {
      const double* row = mass.const_data_ptr<double>() + i * support.atoms;
      const std::vector<double> expected =
          slow_projection(support, {row, row + support.atoms}, p.reward[i].item<double>(),
                          p.discount[i].item<double>());
      double worst = 0;
      for (std::int64_t j = 0; j < support.atoms; ++j)
        worst = std::max(worst, std::abs(projected[i][j].item<double>()
                                         - expected[static_cast<std::size_t>(j)]));
      CHECK(worst < 1e-10);
    }
    CHECK((projected.sum(1) - 1).abs().max().item<double>() < 1e-12);
  }
}

TEST_CASE("The categorical loss and its gradient agree with LibTorch and finite differences") {
  for (const Support& support : {Support{51, 0, 100}, Support{7, -5, 5}}) {
    const Problem p = problem(support, -20, 120);
    Workspace workspace;
    at::Tensor fast = at::empty_like(p.logits);
    const double fast_loss =
        categorical_loss(support, p.target, p.reward, p.discount, 0.5, p.logits, fast, workspace)
            .item<double>();
    const at::Tensor logits = p.logits.to(at::kDouble);
    at::Tensor exact = at::empty_like(logits);
    const auto loss = [&](at::Tensor& gradient) {
      return categorical_loss(support, p.target.to(at::kDouble), p.reward.to(at::kDouble),
                              p.discount.to(at::kDouble), 0.5, logits, gradient, workspace)
          .item<double>();
    };
    const double exact_loss = loss(exact);
    CHECK(fast_loss == doctest::Approx(exact_loss).epsilon(1e-5));
    CHECK((fast - exact).abs().max().item<double>() < 1e-6);
    at::Tensor unused = at::empty_like(logits);
    for (std::int64_t i = 0; i < logits.numel(); i += 11) {
      double& value = logits.mutable_data_ptr<double>()[i];
      const double kept = value;
      value = kept + 1e-5;
      const double above = loss(unused);
      value = kept - 1e-5;
      const double below = loss(unused);
      value = kept;
      CHECK(exact.const_data_ptr<double>()[i]
            == doctest::Approx((above - below) / 2e-5).epsilon(1e-5));
    }
  }
}

TEST_CASE("Row weights scale the loss and the gradient, and a row's own loss ignores its weight") {
  const Support support{51, 0, 100};
  const Problem p = problem(support, -20, 120);
  Workspace workspace;
  const std::int64_t batch = p.logits.size(0);
  const at::Tensor weight = at::rand({batch}) * 2;
  RowLosses rows{.weight = weight, .losses = at::empty({batch})};
  at::Tensor weighted = at::empty_like(p.logits);
  const double loss = categorical_loss(support, p.target, p.reward, p.discount, 1, p.logits,
                                       weighted, workspace, rows)
                          .item<double>();
  at::Tensor plain = at::empty_like(p.logits);
  RowLosses only_losses{.weight = {}, .losses = at::empty({batch})};
  const double mean = categorical_loss(support, p.target, p.reward, p.discount, 1, p.logits, plain,
                                       workspace, only_losses)
                          .item<double>();
  CHECK(at::equal(rows.losses, only_losses.losses));
  CHECK(mean == doctest::Approx(rows.losses.mean().item<double>()).epsilon(1e-5));
  CHECK(loss == doctest::Approx((rows.losses * weight).mean().item<double>()).epsilon(1e-5));
  CHECK((weighted - plain * weight.unsqueeze(1)).abs().max().item<double>() < 1e-7);

  RowLosses exact{.weight = weight.to(at::kDouble), .losses = at::empty({batch}, at::kDouble)};
  const at::Tensor logits = p.logits.to(at::kDouble);
  at::Tensor gradient = at::empty_like(logits);
  const double by_torch =
      categorical_loss(support, p.target.to(at::kDouble), p.reward.to(at::kDouble),
                       p.discount.to(at::kDouble), 1, logits, gradient, workspace, exact)
          .item<double>();
  CHECK(by_torch == doctest::Approx(loss).epsilon(1e-5));
  CHECK((exact.losses - rows.losses).abs().max().item<double>() < 1e-4);
  CHECK((gradient - weighted).abs().max().item<double>() < 1e-6);
}

TEST_CASE("Every kernel table gives the same loss and expected value") {
  const Support support{51, -10, 30};
  const Problem p = problem(support, -5, 5);
  std::vector<double> losses;
  std::vector<double> values;
  at::Tensor scratch = at::empty({200});
  at::Tensor gradient = at::empty_like(p.logits);
  for (const char* name : {"baseline", "avx2", "avx512", "avx512bf16"})
    if (const KernelTable* table = kernel_table(name)) {
      losses.push_back(table->categorical_loss(
          p.target.const_data_ptr<float>(), p.reward.const_data_ptr<float>(),
          p.discount.const_data_ptr<float>(), nullptr, p.logits.const_data_ptr<float>(),
          gradient.mutable_data_ptr<float>(), nullptr, scratch.mutable_data_ptr<float>(), -10, 30,
          1, 40, 51));
      values.push_back(table->expected_value(p.logits.const_data_ptr<float>(),
                                             gradient.mutable_data_ptr<float>(), -10, 30, 40, 51));
    }
  for (std::size_t i = 1; i < losses.size(); ++i) {
    CHECK(losses[i] == doctest::Approx(losses[0]).epsilon(1e-5));
    CHECK(values[i] == doctest::Approx(values[0]).epsilon(1e-5));
  }
}

TEST_CASE("The gradient of the expected value is that of -mean(Q)") {
  const Support support{51, 0, 100};
  const Problem p = problem(support, 0, 1);
  at::Tensor fast = at::empty_like(p.logits);
  const double q = expected_value(support, p.logits, fast).item<double>();
  at::Tensor logits = p.logits.to(at::kDouble);
  at::Tensor exact = at::empty_like(logits);
  CHECK(expected_value(support, logits, exact).item<double>() == doctest::Approx(q).epsilon(1e-5));
  CHECK((fast - exact).abs().max().item<double>() < 1e-5);
  at::Tensor unused = at::empty_like(logits);
  double& value = logits.mutable_data_ptr<double>()[70];
  value += 1e-5;
  const double above = expected_value(support, logits, unused).item<double>();
  value -= 2e-5;
  const double below = expected_value(support, logits, unused).item<double>();
  CHECK(exact.const_data_ptr<double>()[70]
        == doctest::Approx(-(above - below) / 2e-5).epsilon(1e-5));
}

TEST_CASE("The policy head applies tanh, the saturation penalty and the clipping of dQ/da") {
  const at::Tensor raw = uniform({8, 3}, 1, -3, 3).to(at::kDouble);
  const at::Tensor action = raw.tanh();
  at::Tensor into_action = uniform({8, 3}, 2).to(at::kDouble);
  at::Tensor gradient = at::empty_like(raw);
  const HeadReport free = policy_head_backward(raw, action, into_action, 0, 0, gradient);
  CHECK(free.penalty.item<double>() == 0);
  CHECK((gradient - into_action * (1 - action * action)).abs().max().item<double>() < 1e-12);

  at::Tensor with_penalty = at::empty_like(raw);
  const HeadReport report = policy_head_backward(raw, action, into_action, 0, 2, with_penalty);
  const at::Tensor excess = (raw.abs() - 1.5).clamp_min(0);
  CHECK(report.penalty.item<double>()
        == doctest::Approx(2 * excess.square().mean().item<double>()));
  const at::Tensor expected = 2 * 2 * excess * raw.sign() / 24;
  CHECK((with_penalty - gradient - expected).abs().max().item<double>() < 1e-12);
  CHECK(report.saturation.item<double>()
        == doctest::Approx((action.abs() > 0.95).to(at::kDouble).mean().item<double>()));

  at::Tensor clipped = at::empty_like(raw);
  policy_head_backward(raw, action, into_action, 1.5, 0, clipped);
  const at::Tensor norms = (clipped / (1 - action * action)).square().sum(1).sqrt() * 8; // |dQ/da|
  const at::Tensor before = into_action.square().sum(1).sqrt() * 8;
  for (std::int64_t i = 0; i < 8; ++i)
    CHECK(norms[i].item<double>()
          == doctest::Approx(std::min(before[i].item<double>(), 1.5)).epsilon(1e-9));
}
