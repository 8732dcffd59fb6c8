// Logs of runs in the dashboard, with bounded memory.
#include "tests/doctest_torch.hpp"

#include <fstream>

#include "experiments/dashboard/run_catalogue.hpp"
#include "tests/experiments/dashboard/dashboard_fixture.hpp"

using namespace troupe;
using namespace troupe::experiments;
using namespace troupe::experiments::dashboard;

TEST_CASE("The first problem of a run is found in log.txt, however many lines are around it") {
  const TemporaryFolder folder;
  FirstProblem problem(folder.path());
  CHECK(problem.read().text.empty());
  std::ofstream log(folder / "log.txt", std::ios::binary);
  const std::string evaluation = "2026-11-25T10:00:00Z info evaluation\n";
  const auto evaluate = [&] {
    for (int i = 0; i < 5000; ++i) {
      log << evaluation;
    }
  };
  evaluate();
  log << std::string(200'000, 'x') << "\n2026-11-25T10:00:01Z warn" << std::flush;
  CHECK(problem.read().text.empty());
  log << "ing a disk is slow\n" << std::flush;
  CHECK(problem.read().text == "warning a disk is slow");
  CHECK(problem.read().time == "2026-11-25T10:00:01Z");
  log << "2026-11-25T10:00:02Z error it is full\n";
  evaluate();
  log << std::flush;
  CHECK(problem.read().text == "warning a disk is slow");
  CHECK(FirstProblem(folder.path()).read().text == "warning a disk is slow");
}

TEST_CASE("Logs of the runs that were watched least recently are forgotten") {
  const TemporaryFolder folder;
  for (std::size_t i = 0; i <= RunCatalogue::kMostLogs; ++i) {
    write_run(folder / "balance" / std::to_string(i), 1, 1);
  }
  RunCatalogue catalogue(folder.path());
  const RunPtr first = catalogue.find("balance/0");
  catalogue.used_log(first);
  CHECK(first->log({}).size() == 3);
  std::filesystem::remove(first->folder() / "log.txt");
  for (std::size_t i = 1; i < RunCatalogue::kMostLogs; ++i) {
    catalogue.used_log(catalogue.find("balance/" + std::to_string(i)));
  }
  CHECK(first->log({}).size() == 3); // it is remembered
  catalogue.used_log(catalogue.find("balance/" + std::to_string(RunCatalogue::kMostLogs)));
  CHECK(first->log({}).empty());
}
