#include "tests/doctest_torch.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include <sys/wait.h>
#include <unistd.h>

#include "collectives/mesh/socket.hpp"
#include "env/processes/start_program.hpp"
#include "tests/collectives/operation_checks.hpp"
#include "tests/reserved_port.hpp"

namespace troupe::collectives {

TEST_SUITE_BEGIN("TCP" * doctest::skip(kStoreSkipped));

TEST_CASE("Every operation over TCP equals a reference loop for 1 to 3 ranks and every type") {
  for (const int size : {1, 2, 3})
    for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong})
      check_operations(Means::tcp, size, type, {3, 5});
  check_operations(Means::tcp, 2, at::kFloat, {40'000});
  check_operations(Means::tcp, 2, at::kFloat, {});
}

TEST_CASE("An empty tensor passes through every operation over TCP") {
  check_operations(Means::tcp, 2, at::kFloat, {0});
}

TEST_CASE("c10d's reduce, gather, scatter and list operations work over TCP") {
  for (const int size : {1, 2, 3})
    check_c10d(Means::tcp, size);
}

TEST_CASE("Mismatched calls over TCP are reported on every rank") {
  check_mismatches(Means::tcp);
}

TEST_CASE("A late rank over TCP is named and gets the same error") {
  check_late(Means::tcp);
}

TEST_CASE("An abort of one rank over TCP ends the others with its reason") {
  check_abort(Means::tcp);
}

/// Threads of this process by name, and whether SIGPIPE reaches them.
std::map<std::string, bool> threads_by_pipe_signal() {
  std::map<std::string, bool> threads;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(entry.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigBlk:"))
        threads[entry.path().filename()] =
            (std::stoull(line.substr(7), nullptr, 16) >> (SIGPIPE - 1) & 1) == 0;
  }
  return threads;
}

TEST_CASE("Threads that a communicator starts block SIGPIPE, so that a lost peer cannot kill the "
          "process") {
  std::mutex mutex;
  std::set<std::string> own; // threads of the ranks
  std::atomic<int> beneath = 0, reached = 0;
  const auto before = threads_by_pipe_signal();
  const auto said = on_ranks(Means::tcp, 2, [&](Communicator& communicator) {
    {
      const std::lock_guard lock(mutex);
      own.insert(std::to_string(gettid()));
    }
    communicator.barrier();
    if (communicator.rank() == 0)
      for (const auto& [thread, takes_it] : threads_by_pipe_signal())
        if (!before.contains(thread) && !own.contains(thread)) {
          ++beneath;
          reached += takes_it;
        }
    communicator.barrier();
  });
  CHECK(said == std::vector<std::string>(2));
  CHECK(beneath > 0); // the store's threads
  CHECK(reached == 0);
}

TEST_CASE("A port in use is reported with a remedy") {
  const auto taken = listen_at("127.0.0.1", 0);
  const auto port = port_of(taken);
  const auto error =
      error_of<std::runtime_error>([&] { make_tcp_communicator("127.0.0.1", port, 0, 2); });
  CAPTURE(error);
  CHECK(has(error, "port " + std::to_string(port)));
  CHECK(has(error, "in use"));
  CHECK(has(error, "choose another"));
}

TEST_CASE("A missing rendezvous is reported with its address") {
  CommunicatorOptions options;
  options.connect_timeout = std::chrono::milliseconds(200);
  const auto port = reserved_port();
  const auto error = error_of<std::runtime_error>(
      [&] { make_tcp_communicator("127.0.0.1", port, 1, 2, options); });
  CAPTURE(error);
  CHECK(has(error, "127.0.0.1:" + std::to_string(port)));
}

TEST_CASE("A rank that never starts is named by rank 0") {
  CommunicatorOptions options;
  options.connect_timeout = std::chrono::milliseconds(200);
  const auto error = error_of<std::runtime_error>(
      [&] { make_tcp_communicator("127.0.0.1", reserved_port(), 0, 3, options); });
  CAPTURE(error);
  CHECK(has(error, "rank 1, rank 2 did not join"));
}

TEST_CASE("helper: a process that joins as rank 1 and is killed" * doctest::skip()) {
  const char* port = std::getenv("TROUPE_TEST_PORT");
  REQUIRE(port != nullptr);
  const auto communicator = make_tcp_communicator("127.0.0.1", std::atoi(port), 1, 2);
  communicator->barrier();
  std::raise(SIGKILL);
}

TEST_CASE("A process killed by SIGKILL is named at once by the waiting rank") {
  const auto port = reserved_port();
  const pid_t child =
      start_program({"/proc/self/exe", "--no-skip",
                     "--test-case=helper: a process that joins as rank 1 and is killed"},
                    {"TROUPE_TEST_PORT=" + std::to_string(port)});
  REQUIRE(child > 0);
  const auto communicator = make_tcp_communicator("127.0.0.1", port, 0, 2);
  communicator->barrier();
  auto tensor = torch::ones({3});
  const auto error =
      error_of<CollectiveError>([&] { communicator->all_reduce(tensor, ReduceOp::sum); });
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CAPTURE(error);
  CHECK(has(error, "all_reduce #1"));
  CHECK(has(error, "rank 1 died or left"));
}

TEST_SUITE_END();

} // namespace troupe::collectives
