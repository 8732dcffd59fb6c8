#include "tests/doctest_torch.hpp"

#include "tests/collectives/operation_checks.hpp"

namespace troupe::collectives {
namespace {

/// ThreadSanitizer does not cover processes: LibTorch's store, where they meet, is not
/// instrumented.
std::vector<Means> all_means() {
  if (kStoreSkipped)
    return {Means::shared_threads};
  return {Means::shared_threads, Means::shared_memory};
}

} // namespace

TEST_CASE(
    "Every operation over shared memory equals a reference loop for 1 to 4 ranks and every type") {
  for (const auto means : all_means())
    for (const int size : {1, 2, 3, 4})
      for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong})
        for (const auto& shape : std::vector<std::vector<std::int64_t>>{{}, {0}, {3, 5}, {40'000}})
          check_operations(means, size, type, shape);
}

TEST_CASE("Tensors of many blocks pass through the stages of shared memory") {
  // More than two stages, and the last block is not full.
  const std::int64_t elements = 3 * SharedSegment::kStageBytes / 4 - 77;
  for (const auto means : all_means())
    for (const int size : {2, 3})
      check_operations(means, size, at::kFloat, {elements});
}

TEST_CASE("Shared memory gives the same bits as threads on every rank and in every run") {
  constexpr int kRanks = 4;
  std::vector<at::Tensor> inputs;
  torch::manual_seed(1);
  for (int rank = 0; rank < kRanks; ++rank)
    inputs.push_back(torch::randn({1'000'003}) * 1000);
  const auto expected = ((inputs[0] + inputs[1]) + inputs[2]) + inputs[3];
  for (const auto count : {100, 7000, 1'000'003})
    for (const auto means : all_means()) {
      std::vector<at::Tensor> results(kRanks);
      const auto errors = on_ranks(means, kRanks, [&](Communicator& communicator) {
        const auto rank = static_cast<std::size_t>(communicator.rank());
        results[rank] = inputs[rank].narrow(0, 0, count).clone();
        communicator.all_reduce(results[rank], ReduceOp::sum);
      });
      REQUIRE(all_empty(errors));
      for (const auto& result : results)
        CHECK(torch::equal(result, expected.narrow(0, 0, count)));
    }
}

TEST_CASE("Uneven numbers of rows are exchanged between all ranks over shared memory") {
  constexpr int kRanks = 3;
  const auto rows_of = [](int from, int to) { // some ranks have none, some several blocks
    return std::int64_t{(from + 2 * to) % 3} * (from == 1 ? 70'000 : 5);
  };
  for (const auto means : all_means()) {
    const auto errors = on_ranks(means, kRanks, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      for (int round = 0; round < 3; ++round) {
        std::vector<at::Tensor> out, in;
        for (int other = 0; other < kRanks; ++other) {
          out.push_back(torch::full({rows_of(rank, other), 4}, 10.0 * rank + other + round));
          in.push_back(torch::zeros({rows_of(other, rank), 4}));
        }
        communicator.process_group()->alltoall(in, out)->wait();
        for (int other = 0; other < kRanks; ++other)
          if (in[static_cast<std::size_t>(other)].ne(10 * other + rank + round).any().item<bool>())
            throw std::runtime_error("wrong rows");
      }
    });
    CHECK(errors == std::vector<std::string>(kRanks));
  }
}

TEST_CASE("Many collectives of all sizes in a row keep their order over shared memory") {
  constexpr int kRanks = 3;
  constexpr int kRounds = 500;
  for (const auto means : all_means()) {
    std::vector<std::int64_t> wrong(kRanks);
    const auto errors = on_ranks(means, kRanks, [&](Communicator& communicator) {
      const auto check = [&](bool held) {
        wrong[static_cast<std::size_t>(communicator.rank())] += !held;
      };
      for (int round = 0; round < kRounds; ++round) {
        const int count = round % 5 == 0 ? 300'000 : round % 3 == 0 ? 10'000 : 2;
        auto tensor = torch::full({count}, communicator.rank() + round, at::kInt);
        communicator.all_reduce(tensor, ReduceOp::sum);
        check(tensor.eq(3 + kRanks * round).all().item<bool>());
        tensor.fill_(communicator.rank() + round);
        communicator.broadcast(tensor, round % kRanks);
        check(tensor.eq(round % kRanks + round).all().item<bool>());
        const auto all = communicator.all_gather(torch::full({count / 2}, communicator.rank()));
        for (int rank = 0; rank < kRanks; ++rank)
          check(all[static_cast<std::size_t>(rank)].eq(rank).all().item<bool>());
      }
    });
    REQUIRE(errors == std::vector<std::string>(kRanks));
    CHECK(wrong == std::vector<std::int64_t>(kRanks));
  }
}

TEST_CASE("c10d's reduce, gather, scatter and list operations work over shared memory") {
  for (const auto means : all_means())
    for (const int size : {1, 2, 3})
      check_c10d(means, size);
}

TEST_CASE("Mismatched calls over shared memory are reported on every rank") {
  check_mismatches(kStoreSkipped ? Means::shared_threads : Means::shared_memory);
}

TEST_CASE("A late rank over shared memory is named and gets the same error") {
  for (const auto means : all_means())
    check_late(means);
}

TEST_CASE("An abort of one rank over shared memory ends the others with its reason") {
  for (const auto means : all_means())
    check_abort(means);
}

} // namespace troupe::collectives
