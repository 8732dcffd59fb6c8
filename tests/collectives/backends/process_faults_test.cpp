#include "tests/doctest_torch.hpp"

#include <filesystem>
#include <set>

#include "tests/collectives/operation_checks.hpp"
#include "tests/collectives/rank_process.hpp"
#include "tests/reserved_port.hpp"

namespace troupe::collectives {
namespace {

constexpr int kRanks = 3;
const std::string kLarge = std::to_string(25 << 18); // elements: 25 MiB of float32

std::vector<std::string> backends() {
  return {"shared_memory", "tcp"};
}

/// Starts ranks that call `common`, except rank 1, which calls `odd`. Returns when all have joined.
std::vector<RankProcess> start(const std::string& backend, const std::string& timeout,
                               const std::string& common, const std::string& odd) {
  const auto port = std::to_string(reserved_port());
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back(std::vector<std::string>{backend, port, std::to_string(rank),
                                                std::to_string(kRanks), timeout,
                                                rank == 1 ? odd : common});
  for (const auto& rank : ranks)
    REQUIRE(rank.line() == "running");
  return ranks;
}

std::set<std::string> names_in(const char* folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().find("troupe-collectives") != std::string::npos)
      names.insert(entry.path().filename());
  return names;
}

} // namespace

TEST_CASE(
    "A rank killed during a large all_reduce is named by all survivors and leaves nothing behind") {
  for (const auto& backend : backends()) {
    CAPTURE(backend);
    auto ranks = start(backend, "30000", "loop:" + kLarge, "loop:" + kLarge);
    ranks[1].signal(SIGKILL);
    std::vector<std::string> said;
    for (const int survivor : {0, 2})
      said.push_back(ranks[static_cast<std::size_t>(survivor)].line());
    CAPTURE(said[0]);
    for (const auto& text : said) {
      CHECK(has(text, "all_reduce #"));
      CHECK(has(text, "rank 1 died or left"));
    }
    if (backend == "shared_memory") // over TCP, two ranks may detect it at the same time
      CHECK(said[1] == said[0]);
    for (auto& rank : ranks)
      rank.exit_status();
    CHECK(names_in("/dev/shm").empty());
  }
}

TEST_CASE("A frozen rank is named at the deadline and gets that error when it resumes") {
  for (const auto& backend : backends()) {
    CAPTURE(backend);
    auto ranks = start(backend, "1500", "loop:" + kLarge, "loop:" + kLarge);
    ranks[1].signal(SIGSTOP);
    const auto first = ranks[0].line(), second = ranks[2].line();
    ranks[1].signal(SIGCONT);
    const auto late = ranks[1].line();
    for (const auto& text : {first, second}) {
      CAPTURE(text);
      CHECK(has(text, "all_reduce #"));
      CHECK((has(text, "rank 1 did not arrive within 1.5 s")
             || has(text, "rank 1 does not answer: frozen")));
    }
    CAPTURE(late);
    CHECK(has(late, "all_reduce #")); // over TCP it may see the others leave first
    if (backend == "shared_memory") {
      CHECK(second == first);
      CHECK(late == first);
    }
  }
}

TEST_CASE("A rank whose call differs is named on all ranks") {
  struct Odd {
    const char* call;
    const char* named;
  };
  for (const auto& backend : backends())
    for (const auto& [call, named] :
         {Odd{"barrier", "collective #1: ranks 0, 2 all_reduce sum float32 [1000], rank 1 barrier"},
          Odd{"sum:999", "ranks 0, 2 sum float32 [1000], rank 1 sum float32 [999]"},
          Odd{"long:1000", "ranks 0, 2 sum float32 [1000], rank 1 sum int64 [1000]"},
          Odd{"mean:1000", "ranks 0, 2 sum float32 [1000], rank 1 mean float32 [1000]"}}) {
      CAPTURE(backend);
      auto ranks = start(backend, "30000", "sum:1000", call);
      for (auto& rank : ranks) {
        const auto said = rank.line();
        CAPTURE(said);
        CHECK(has(said, named));
        CHECK(WEXITSTATUS(rank.exit_status()) == 3);
      }
    }
}

TEST_CASE("A rank that ends early is named by the waiting ranks, and no rank hangs") {
  for (const auto& backend : backends()) {
    CAPTURE(backend);
    auto ranks = start(backend, "30000", "loop:" + kLarge, "sum:" + kLarge);
    CHECK(ranks[1].line() == "done");
    for (const int survivor : {0, 2}) {
      const auto said = ranks[static_cast<std::size_t>(survivor)].line();
      CAPTURE(said);
      CHECK(has(said, "all_reduce #2"));
      CHECK((has(said, "rank 1 died or left") || has(said, "rank 1 has left")));
    }
  }
}

} // namespace troupe::collectives
