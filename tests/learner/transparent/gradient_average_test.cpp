#include "learner/transparent/gradient_average.hpp"

#include "tests/doctest_torch.hpp"

#include <atomic>
#include <mutex>
#include <thread>

#include "collectives/communicator.hpp"
#include "learner/transparent/equal_tensors.hpp"

using namespace troupe;
using namespace troupe::learner::transparent;
using collectives::Communicator;

namespace {

constexpr std::int64_t kBucket = 520; // bytes; gives four buckets

/// One rank's two layers, and one that not all ranks use.
struct Model {
  std::vector<at::Tensor> parameters;

  Model() {
    for (const auto& shape :
         std::vector<std::vector<std::int64_t>>{{8, 16}, {16}, {16, 8}, {8}, {8}})
      parameters.push_back((torch::arange(c10::multiply_integers(shape), at::kFloat) * 0.37)
                               .sin()
                               .view(shape)
                               .set_requires_grad(true));
  }

  at::Tensor loss(int rank, int step, bool all = true) const {
    const auto x = (torch::arange(32, at::kFloat) * (rank + 1) * 0.11 + step).cos().view({4, 8});
    auto y =
        torch::matmul(torch::tanh(torch::matmul(x, parameters[0]) + parameters[1]), parameters[2])
        + parameters[3];
    if (all)
      y = y * parameters[4];
    return y.pow(2).sum();
  }

  std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> all;
    for (const auto& parameter : parameters)
      all.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
    return all;
  }

  void zero() const {
    for (const auto& parameter : parameters)
      parameter.mutable_grad() = at::Tensor();
  }
};

struct Rank {
  Communicator& communicator;
  int rank;
  Model model;
  GradientAverage average;
};

/// Runs `body` on one thread per rank. With `early`, each rank has a second communicator.
void on_ranks(int size, bool early, const std::function<void(Rank&)>& body) {
  const collectives::CommunicatorOptions options{.timeout = std::chrono::seconds(20)};
  auto first = collectives::make_thread_communicators(size, options);
  auto second = collectives::make_thread_communicators(size, options);
  std::mutex mutex; // doctest's checks of several threads
  std::vector<std::string> errors;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < first.size(); ++i)
    threads.emplace_back([&, i] {
      GradientAverage::MakeChannel make;
      if (early)
        make = [&, i] { return std::shared_ptr<Communicator>(std::move(second[i])); };
      try {
        Rank rank{*first[i], static_cast<int>(i), {}, {*first[i], make, kBucket}};
        body(rank);
        rank.average.drain();
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        errors.emplace_back(error.what());
        first[i]->abort(error.what());
      }
    });
  threads.clear();
  for (const auto& error : errors)
    FAIL_CHECK(error);
}

/// The expected gradients of all ranks: their mean, calculated in one process.
std::vector<at::Tensor> mean_of(int size, const std::function<void(const Model&, int)>& work) {
  std::vector<at::Tensor> sums;
  for (int rank = 0; rank < size; ++rank) {
    const Model model;
    work(model, rank);
    const auto mine = model.gradients();
    sums.resize(mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (mine[i].defined())
        sums[i] = sums[i].defined() ? sums[i] + mine[i] : mine[i];
  }
  for (auto& sum : sums)
    if (sum.defined())
      sum = sum / size;
  return sums;
}

bool equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].defined() != b[i].defined() || (a[i].defined() && !torch::allclose(a[i], b[i], 1e-5)))
      return false;
  return true;
}

void require(bool held, const std::string& what) { // from any thread
  if (!held)
    throw std::runtime_error(what);
}

/// Makes `steps` steps of `work` and requires that each gives the mean. Returns how many buckets
/// were sent early in the last step.
std::int64_t check_means(int size, bool early, int steps,
                         const std::function<void(const Model&, int rank, int step)>& work) {
  std::vector<std::vector<at::Tensor>> expected;
  for (int step = 0; step < steps; ++step)
    expected.push_back(
        mean_of(size, [&](const Model& model, int rank) { work(model, rank, step); }));
  std::atomic<std::int64_t> sent = 0;
  on_ranks(size, early, [&](Rank& rank) {
    for (int step = 0; step < steps; ++step) {
      rank.model.zero();
      work(rank.model, rank.rank, step);
      rank.average.average(rank.model.parameters, false);
      require(equal(rank.model.gradients(), expected[static_cast<std::size_t>(step)]),
              "step " + std::to_string(step) + " gave no mean on rank "
                  + std::to_string(rank.rank));
    }
    if (rank.rank == 0)
      sent = rank.average.sent_early();
  });
  return sent;
}

} // namespace

TEST_CASE("Gradients become their mean over the ranks, sent early or at the step") {
  const auto work = [](const Model& model, int rank, int step) {
    model.loss(rank, step).backward();
  };
  for (const int size : {1, 2, 3}) {
    CHECK(check_means(size, false, 3, work) == 0);
    CHECK(check_means(size, true, 1, work) == 0); // the first backward pass is over
    CHECK(check_means(size, true, 3, work) == 4); // all buckets
  }
}

TEST_CASE("A gradient changed after backward is sent with its final value, and later steps send it "
          "late") {
  const auto twice = [](const Model& model, int rank, int step) {
    model.loss(rank, step).backward();
    model.loss(rank, step + 1).backward();
  };
  CHECK(check_means(2, true, 8, twice) == 0);
  const auto behind = [](const Model& model, int rank, int step) { // invisible to version counters
    model.loss(rank, step).backward();
    if (rank == 1)
      model.parameters[2].grad().data().mul_(3);
  };
  CHECK(check_means(2, true, 3, behind) == 3); // the other buckets
  CHECK(check_means(2, true, 8, behind) == 0);
  const auto forgotten = [](const Model& model, int rank, int step) {
    model.loss(rank, step).backward();
    model.zero();
    model.loss(rank, step + 1).backward();
  };
  CHECK(check_means(2, true, 3, forgotten) == 0);
}

TEST_CASE("A single irregular step does not stop early sending") {
  const auto work = [](const Model& model, int rank, int step) {
    model.loss(rank, step).backward();
    if (step == 2)
      model.parameters[0].mutable_grad().zero_();
  };
  CHECK(check_means(2, true, 5, work) == 4);
}

TEST_CASE(
    "A parameter without a gradient on some ranks counts as zero, and on all ranks it keeps none") {
  const auto some = [](const Model& model, int rank, int step) {
    model.loss(rank, step, rank != step % 2).backward();
  };
  for (const bool early : {false, true})
    check_means(2, early, 6, some);
  const auto none = [](const Model& model, int rank, int step) {
    model.loss(rank, step, false).backward();
  };
  CHECK(check_means(2, true, 4, none) == 4);
  const auto change = [](const Model& model, int rank, int step) {
    model.loss(rank, step, step > 2).backward();
  };
  check_means(3, true, 6, change);
}

TEST_CASE("Rank 0's gradients are sent to all ranks on request") {
  for (const bool early : {false, true})
    on_ranks(2, early, [&](Rank& rank) {
      for (int step = 0; step < 3; ++step) {
        rank.model.zero();
        rank.model.loss(rank.rank, step).backward();
        rank.average.average(rank.model.parameters, true);
        const Model first;
        first.loss(0, step).backward();
        require(equal(rank.model.gradients(), first.gradients()), "not rank 0's");
      }
    });
}

TEST_CASE("The set of parameters can change between steps") {
  on_ranks(2, true, [](Rank& rank) {
    for (int step = 0; step < 9; ++step) {
      rank.model.zero();
      rank.model.loss(rank.rank, step).backward();
      const auto count = static_cast<std::ptrdiff_t>(step < 3 ? 3 : step < 6 ? 5 : 2);
      const std::vector<at::Tensor> some(rank.model.parameters.begin(),
                                         rank.model.parameters.begin() + count);
      rank.average.average(some, false);
      const auto mean =
          mean_of(2, [&](const Model& model, int other) { model.loss(other, step).backward(); });
      const auto mine = rank.model.gradients();
      for (std::size_t i = 0; i < some.size(); ++i)
        require(torch::allclose(mine[i], mean[i], 1e-5), "no mean");
    }
  });
}

TEST_CASE("Sparse gradients become dense means") {
  on_ranks(2, true, [](Rank& rank) {
    const auto table = torch::ones({6, 40}).set_requires_grad(true);
    const auto weight = torch::ones({40, 10}).set_requires_grad(true);
    for (int step = 0; step < 3; ++step) {
      table.mutable_grad() = at::Tensor();
      weight.mutable_grad() = at::Tensor();
      const auto rows = torch::tensor({std::int64_t{rank.rank}, std::int64_t{5}});
      torch::matmul(at::embedding(table, rows, -1, false, /*sparse=*/true), weight)
          .sum()
          .backward();
      require(table.grad().is_sparse(), "the test needs a sparse gradient");
      rank.average.average({table, weight}, false);
      auto expected = torch::zeros({6, 40});
      expected[0] += 5;
      expected[1] += 5;
      expected[5] += 10;
      require(torch::allclose(table.grad(), expected), "no mean");
    }
    require(rank.average.sent_early() == 2, "was not sent early");
  });
}

TEST_CASE("Ranks whose parameters do not match get an error") {
  std::atomic<int> refused = 0;
  auto communicators = collectives::make_thread_communicators(2);
  {
    std::vector<std::jthread> threads;
    for (auto& communicator : communicators)
      threads.emplace_back([&] {
        GradientAverage average(*communicator, nullptr, kBucket);
        auto parameter = torch::ones({3 + communicator->rank()}).set_requires_grad(true);
        parameter.sum().backward();
        try {
          average.average({parameter}, false);
        } catch (const collectives::CollectiveError&) {
          ++refused;
        }
      });
  }
  CHECK(refused == 2);
}

TEST_CASE("Tensors of every type become rank 0's, and the ranks that differed are reported") {
  auto communicators = collectives::make_thread_communicators(3);
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (auto& communicator : communicators)
      threads.emplace_back([&] {
        const int rank = communicator->rank();
        const std::vector<at::Tensor> tensors{torch::full({3, 2}, rank, at::kFloat).t(),
                                              torch::full({}, rank, at::kLong),
                                              torch::full({5}, rank == 2, at::kBool),
                                              torch::full({7}, rank, at::kBFloat16),
                                              torch::empty({0}),
                                              torch::full({2}, rank, at::kDouble)};
        const auto before = ranks_that_differ(tensors, *communicator);
        const bool differed = broadcast_from_rank_0(tensors, *communicator);
        const bool again = broadcast_from_rank_0(tensors, *communicator);
        bool zero = true;
        for (const auto& tensor : tensors)
          zero = zero && tensor.to(at::kDouble).abs().sum().item<double>() == 0;
        right += before == std::vector<int>{1, 2} && differed == (rank != 0) && !again && zero
                 && ranks_that_differ(tensors, *communicator).empty();
      });
  }
  CHECK(right == 3);
}
