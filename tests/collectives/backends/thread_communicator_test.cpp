#include "tests/doctest_torch.hpp"

#include "tests/collectives/operation_checks.hpp"

namespace troupe::collectives {

TEST_CASE("Every operation over threads equals a reference loop for 1 to 4 ranks, every type and "
          "several sizes") {
  for (const int size : {1, 2, 3, 4})
    for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong})
      for (const auto& shape : std::vector<std::vector<std::int64_t>>{{}, {0}, {3, 5}, {40'000}})
        check_operations(Means::threads, size, type, shape);
}

TEST_CASE("Sums are computed in rank order, with the same bits on every rank and in every run") {
  constexpr int kRanks = 4;
  std::vector<at::Tensor> inputs;
  torch::manual_seed(1);
  for (int rank = 0; rank < kRanks; ++rank)
    inputs.push_back(torch::randn({100'003}) * 1000);
  const auto expected = ((inputs[0] + inputs[1]) + inputs[2]) + inputs[3];
  for (int run = 0; run < 3; ++run) {
    auto results = inputs;
    const auto errors = on_ranks(Means::threads, kRanks, [&](Communicator& communicator) {
      auto& mine = results[static_cast<std::size_t>(communicator.rank())];
      mine = mine.clone();
      communicator.all_reduce(mine, ReduceOp::sum);
    });
    REQUIRE(all_empty(errors));
    for (const auto& result : results)
      CHECK(torch::equal(result, expected));
  }
}

TEST_CASE("A non-contiguous view of a tensor is reduced in place") {
  std::vector<at::Tensor> wholes(2);
  const auto errors = on_ranks(Means::threads, 2, [&](Communicator& communicator) {
    auto& whole = wholes[static_cast<std::size_t>(communicator.rank())];
    whole = torch::ones({4, 6});
    auto column = whole.narrow(1, 2, 2).t();
    communicator.all_reduce(column, ReduceOp::sum);
  });
  REQUIRE(all_empty(errors));
  auto expected = torch::ones({4, 6});
  expected.narrow(1, 2, 2).fill_(2);
  CHECK(torch::equal(wholes[0], expected));
  CHECK(torch::equal(wholes[1], expected));
}

TEST_CASE("Minimum and maximum propagate NaN from any rank") {
  for (const int bad : {0, 1}) {
    std::vector<at::Tensor> results(2);
    on_ranks(Means::threads, 2, [&](Communicator& communicator) {
      auto& mine = results[static_cast<std::size_t>(communicator.rank())];
      mine = torch::full({2}, communicator.rank() == bad ? NAN : 1.0);
      communicator.all_reduce(mine, bad ? ReduceOp::max : ReduceOp::min);
    });
    CHECK(results[0].isnan().all().item<bool>());
    CHECK(results[1].isnan().all().item<bool>());
  }
}

TEST_CASE("c10d's reduce, gather, scatter and list operations work over threads") {
  for (const int size : {1, 2, 3})
    check_c10d(Means::threads, size);
}

TEST_CASE("Mismatched calls over threads are reported on every rank") {
  check_mismatches(Means::threads);
}

TEST_CASE("A late thread is named and gets the same error") {
  check_late(Means::threads);
}

TEST_CASE("An abort of one thread ends the others with its reason") {
  check_abort(Means::threads);
}

TEST_CASE("A rank that has left is named by the waiting rank") {
  auto communicators = make_thread_communicators(2);
  std::string error;
  {
    const std::jthread waiting([&] {
      auto tensor = torch::ones({1});
      error =
          error_of<CollectiveError>([&] { communicators[0]->all_reduce(tensor, ReduceOp::sum); });
    });
    communicators[1].reset();
  }
  CHECK(has(error, "all_reduce #0: rank 1 has left"));
}

TEST_CASE("Many short collectives in a row keep their order") {
  constexpr int kRanks = 3;
  constexpr int kRounds = 2000;
  std::vector<std::int64_t> wrong(kRanks);
  const auto errors = on_ranks(Means::threads, kRanks, [&](Communicator& communicator) {
    for (int round = 0; round < kRounds; ++round) {
      auto tensor =
          torch::full({round % 7 == 0 ? 10'000 : 2}, communicator.rank() + round, at::kLong);
      communicator.all_reduce(tensor, ReduceOp::sum);
      if (tensor.ne(3 + kRanks * round).any().item<bool>())
        ++wrong[static_cast<std::size_t>(communicator.rank())];
    }
  });
  REQUIRE(all_empty(errors));
  CHECK(wrong == std::vector<std::int64_t>(kRanks));
}

TEST_CASE("Sizes and timeouts out of range are refused") {
  CHECK_THROWS_AS(make_thread_communicators(0), std::invalid_argument);
  CommunicatorOptions options;
  options.timeout = std::chrono::milliseconds(0);
  CHECK_THROWS_AS(make_thread_communicators(2, options), std::invalid_argument);
}

} // namespace troupe::collectives
