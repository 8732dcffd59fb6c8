#include "learner/nn/kernels/product_choice.hpp"

#include <cmath>
#include <fstream>

#include "learner/nn/kernels/ops.hpp"
#include "learner/nn/kernels/precision.hpp"
#include "learner/nn/kernels/rounded_product.hpp"
#include "tests/doctest_torch.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::learner;

namespace {

ProductTiming timing(Product product, std::int64_t rows, std::int64_t inputs, std::int64_t outputs,
                     double library, double one_part = 2, double two_parts = 2) {
  return {.product = product,
          .rows = rows,
          .inputs = inputs,
          .outputs = outputs,
          .ours = 1,
          .library = library,
          .one_part = one_part,
          .two_parts = two_parts};
}

/// Uses LibTorch for each of the products.
ProductChoice library_for_all() {
  return ProductChoice({timing(Product::forward, 1, 1, 1, 0.5),
                        timing(Product::weight_gradient, 1, 1, 1, 0.5),
                        timing(Product::input_gradient, 1, 1, 1, 0.5)});
}

/// The results of the three products of a layer.
std::vector<at::Tensor> products(std::int64_t rows, std::int64_t inputs, std::int64_t outputs,
                                 const ProductChoice* choice) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({rows, inputs}), weight = at::randn({inputs + 3, outputs}),
                   bias = at::randn({outputs}), gradient = at::randn({rows, outputs});
  const at::Tensor some = weight.narrow(0, 0, inputs); // as for a layer with an extra input
  at::Tensor y = at::empty({rows, outputs}), of_weight = at::empty({inputs, outputs}),
             of_x = at::empty({rows, inputs});
  Workspace workspace;
  const ProductChoice* before = use_products(choice);
  linear(x, some, bias, y, workspace);
  linear_weight_gradient(x, gradient, of_weight, workspace);
  linear_input_gradient(gradient, some, of_x, workspace);
  use_products(before);
  return {y, of_weight, of_x};
}

} // namespace

TEST_CASE("A shape uses the implementation that was faster for the most similar shape") {
  const ProductChoice choice({timing(Product::forward, 256, 256, 256, 0.5),
                              timing(Product::forward, 256, 256, 1, 2),
                              timing(Product::forward, 1, 256, 256, 2),
                              timing(Product::input_gradient, 256, 256, 256, 0.9)});
  CHECK(choice.prefers_library(Product::forward, 256, 256, 256));
  CHECK(choice.prefers_library(Product::forward, 128, 300, 400));
  CHECK(choice.prefers_library(Product::forward, 100'000, 5000, 5000));
  CHECK(!choice.prefers_library(Product::forward, 256, 256, 6));
  CHECK(!choice.prefers_library(Product::forward, 2, 256, 256));
  CHECK(choice.prefers_library(Product::input_gradient, 1, 1, 1));
  CHECK(!choice.prefers_library(Product::weight_gradient, 256, 256, 256)); // was not measured
  CHECK(!ProductChoice().prefers_library(Product::forward, 256, 256, 256));
}

TEST_CASE("A layer uses bfloat16 where its three products together are faster in it") {
  const auto choice = [](double forward, double weight, double input) {
    return ProductChoice({timing(Product::forward, 256, 256, 256, 0.5, forward),
                          timing(Product::weight_gradient, 256, 256, 256, 2, weight),
                          timing(Product::input_gradient, 256, 256, 256, 2, input),
                          timing(Product::forward, 16, 256, 256, 2, 9)});
  };
  CHECK(choice(0.4, 0.9, 1.1).prefers(Rounding::one_part, 256, 256, 256)); // 2.4 beside 0.5 + 1 + 1
  CHECK(choice(0.7, 0.7, 1).prefers(Rounding::one_part, 200, 300, 256));
  CHECK(!choice(0.4, 1.5, 1).prefers(Rounding::one_part, 256, 256, 256));
  CHECK(!choice(0.4, 0.9, 1.1).prefers(Rounding::one_part, 16, 256, 256));
  CHECK(!ProductChoice().prefers(Rounding::one_part, 256, 256, 256));

  const ProductChoice fast = choice(0.1, 0.1, 0.1);
  const ProductChoice* before = use_products(&fast);
  CHECK(rounding_is_faster(Rounding::one_part, 256, 256, 256));
  CHECK(!rounding_is_faster(Rounding::one_part, 16, 1000, 1000));
  use_products(nullptr); // the rule
  CHECK(rounding_is_faster(Rounding::one_part, 16, 1000, 1000));
  CHECK(!rounding_is_faster(Rounding::one_part, 64, 64, 64));
  use_products(before);
}

TEST_CASE("Both implementations compute the same products") {
  const ProductChoice library = library_for_all();
  const int threads = at::get_num_threads();
  for (const int used : {1, 2}) {
    at::set_num_threads(used);
    for (const auto& [rows, inputs, outputs] :
         {std::tuple{1, 24, 7}, {100, 64, 1}, {255, 130, 129}}) {
      const auto ours = products(rows, inputs, outputs, nullptr);
      const auto theirs = products(rows, inputs, outputs, &library);
      for (std::size_t i = 0; i < ours.size(); ++i) {
        CAPTURE(i);
        CHECK(at::allclose(ours[i], theirs[i], 1e-4, 1e-4));
      }
    }
  }
  at::set_num_threads(threads);
}

TEST_CASE("Products with AMX equal those of factors rounded to one or two parts, with any number "
          "of threads") {
  if (!multiplies_rounded()) {
    MESSAGE("skipped: no AMX here");
    return;
  }
  const int threads = at::get_num_threads();
  for (const Rounding rounding : {Rounding::one_part, Rounding::two_parts})
    for (const auto& [rows, inputs, outputs] : {std::tuple{1, 1, 1},
                                                {33, 65, 47},
                                                {100, 64, 1},
                                                {256, 23, 256},
                                                {40, 180, 20},
                                                {300, 260, 300}}) {
      CAPTURE(rounding);
      CAPTURE(rows);
      CAPTURE(inputs);
      const auto product = [&](const at::Tensor& a, const at::Tensor& b) {
        const auto parts = [](const at::Tensor& t) {
          const at::Tensor first = t.to(at::kBFloat16).to(at::kDouble);
          return std::pair{first, (t - first).to(at::kBFloat16).to(at::kDouble)};
        };
        const auto [a_first, a_rest] = parts(a);
        const auto [b_first, b_rest] = parts(b);
        const at::Tensor first = at::mm(a_first, b_first);
        return rounding == Rounding::one_part
                   ? first
                   : first + at::mm(a_first, b_rest) + at::mm(a_rest, b_first);
      };
      const at::Tensor x = at::randn({rows, inputs}), whole = at::randn({inputs + 3, outputs}),
                       bias = at::randn({outputs}), gradient = at::randn({rows, outputs});
      const at::Tensor weight = whole.narrow(0, 0, inputs); // as for a layer with an extra input
      std::vector<at::Tensor> before;
      for (const int used : {1, 2}) {
        at::set_num_threads(used);
        at::Tensor y = at::full({rows, outputs}, NAN), of_weight = at::full({inputs, outputs}, NAN),
                   of_x = at::full({rows, inputs}, NAN);
        Workspace workspace;
        RoundedWeight packed(weight, Halves(weight, rounding));
        rounded_linear(x, packed, bias, y);
        rounded_weight_gradient(x, gradient, rounding, of_weight, workspace);
        rounded_input_gradient(gradient, packed, of_x);
        const auto close = [](const at::Tensor& found, const at::Tensor& wanted) {
          return at::allclose(found.to(at::kDouble), wanted, 1e-5, 1e-4);
        };
        CHECK(close(y, product(x, weight) + bias));
        CHECK(close(of_weight, product(x.t(), gradient)));
        CHECK(close(of_x, product(gradient, weight.t())));
        at::Tensor of_first = at::full({rows, (inputs + 1) / 2}, NAN);
        rounded_input_gradient(gradient, packed, of_first);
        CHECK(at::equal(of_first, of_x.narrow(1, 0, of_first.size(1))));
        if (!before.empty())
          CHECK((at::equal(y, before[0]) && at::equal(of_weight, before[1])
                 && at::equal(of_x, before[2])));
        before = {y, of_weight, of_x};
      }
    }
  at::set_num_threads(threads);
}

TEST_CASE("Products of two parts have hundreds of times smaller errors than those of one") {
  if (!multiplies_rounded()) {
    MESSAGE("skipped: no AMX here");
    return;
  }
  const at::Tensor x = at::randn({200, 256}), weight = at::randn({256, 128}),
                   bias = at::zeros({128});
  const at::Tensor exact = at::mm(x.to(at::kDouble), weight.to(at::kDouble));
  const auto error = [&](Rounding rounding) {
    at::Tensor y = at::empty({200, 128});
    RoundedWeight packed(weight, Halves(weight, rounding));
    rounded_linear(x, packed, bias, y);
    return ((y - exact).norm() / exact.norm()).item<double>();
  };
  const double coarse = error(Rounding::one_part), fine = error(Rounding::two_parts);
  CHECK(coarse < 1.0 / 256);
  CHECK(fine < 1.0 / 131072);
  CHECK(fine < coarse / 200);
}

TEST_CASE("Two parts need AMX") {
  const at::Tensor weight = at::ones({40, 40});
  const bool amx = use_amx(false);
  CHECK(Halves(weight, Rounding::one_part).flat().defined());
  CHECK_FALSE(Halves(weight, Rounding::two_parts).defined());
  CHECK(choose_rounding("bfloat16x3", at::kCPU) == Rounding::none);
  CHECK(choose_rounding("auto", at::kCPU) == Rounding::none);
  use_amx(amx);
  CHECK_FALSE(Halves(weight, Rounding::none).defined());
  CHECK(choose_rounding("bfloat16", at::kCPU) == Rounding::one_part);
  CHECK(choose_rounding("float32", at::kCPU) == Rounding::none);
  CHECK(choose_rounding("bfloat16x3", at::kCUDA) == Rounding::none);
  const Rounding with_amx = multiplies_rounded() ? Rounding::two_parts : Rounding::none;
  CHECK(choose_rounding("bfloat16x3", at::kCPU) == with_amx);
  CHECK(choose_rounding("auto", at::kCPU) == with_amx);
}

TEST_CASE("A weight is packed for AMX once per edition") {
  if (!multiplies_rounded()) {
    MESSAGE("skipped: no AMX here");
    return;
  }
  at::Tensor weight = at::ones({40, 40});
  Halves halves(weight, Rounding::one_part);
  RoundedWeight packed(weight, halves);
  const auto product = [&] {
    at::Tensor forward = at::empty({1, 40}), backward = at::empty({1, 40});
    rounded_linear(at::ones({1, 40}), packed, at::zeros({40}), forward);
    rounded_input_gradient(at::ones({1, 40}), packed, backward);
    return std::pair{forward[0][0].item<float>(), backward[0][0].item<float>()};
  };
  CHECK(product() == std::pair{40.0f, 40.0f});
  weight.fill_(2);
  CHECK(product() == std::pair{40.0f, 40.0f});
  halves.refresh(weight);
  CHECK(product() == std::pair{80.0f, 80.0f});
}

TEST_CASE("Timings are measured once per kind of machine, and again if the file is damaged") {
  const TemporaryFolder folder;
  const auto file = folder / "cache" / "products.txt";
  const ProductChoice measured = ProductChoice::load(file);
  REQUIRE(!measured.timings().empty());
  for (const ProductTiming& t : measured.timings()) {
    CHECK(t.ours > 0);
    CHECK(t.library > 0);
    CHECK(t.one_part > 0);
    CHECK(t.two_parts > 0);
  }
  const std::string text = read_text(file);
  const ProductChoice read = ProductChoice::load(file);
  CHECK(read_text(file) == text);
  REQUIRE(read.timings().size() == measured.timings().size());
  for (std::size_t i = 0; i < read.timings().size(); ++i) {
    CHECK(read.timings()[i].outputs == measured.timings()[i].outputs);
    CHECK(read.timings()[i].ours == doctest::Approx(measured.timings()[i].ours).epsilon(1e-3));
  }
  for (const std::string& damaged :
       {std::string(), text.substr(0, text.size() / 2), "another library\n" + text,
        text.substr(0, text.find('\n') + 1) + "forward 1 24 256 -1 nan\n"}) {
    std::ofstream(file) << damaged;
    CHECK(ProductChoice::load(file).timings().size() == measured.timings().size());
    CHECK(read_text(file) != damaged);
  }
}

TEST_CASE("Timings that cannot be saved are measured by each process") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "no folder";
  CHECK(!ProductChoice::load(folder / "file" / "products.txt").timings().empty());
  CHECK(!ProductChoice::load({}).timings().empty());
}
