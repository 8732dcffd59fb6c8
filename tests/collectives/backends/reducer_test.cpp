#include "tests/collectives/backends/reducer_checks.hpp"

#include <latch>

namespace troupe::collectives {

TEST_CASE("LibTorch's Reducer over threads equals one big batch") {
  CHECK(train_by_reducer(Means::threads) < 1e-12);
}

TEST_CASE("LibTorch's Reducer over shared memory equals one big batch") {
  CHECK(train_by_reducer(kStoreSkipped ? Means::shared_threads : Means::shared_memory) < 1e-12);
}

TEST_CASE("A backward pass reaches the first layer while another rank delays the last layer") {
  for (const auto means : {Means::threads, Means::shared_threads}) {
    std::latch at_first_layer(1);
    const auto errors = on_ranks(means, 2, [&](Communicator& communicator) {
      auto network = make_network();
      auto parameters = network->parameters();
      auto reducer = make_reducer(parameters, communicator.process_group());
      reducer->prepare_for_forward();
      const auto x = torch::ones({kBatch, 8}, at::kDouble);
      auto output = network->forward(x);
      reducer->prepare_for_backward({output});
      if (communicator.rank() == 0)
        parameters.front().register_hook([&](const at::Tensor&) { at_first_layer.count_down(); });
      else
        output.register_hook([&](const at::Tensor&) { at_first_layer.wait(); });
      loss_of(output, torch::zeros_like(output)).backward();
    });
    CHECK(errors == std::vector<std::string>(2));
  }
}

TEST_CASE("Calls that LibTorch makes through the process group are also checked") {
  const auto errors = on_ranks(Means::threads, 2, [](Communicator& communicator) {
    std::vector<at::Tensor> tensors{torch::ones({communicator.rank() + 1})};
    communicator.process_group()->allreduce(tensors)->wait();
  });
  for (const auto& error : errors)
    CHECK(has(error, "all_reduce #0: rank 0 sum float32 [1], rank 1 sum float32 [2]"));
}

TEST_CASE("LibTorch's Reducer over TCP equals one big batch"
          * doctest::skip(collectives::kStoreSkipped)) {
  CHECK(train_by_reducer(Means::tcp) < 1e-12);
}

} // namespace troupe::collectives
