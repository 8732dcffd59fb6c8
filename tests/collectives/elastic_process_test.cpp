#include "tests/doctest_torch.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>

#include <spawn.h>
#include <sys/wait.h>

#include "collectives/rendezvous.hpp"
#include "tests/collectives/ranks.hpp"

namespace troupe::collectives {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Members as processes, around a rendezvous that this one serves.
class Members {
public:
  /// `size` founders who train `steps` steps of a model of `elements` numbers.
  Members(int size, int steps, std::int64_t elements, int min_size = 1,
          const std::string& backend = "gloo")
      : server_("127.0.0.1", 0), store_(connect_rendezvous("127.0.0.1", server_.port(), {})) {
    store_->set("task", std::to_string(size) + " " + std::to_string(steps) + " "
                            + std::to_string(elements) + " " + std::to_string(min_size) + " "
                            + backend);
    for (int rank = 0; rank < size; ++rank)
      start(std::to_string(rank));
  }
  ~Members() {
    for (const auto& [name, child] : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }

  void start(const std::string& name) {
    std::string program = std::string(TROUPE_BINARY_DIR) + "/tests/collectives/elastic_process";
    std::string host = "127.0.0.1", port = std::to_string(server_.port()), last = name;
    char* arguments[] = {program.data(), host.data(), port.data(), last.data(), nullptr};
    pid_t child = 0;
    REQUIRE(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) == 0);
    children_[name] = child;
  }

  /// Waits until the member is about to reduce at this step.
  void wait_for(const std::string& name, int step) {
    store_->wait({"at/" + name + "/" + std::to_string(step)}, milliseconds(20'000));
  }
  void signal(const std::string& name, int number) { kill(children_.at(name), number); }

  std::string result(const std::string& name) {
    try {
      store_->wait({"result/" + name}, milliseconds(40'000));
    } catch (const std::exception&) {
      siginfo_t about{};
      waitid(P_PID, static_cast<id_t>(children_.at(name)), &about, WEXITED | WNOHANG | WNOWAIT);
      const std::string end = about.si_pid == 0             ? "still runs"
                              : about.si_code == CLD_EXITED ? "has ended"
                                                            : "was killed by signal ";
      FAIL("member " << name << " gives no result: it " << end << about.si_status);
    }
    return store_->get_to_str("result/" + name);
  }

private:
  RendezvousServer server_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::map<std::string, pid_t> children_;
};

std::string bits_of(const std::string& result) {
  const auto at = result.find("bits ");
  return at == std::string::npos ? result : result.substr(at, result.find(' ', at + 5) - at);
}

double seconds_to_regroup(const std::string& result) {
  const auto at = result.find("took ");
  return at == std::string::npos ? 0 : std::atof(result.c_str() + at + 5);
}

/// All that are named ended at `step` in a group of `size` with the same bits.
void check_agreement(Members& members, const std::vector<std::string>& names, int step) {
  const auto head = "done " + std::to_string(step) + " size " + std::to_string(names.size()) + " ";
  const auto first = members.result(names[0]);
  for (const auto& name : names) {
    const auto result = members.result(name);
    CAPTURE(name);
    CAPTURE(result);
    CHECK(result.starts_with(head));
    CHECK(bits_of(result) == bits_of(first));
  }
}

constexpr int kSteps = 12;
constexpr std::int64_t kLarge = 4'000'000; // 16 MB: the signal falls into the reduction

} // namespace

TEST_SUITE_BEGIN("elastic processes" * doctest::skip(kGlooSkipped));

TEST_CASE("survivors of a kill -9 in the middle of an all_reduce go on with equal parameters") {
  Members members(3, kSteps, kLarge);
  members.wait_for("2", 4);
  members.signal("2", SIGKILL);
  check_agreement(members, {"0", "1"}, kSteps);
  CHECK(has(members.result("0"), "left:1"));
  CHECK(seconds_to_regroup(members.result("0"))
        < 4); // at once: half of the deadline for the frozen
}

TEST_CASE("survivors of a kill -9 go on over shared memory and over two levels of hosts") {
  for (const char* backend : {"shared_memory", "hierarchical"}) {
    CAPTURE(backend);
    Members members(4, kSteps, kLarge / 4, 1, backend);
    members.wait_for("2", 4);
    members.signal("2", SIGKILL);
    check_agreement(members, {"0", "1", "3"}, kSteps);
  }
}

TEST_CASE("survivors go on when rank 0 is killed") {
  Members members(3, kSteps, kLarge);
  members.wait_for("0", 4);
  members.signal("0", SIGKILL);
  check_agreement(members, {"1", "2"}, kSteps);
}

TEST_CASE("two killed at once leave two who go on") {
  Members members(4, kSteps, kLarge / 4);
  members.wait_for("1", 3);
  members.signal("1", SIGKILL);
  members.signal("3", SIGKILL);
  check_agreement(members, {"0", "2"}, kSteps);
}

TEST_CASE("one killed while the survivors regroup leaves the rest to go on") {
  Members members(4, kSteps, kLarge / 4);
  members.wait_for("1", 3);
  members.signal("3", SIGSTOP); // noticed late: the others wait for it in the regrouping
  members.signal("1", SIGKILL);
  members.signal("3", SIGKILL);
  check_agreement(members, {"0", "2"}, kSteps);
}

TEST_CASE("a newcomer is let in at a step boundary and ends with the others' bits") {
  Members members(2, 200, kLarge / 4);
  members.wait_for("0", 2);
  members.start("joins");
  check_agreement(members, {"0", "1", "joins"}, 200);
}

TEST_CASE("a newcomer during a failure is let in by the survivors") {
  Members members(3, 200, kLarge / 4);
  members.wait_for("0", 2);
  members.start("joins");
  members.signal("1", SIGKILL);
  check_agreement(members, {"0", "2", "joins"}, 200);
}

TEST_CASE("a frozen member that wakes up late is told that it is out and gives no number") {
  Members members(3, kSteps, kLarge / 4);
  members.wait_for("1", 4);
  members.signal("1", SIGSTOP);
  check_agreement(members, {"0", "2"}, kSteps);
  members.signal("1", SIGCONT);
  const auto result = members.result("1");
  CAPTURE(result);
  CHECK(has(result, "left out"));
  CHECK(has(result, "join again as a newcomer"));
}

TEST_CASE("too few survivors end with words") {
  Members members(2, kSteps, kLarge / 4, 2);
  members.wait_for("1", 4);
  members.signal("1", SIGKILL);
  const auto result = members.result("0");
  CAPTURE(result);
  CHECK(has(result, "1 of 2 members are left, but min_size is 2"));
}

TEST_SUITE_END();

} // namespace troupe::collectives
