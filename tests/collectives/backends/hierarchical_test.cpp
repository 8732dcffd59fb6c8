#include "tests/collectives/backends/reducer_checks.hpp"

#include "tests/collectives/operation_checks.hpp"

namespace troupe::collectives {

TEST_SUITE_BEGIN("hierarchical" * doctest::skip(kStoreSkipped));

TEST_CASE("Every operation over two hosts of two ranks equals a reference loop") {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong})
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{}, {0}, {3, 5}, {10'001}})
      check_operations(Means::even_hosts, 4, type, shape);
  check_operations(Means::even_hosts, 2, at::kFloat, {3, 5});
  check_c10d(Means::even_hosts, 4);
}

TEST_CASE("Every operation over a host of three ranks and a host of one equals a reference loop") {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong})
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{}, {0}, {3, 5}, {10'001}})
      check_operations(Means::uneven_hosts, 4, type, shape);
  check_c10d(Means::uneven_hosts, 4);
}

TEST_CASE(
    "Every operation on one host alone equals a reference loop, with three ranks and with one") {
  for (const int size : {3, 1})
    check_operations(Means::one_host, size, at::kFloat, {3, 5});
  check_c10d(Means::one_host, 3);
}

TEST_CASE("LibTorch's Reducer over two hosts equals one big batch") {
  CHECK(train_by_reducer(Means::even_hosts, 4) < 1e-12);
  CHECK(train_by_reducer(Means::uneven_hosts, 4) < 1e-12);
}

TEST_CASE("Mismatched calls on two hosts are reported on every rank with global rank numbers") {
  check_mismatches(Means::even_hosts);
}

TEST_CASE("A late rank on another host is named and gets the same error") {
  check_late(Means::even_hosts);
}

TEST_CASE("An abort on one host ends the other ranks with its reason") {
  check_abort(Means::uneven_hosts);
}

TEST_CASE("A dead rank is named by its global number on both hosts") {
  const auto errors = on_ranks(
      Means::even_hosts, 4,
      [](Communicator& communicator) {
        communicator.barrier();
        if (communicator.rank() == 2)
          throw std::runtime_error("dies");
        auto tensor = torch::ones({100'000});
        communicator.all_reduce(tensor, ReduceOp::sum);
      },
      {.timeout = std::chrono::milliseconds(500), .connect_timeout = std::chrono::seconds(20)});
  for (const int rank : {0, 1, 3}) {
    CAPTURE(errors[static_cast<std::size_t>(rank)]);
    CHECK(has(errors[static_cast<std::size_t>(rank)], "all_reduce #1: rank 2 did not arrive"));
  }
}

TEST_SUITE_END();

} // namespace troupe::collectives
