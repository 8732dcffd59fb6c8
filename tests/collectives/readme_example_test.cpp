#include "tests/doctest_torch.hpp"

// [example]
#include <thread>
#include <vector>

#include "collectives/communicator.hpp"

namespace {

using troupe::collectives::Communicator;
using troupe::collectives::ReduceOp;

/// What each rank does: the mean of all ranks' vectors.
at::Tensor mean_of_all(Communicator& communicator) {
  auto mine = torch::full({4}, communicator.rank(), at::kFloat);
  communicator.all_reduce(mine, ReduceOp::mean);
  return mine;
}

std::vector<at::Tensor> three_ranks_as_threads() {
  auto communicators = troupe::collectives::make_thread_communicators(3);
  std::vector<at::Tensor> results(3);
  std::vector<std::jthread> threads;
  for (auto& communicator : communicators)
    threads.emplace_back([&] {
      results[static_cast<std::size_t>(communicator->rank())] = mean_of_all(*communicator);
    });
  threads.clear(); // joins
  return results;
}

} // namespace
// [example]

TEST_CASE("The README's example gives each of three ranks the mean of all") {
  for (const auto& result : three_ranks_as_threads())
    CHECK(torch::equal(result, torch::ones({4})));
}
