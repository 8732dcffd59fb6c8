#include "tests/doctest_torch.hpp"

#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/ops.hpp"
#include "learner/nn/squashed_gaussian.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

using namespace troupe::learner;
using troupe::tests::uniform;

namespace {

constexpr std::int64_t kLossRows = 6;

float* first_of(const at::Tensor& tensor) {
  return tensor.mutable_data_ptr<float>();
}

/// Calls check(table, n) for each kernel table of this processor and several lengths of a row.
template <class F>
void for_tables(F&& check) {
  for (const char* name : {"avx512bf16", "avx512", "avx2", "baseline"})
    for (const std::int64_t n : {1, 6, 16, 53})
      if (const KernelTable* table = kernel_table(name)) {
        CAPTURE(name);
        CAPTURE(n);
        check(*table, n);
      }
}

/// [kLossRows, n], a view of a wider tensor.
at::Tensor some_rows(std::int64_t n, std::uint64_t seed) {
  return uniform({kLossRows, n + 5}, seed).narrow(1, 2, n);
}

bool is_near(const at::Tensor& a, const at::Tensor& b, double tolerance) {
  return at::allclose(a.to(at::kDouble), b.to(at::kDouble), tolerance, tolerance);
}

} // namespace

TEST_CASE("Every kernel table has the derivative of a weighted squared error") {
  for_tables([](const KernelTable& table, std::int64_t n) {
    const at::Tensor x = some_rows(n, 1), target = some_rows(n, 2),
                     weight = uniform({kLossRows}, 3);
    const at::Tensor gradient = some_rows(n, 4), losses = at::empty({kLossRows});
    const at::Tensor outside = gradient.as_strided({kLossRows}, {n + 5}, 0).clone();
    table.squared_error(first_of(x), n + 5, first_of(target), n + 5, first_of(weight), 0.3F,
                        first_of(gradient), n + 5, first_of(losses), kLossRows, n);
    const at::Tensor error = (x - target).to(at::kDouble);
    CHECK(is_near(losses, error.square().sum(1), 1e-5));
    CHECK(is_near(gradient, 0.6 * error * weight.unsqueeze(1), 1e-5));
    CHECK(at::equal(gradient.as_strided({kLossRows}, {n + 5}, 0), outside));
  });
}

TEST_CASE("Every kernel table has the derivative of a weighted cross entropy") {
  for_tables([](const KernelTable& table, std::int64_t n) {
    const at::Tensor logits = some_rows(n, 1) * 6, weight = uniform({kLossRows}, 3);
    const at::Tensor wanted = uniform({kLossRows, n}, 2).softmax(1);
    const at::Tensor gradient = some_rows(n, 4), losses = at::empty({kLossRows});
    table.softmax_error(first_of(logits), logits.stride(0), first_of(wanted), first_of(weight),
                        0.3F, first_of(gradient), n + 5, first_of(losses), kLossRows, n);
    const at::Tensor logarithms = logits.to(at::kDouble).log_softmax(1);
    CHECK(is_near(losses, -(logarithms * wanted).sum(1), 1e-5));
    CHECK(is_near(gradient, 0.3 * (logarithms.exp() - wanted) * weight.unsqueeze(1), 1e-5));
  });
}

TEST_CASE("Every kernel table scales rows to length 1 and returns the gradient through that") {
  for_tables([](const KernelTable& table, std::int64_t n) {
    const at::Tensor x = some_rows(n, 1);
    x[2].zero_();
    const at::Tensor half = at::empty({kLossRows, n}, at::kBFloat16);
    const at::Tensor lengths = at::empty({kLossRows});
    table.unit_rows(first_of(x), n + 5, halves_at(half), first_of(lengths), kLossRows, n);
    const at::Tensor length = x.to(at::kDouble).norm(2, {1}, true).clamp_min(1e-8);
    const at::Tensor unit = x / length;
    CHECK(is_near(lengths, length.squeeze(1), 1e-5));
    CHECK(is_near(half, unit, 4e-3));
    const at::Tensor of_half = uniform({kLossRows, n}, 5).to(at::kBFloat16);
    of_half[2].zero_(); // a row of zeros has no derivative
    const at::Tensor gradient = some_rows(n, 6), before = gradient.clone();
    table.unit_rows_backward(halves_at(of_half), first_of(x), n + 5, first_of(lengths),
                             first_of(gradient), n + 5, kLossRows, n);
    const at::Tensor d = of_half.to(at::kDouble);
    CHECK(is_near(gradient, before + (d - unit * (d * unit).sum(1, true)) / length, 1e-4));
  });
}

TEST_CASE("Every kernel table contrasts the right column with the others") {
  for_tables([](const KernelTable& table, std::int64_t n) {
    const at::Tensor logits = uniform({kLossRows, n}, 1).to(at::kBFloat16);
    const at::Tensor weight = uniform({kLossRows}, 3);
    const at::Tensor scratch = at::empty({n}), losses = at::empty({kLossRows});
    const at::Tensor logarithms = (logits.to(at::kDouble) * 9).log_softmax(1);
    const at::Tensor right = at::arange(kLossRows).remainder(n).unsqueeze(1);
    const at::Tensor wanted = at::zeros_like(logarithms).scatter(1, right, 1);
    table.contrast(halves_at(logits), 9, first_of(weight), first_of(scratch), first_of(losses),
                   kLossRows, n);
    CHECK(is_near(losses, -(logarithms * wanted).sum(1), 1e-4));
    CHECK(is_near(logits, (logarithms.exp() - wanted) * weight.unsqueeze(1), 8e-3));
  });
}

TEST_CASE("Every kernel table samples squashed Gaussians and returns the gradient as in float64") {
  for_tables([](const KernelTable& table, std::int64_t n) {
    const at::Tensor raw = uniform({kLossRows, 2 * n}, 1, -4, 4);
    raw[1].narrow(0, n, n).fill_(2.5); // above the bound of the log standard deviation
    raw[2].narrow(0, n, n).fill_(-30); // below
    raw[3].narrow(0, 0, n).fill_(-40); // tanh saturates
    const at::Tensor noise = uniform({kLossRows, n}, 2, -3, 3);
    const at::Tensor slope = uniform({kLossRows, n}, 3);
    const at::Tensor action = at::empty({kLossRows, n}), log_probability = at::empty({kLossRows});
    table.squashed_sample(first_of(raw), first_of(noise), first_of(action),
                          first_of(log_probability), kLossRows, n);
    const auto exact = squashed_sample(raw.to(at::kDouble), noise.to(at::kDouble));
    CHECK(is_near(action, exact.action, 1e-6));
    CHECK(is_near(log_probability, exact.log_probability, 1e-5));

    const at::Tensor gradient = at::empty_like(raw);
    table.squashed_gradient(first_of(raw), first_of(noise), first_of(action), first_of(slope),
                            0.05F, first_of(gradient), kLossRows, n);
    CHECK(is_near(gradient,
                  squashed_gradient(raw.to(at::kDouble), noise.to(at::kDouble),
                                    action.to(at::kDouble), slope.to(at::kDouble),
                                    at::scalar_tensor(0.1, at::kDouble), 0.5),
                  1e-5));
  });
}

TEST_CASE("Every kernel table multiplies a matrix by a column from both sides") {
  for_tables([](const KernelTable& table, std::int64_t n) {
    const at::Tensor x = uniform({kLossRows, n}, 1), column = uniform({n}, 2),
                     bias = uniform({1}, 3), weight = uniform({kLossRows}, 4);
    const at::Tensor product = at::empty({kLossRows}), sums = at::empty({n});
    table.column_product(first_of(x), first_of(column), first_of(bias), first_of(product),
                         kLossRows, n);
    table.weighted_sum(first_of(x), first_of(weight), first_of(sums), kLossRows, n);
    const at::Tensor exact = x.to(at::kDouble);
    CHECK(is_near(product, exact.mv(column.to(at::kDouble)) + bias.to(at::kDouble), 1e-5));
    CHECK(is_near(sums, exact.t().mv(weight.to(at::kDouble)), 1e-5));
  });
}
