#include "tests/doctest_torch.hpp"

#include <future>
#include <latch>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "collectives/elastic_group.hpp"
#include "collectives/rendezvous.hpp"
#include "tests/collectives/ranks.hpp"

namespace troupe::collectives {
namespace {

using std::chrono::milliseconds;

ElasticGroup::Options options_with(StoreFactory factory) {
  ElasticGroup::Options options;
  options.factory = std::move(factory);
  options.communicator.timeout = milliseconds(5000);
  options.communicator.connect_timeout = milliseconds(20'000);
  options.regroup_deadline = milliseconds(1000);
  return options;
}

double sum_over(Communicator& communicator, double value) {
  auto tensor = torch::full({1000}, value, at::kDouble);
  communicator.all_reduce(tensor, ReduceOp::sum);
  return tensor[999].item<double>();
}

/// Runs `body(rank)` on a thread each; what each threw.
std::vector<std::string> on_threads(int size, const std::function<void(int)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      try {
        body(rank);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  threads.clear();
  return errors;
}

using Connect = std::function<c10::intrusive_ptr<c10d::Store>()>;

/// Rank 1 of 3 dies after a step; the others go on as 0 and 1 of 2.
void check_shrink(const Connect& connect, const StoreFactory& factory) {
  std::vector<double> sums(3);
  std::vector<Membership> memberships(3);
  const auto errors = on_threads(3, [&](int rank) {
    const auto i = static_cast<std::size_t>(rank);
    ElasticGroup group(connect(), "shrink", rank, 3, options_with(factory));
    CHECK(sum_over(group.communicator(), rank + 1) == 6);
    if (rank == 1)
      return; // dies
    try {
      sum_over(group.communicator(), rank + 1);
      FAIL_CHECK("a rank is gone, and still there is a sum");
    } catch (const CollectiveError& error) {
      memberships[i] = group.regroup(error.what());
    }
    sums[i] = sum_over(group.communicator(), rank + 1);
  });
  CHECK(errors == std::vector<std::string>(3));
  CHECK(sums == std::vector<double>{4, 0, 4});
  CHECK(memberships[0].left == std::vector<int>{1});
  CHECK(memberships[0].came.empty());
  CHECK(memberships[2].rank == 1);
  CHECK(memberships[2].generation == 1);
  CHECK(memberships[2].rank_then == std::vector<int>{0, 2});
}

/// Two members let a third in, and a fourth waits in vain where there is no room.
void check_growth(const Connect& connect, const StoreFactory& factory) {
  auto options = options_with(factory);
  options.max_size = 3;
  std::latch asked(1);
  const auto errors = on_threads(3, [&](int rank) {
    if (rank == 2) {
      asked.count_down();
      const auto group = ElasticGroup::join(connect(), "growth", options, milliseconds(30'000));
      CHECK(group->membership().rank == 2);
      CHECK(group->membership().came == std::vector<int>{2});
      CHECK(most_advanced_rank(group->communicator(), -1) == 1);
      CHECK(sum_over(group->communicator(), 10) == 13);
      CHECK_FALSE(group->admit_newcomers().has_value());
      return;
    }
    ElasticGroup group(connect(), "growth", rank, 2, options);
    asked.wait();
    std::optional<Membership> grown;
    while (!grown)
      grown = group.admit_newcomers();
    CHECK(grown->came == std::vector<int>{2});
    CHECK(grown->left.empty());
    CHECK(most_advanced_rank(group.communicator(), rank) == 1);
    CHECK(sum_over(group.communicator(), rank + 1) == 13);
    if (rank == 0)
      CHECK_THROWS_AS(ElasticGroup::join(connect(), "growth", options, milliseconds(10)),
                      std::runtime_error);
    CHECK_FALSE(group.admit_newcomers().has_value());
  });
  CHECK(errors == std::vector<std::string>(3));
}

} // namespace

TEST_CASE("ranks as threads shrink to the survivors with dense ranks in the old order") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  check_shrink([&] { return store; }, threads_over_store());
}

TEST_CASE("ranks as threads let a newcomer in up to their largest size") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  check_growth([&] { return store; }, threads_over_store());
}

TEST_CASE("ranks over Gloo shrink to the survivors" * doctest::skip(kGlooSkipped)) {
  const RendezvousServer server("127.0.0.1", 0);
  check_shrink([&] { return connect_rendezvous("127.0.0.1", server.port(), {}); },
               gloo_over_store());
}

TEST_CASE("ranks over Gloo let a newcomer in" * doctest::skip(kGlooSkipped)) {
  const RendezvousServer server("127.0.0.1", 0);
  check_growth([&] { return connect_rendezvous("127.0.0.1", server.port(), {}); },
               gloo_over_store());
}

TEST_CASE("one that comes after the list is written is left out in words") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto factory = threads_over_store();
  std::latch gone_on(1);
  std::string late;
  const auto errors = on_threads(2, [&](int rank) {
    ElasticGroup group(store, "late", rank, 2, options_with(factory));
    if (rank == 0) {
      group.regroup("a test");
      CHECK(group.communicator().size() == 1);
      gone_on.count_down();
      return;
    }
    gone_on.wait();
    CHECK_THROWS_AS(sum_over(group.communicator(), 1), CollectiveError);
    try {
      group.regroup("the communicator is poisoned");
    } catch (const LeftOut& error) {
      late = error.what();
    }
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK(has(late, "went on without this process in generation 1"));
  CHECK(has(late, "join again as a newcomer"));
}

TEST_CASE("fewer than min_size give up in words") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto factory = threads_over_store();
  auto options = options_with(factory);
  options.min_size = 2;
  options.regroup_deadline = milliseconds(300);
  const auto errors = on_threads(2, [&](int rank) {
    ElasticGroup group(store, "few", rank, 2, options);
    if (rank == 0)
      group.regroup("a test");
  });
  CHECK(has(errors[0], "1 of 2 members are left, but min_size is 2"));
}

TEST_CASE("founders who differ about the size, and options out of range, are refused") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto factory = threads_over_store();
  { const ElasticGroup alone(store, "size", 0, 1, options_with(factory)); }
  std::string error;
  try {
    ElasticGroup(store, "size", 1, 2, options_with(factory));
  } catch (const std::invalid_argument& thrown) {
    error = thrown.what();
  }
  CHECK(has(error, "size 2 here, 1 at another founder"));
  auto options = options_with(factory);
  options.min_size = 0;
  CHECK_THROWS_AS(ElasticGroup(store, "range", 0, 1, options), std::invalid_argument);
  CHECK_THROWS_AS(ElasticGroup(store, "range", 2, 2, options_with(factory)), std::invalid_argument);
  CHECK_THROWS_AS(ElasticGroup(store, "range", 0, 1, options_with({})), std::invalid_argument);
}

TEST_CASE("a rendezvous that is gone ends the group in words" * doctest::skip(kGlooSkipped)) {
  auto server = std::make_unique<RendezvousServer>("127.0.0.1", 0);
  ElasticGroup group(connect_rendezvous("127.0.0.1", server->port(), {}), "gone", 0, 1,
                     options_with(gloo_over_store()));
  server.reset();
  std::string error;
  try {
    group.regroup("a test");
  } catch (const CollectiveError& thrown) {
    error = thrown.what();
  }
  CAPTURE(error);
  CHECK(has(error, "the rendezvous does not answer"));
  CHECK(has(error, "let a launcher serve it"));
}

} // namespace troupe::collectives
