#include <torch/types.h>

#include "tests/doctest_torch.hpp"

#include "collectives/nest/nest.hpp"

namespace troupe::collectives {

TEST_CASE("A nest is flattened depth first by name and packed again") {
  const Nest nest(
      Nest::Map{{"b", torch::full({1}, 1)},
                {"a", Nest::List{torch::full({1}, 2), Nest::Map{{"z", torch::full({1}, 3)}}}}});
  const auto tensors = nest.flatten();
  REQUIRE(tensors.size() == 3);
  CHECK(tensors[0].item<int>() == 2);
  CHECK(tensors[1].item<int>() == 3);
  CHECK(tensors[2].item<int>() == 1);
  const auto twice = nest.pack({2 * tensors[0], 2 * tensors[1], 2 * tensors[2]});
  CHECK(twice.at("a").at(1).at("z").tensor().item<int>() == 6);
  CHECK(twice.describe() == nest.describe());
  CHECK(twice.fingerprint() == nest.fingerprint());
}

TEST_CASE("Structures that differ in name, shape, type or nesting have different fingerprints") {
  const Nest one(Nest::Map{{"a", torch::zeros({2})}});
  for (const auto& other :
       {Nest(Nest::Map{{"b", torch::zeros({2})}}), Nest(Nest::Map{{"a", torch::zeros({1, 2})}}),
        Nest(Nest::Map{{"a", torch::zeros({2}, at::kDouble)}}), Nest(Nest::List{torch::zeros({2})}),
        Nest(torch::zeros({2})), Nest()})
    CHECK(other.fingerprint() != one.fingerprint());
}

TEST_CASE("Misuse of a nest is reported with its structure") {
  const Nest nest(Nest::Map{{"a", torch::zeros({2})}});
  CHECK_THROWS_WITH_AS(nest.tensor(), "nest: {a: float32 [2]} is not a tensor",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(nest.at("b"), "nest: {a: float32 [2]} is not a map with \"b\"",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(nest.at(0), "nest: {a: float32 [2]} is not a list", std::invalid_argument);
  CHECK_THROWS_AS(nest.pack({}), std::invalid_argument);
  CHECK_THROWS_AS(nest.pack({torch::zeros({2}), torch::zeros({2})}), std::invalid_argument);
  CHECK(Nest(at::Tensor()).describe() == "undefined");
}

} // namespace troupe::collectives
