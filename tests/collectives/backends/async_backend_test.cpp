#include "tests/doctest_torch.hpp"

#include "tests/collectives/operation_checks.hpp"

namespace troupe::collectives {
namespace {

std::vector<Means> all_means() {
  if (kStoreSkipped)
    return {Means::threads, Means::shared_threads};
  return {Means::threads, Means::shared_memory, Means::tcp};
}

} // namespace

TEST_CASE("Calls through the process group return before the other ranks make them") {
  for (const auto means : all_means()) {
    constexpr int kCalls = 3;
    std::latch made(1);
    const auto errors = on_ranks(means, 2, [&](Communicator& communicator) {
      if (communicator.rank() == 1)
        made.wait();
      std::vector<c10::intrusive_ptr<c10d::Work>> works;
      std::vector<std::vector<at::Tensor>> tensors;
      for (int i = 0; i < kCalls; ++i) {
        tensors.push_back({torch::full({1000 * i + 1}, 1.0 + i + communicator.rank())});
        works.push_back(communicator.process_group()->allreduce(tensors.back()));
      }
      if (communicator.rank() == 0)
        made.count_down();
      for (std::size_t i = 0; i < kCalls; ++i) {
        works[i]->wait();
        if (tensors[i][0].ne(3 + 2 * static_cast<int>(i)).any().item<bool>()
            || !works[i]->getFuture()->completed() || !works[i]->isSuccess())
          throw std::runtime_error("wrong sum");
      }
    });
    CHECK(errors == std::vector<std::string>(2));
  }
}

TEST_CASE("A communicator's call waits for the earlier calls of its process group") {
  for (const auto means : all_means()) {
    const auto errors = on_ranks(means, 2, [&](Communicator& communicator) {
      auto tensor = torch::ones({20'000});
      std::vector<at::Tensor> tensors{tensor};
      std::vector<c10::intrusive_ptr<c10d::Work>> works;
      for (int i = 0; i < 10; ++i)
        works.push_back(communicator.process_group()->allreduce(tensors));
      communicator.all_reduce(tensor, ReduceOp::sum);
      if (tensor.ne(2048).any().item<bool>())
        throw std::runtime_error("not in order");
      works.back()->wait();
    });
    CHECK(errors == std::vector<std::string>(2));
  }
}

TEST_CASE("An error in a process group call is reported by its wait and its future") {
  for (const auto means : all_means()) {
    std::vector<std::string> in_future(2), next(2);
    const auto errors = on_ranks(means, 2, [&](Communicator& communicator) {
      const auto rank = static_cast<std::size_t>(communicator.rank());
      std::vector<at::Tensor> tensors{torch::ones({communicator.rank() + 1})};
      const auto group = communicator.process_group();
      const auto work = group->allreduce(tensors);
      const auto behind = group->barrier();
      in_future[rank] = error_of<CollectiveError>([&] {
        work->getFuture()->wait();
        work->getFuture()->value();
      });
      next[rank] = error_of<CollectiveError>([&] { behind->wait(); });
      work->wait();
    });
    CHECK(has(errors[0], "all_reduce #0: rank 0 sum float32 [1], rank 1 sum float32 [2]"));
    CHECK(errors[1] == errors[0]);
    CHECK(in_future == errors);
    CHECK(next == errors);
  }
}

TEST_CASE("A communicator with pending process group calls can be destroyed") {
  for (const auto means : all_means()) {
    CommunicatorOptions options;
    options.timeout = std::chrono::milliseconds(100);
    c10::intrusive_ptr<c10d::Work> first, second;
    on_ranks(
        means, 2,
        [&](Communicator& communicator) {
          if (communicator.rank() == 1)
            return;
          std::vector<at::Tensor> tensors{torch::ones({3})};
          first = communicator.process_group()->allreduce(tensors);
          second = communicator.process_group()->allreduce(tensors);
        },
        options);
    std::string errors[2];
    for (int i = 0; i < 2; ++i)
      errors[i] = error_of<CollectiveError>([&] { (i == 0 ? first : second)->wait(); });
    CAPTURE(errors[0]);
    CHECK(has(errors[0], "all_reduce #0"));
    CHECK(has(errors[0], "rank 1"));
    CHECK(errors[1] == errors[0]);
  }
}

} // namespace troupe::collectives
