#include "tests/collectives/backends/reducer_checks.hpp"

#include <csignal>
#include <filesystem>

#include "collectives/rendezvous/rendezvous.hpp"
#include "tests/collectives/backends/mpirun.hpp"
#include "tests/collectives/operation_checks.hpp"

namespace troupe::collectives {
namespace {

int world() {
  const char* text = std::getenv("TROUPE_TEST_SIZE");
  return text ? std::atoi(text) : 0;
}

/// Runs a helper below on `size` ranks. Returns -1 if that is skipped.
int run_helper(int size, const std::string& name, const std::string& variable = "TROUPE_TEST=") {
  const auto reason =
      find_mpirun().empty() ? "there is no mpirun on the PATH" : mpi_unavailable_reason();
  if (!reason.empty()) {
    MESSAGE("skipped: ", reason);
    return -1;
  }
  return run_under_mpi(
      size,
      {std::filesystem::read_symlink("/proc/self/exe"), "--no-skip", "--test-case=helper: " + name},
      {"TROUPE_TEST_SIZE=" + std::to_string(size), variable});
}

bool passes(int size, const std::string& name, const std::string& variable = "TROUPE_TEST=") {
  return run_helper(size, name, variable) <= 0;
}

} // namespace

// --- what each rank runs under mpirun

TEST_CASE("helper: operations" * doctest::skip()) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong})
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{}, {0}, {3, 5}, {40'000}})
      check_operations(Means::mpi, world(), type, shape);
  check_c10d(Means::mpi, world());
}

/// The cases of check_mismatches() need 2 or 3 ranks, and each its own run.
TEST_CASE("helper: mismatches" * doctest::skip()) {
  const auto reduce = [](at::ScalarType type, std::vector<std::int64_t> shape, ReduceOp op) {
    return [=](Communicator& communicator) {
      auto tensor = torch::ones(shape, type);
      communicator.all_reduce(tensor, op);
    };
  };
  const auto sum = reduce(at::kFloat, {3, 4}, ReduceOp::sum);
  check_named(Means::mpi, world(), sum, reduce(at::kFloat, {3, 4}, ReduceOp::mean),
              {"all_reduce #1: rank", "sum float32 [3, 4], rank 1 mean float32 [3, 4]"});
  check_named(Means::mpi, world(), sum, reduce(at::kFloat, {3}, ReduceOp::sum),
              {"rank 1 sum float32 [3];"});
  check_named(Means::mpi, world(), sum, reduce(at::kLong, {3, 4}, ReduceOp::sum),
              {"rank 1 sum int64 [3, 4]"});
  check_named(Means::mpi, world(), sum, [](Communicator& communicator) { communicator.barrier(); },
              {"collective #1: rank", "rank 1 barrier"});
}

TEST_CASE("helper: abort" * doctest::skip()) {
  check_abort(Means::mpi);
}

TEST_CASE("helper: reducer" * doctest::skip()) {
  CHECK(train_by_reducer(Means::mpi, world()) < 1e-12);
}

TEST_CASE("helper: not a number" * doctest::skip()) {
  const auto communicator = make_mpi_communicator();
  for (const auto op : {ReduceOp::min, ReduceOp::max})
    for (int bad = 0; bad < world(); ++bad) {
      auto mine = torch::full({2}, communicator->rank() == bad ? NAN : 1.0);
      communicator->all_reduce(mine, op);
      CHECK(mine.isnan().all().item<bool>());
    }
}

TEST_CASE("helper: late" * doctest::skip()) {
  const auto store = connect_rendezvous("127.0.0.1", std::atoi(std::getenv("TROUPE_TEST")), {});
  CommunicatorOptions options;
  options.timeout = std::chrono::milliseconds(300);
  const auto communicator = make_mpi_communicator(options);
  communicator->barrier();
  if (communicator->rank() == 1)
    store->get("given up");
  auto tensor = torch::ones({3});
  const auto error =
      error_of<CollectiveError>([&] { communicator->all_reduce(tensor, ReduceOp::sum); });
  store->set("given up", std::string("yes"));
  store->set("error of " + std::to_string(communicator->rank()), error);
}

TEST_CASE("helper: killed" * doctest::skip()) {
  const auto store = connect_rendezvous("127.0.0.1", std::atoi(std::getenv("TROUPE_TEST")), {});
  const auto communicator = make_mpi_communicator();
  communicator->barrier();
  if (communicator->rank() == 1) {
    store->set("dies", std::string("now"));
    std::raise(SIGKILL);
  }
  auto tensor = torch::ones({3});
  communicator->all_reduce(tensor, ReduceOp::sum); // throws, or mpirun has killed us
}

// --- the tests

TEST_CASE("Every operation over MPI equals a reference loop on 2 and 4 ranks") {
  CHECK(passes(2, "operations"));
  CHECK(passes(4, "operations"));
}

TEST_CASE("Mismatched calls over MPI are reported on every rank") {
  CHECK(passes(2, "mismatches"));
  CHECK(passes(4, "mismatches"));
  CHECK(passes(3, "abort"));
}

TEST_CASE("LibTorch's Reducer over MPI equals one big batch") {
  CHECK(passes(2, "reducer"));
  CHECK(passes(4, "reducer"));
}

TEST_CASE("Minimum and maximum over MPI propagate NaN") {
  CHECK(passes(3, "not a number"));
}

TEST_CASE("A late rank over MPI is named and gets the same error") {
  const RendezvousServer server("127.0.0.1");
  const auto store = connect_rendezvous("127.0.0.1", server.port(), {});
  const int status = run_helper(2, "late", "TROUPE_TEST=" + std::to_string(server.port()));
  if (status < 0)
    return;           // skipped
  CHECK(status == 0); // no complaint from mpirun about how they ended
  for (const char* rank : {"0", "1"}) {
    REQUIRE(store->check({std::string("error of ") + rank}));
    const auto error = store->get_to_str(std::string("error of ") + rank);
    CAPTURE(error);
    CHECK(has(error, "all_reduce #1: rank 1 did not arrive within 0.3 s"));
  }
}

TEST_CASE("A killed rank ends the mpirun job") {
  const RendezvousServer server("127.0.0.1");
  const auto store = connect_rendezvous("127.0.0.1", server.port(), {});
  const int status = run_helper(3, "killed", "TROUPE_TEST=" + std::to_string(server.port()));
  if (status < 0)
    return; // skipped
  CHECK(status != 0);
  CHECK(store->check({"dies"}));
}

} // namespace troupe::collectives
