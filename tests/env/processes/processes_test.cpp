#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "env/processes/forked.hpp"
#include "env/processes/start_program.hpp"
#include "tests/scoped_variable.hpp"

namespace troupe {
namespace {

int end_of(pid_t child) {
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

} // namespace

TEST_CASE("A child process gets its signal when the thread that started it ends") {
  std::array<int, 2> ends{-1, -1};
  REQUIRE(::pipe(ends.data()) == 0);
  pid_t child = -1;
  std::thread([&] {
    child = start_child(SIGTERM, [&] {
      (void)!::write(ends[1], "", 1);
      for (;;)
        ::pause();
    });
    char begun = 0;
    (void)!::read(ends[0], &begun, 1);
  }).join();
  REQUIRE(child > 0);
  const int status = end_of(child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("A child process ends with the exit code that its function returns, otherwise with 1") {
  const int status = status_of_child([] { return 7; });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(WEXITSTATUS(end_of(start_child(SIGKILL, [] {}))) == 1);
}

TEST_CASE("A program gets the given variables in place of this process's, and the others as well") {
  const ScopedVariable replaced("TROUPE_TEST_REPLACED", "old");
  const ScopedVariable kept("TROUPE_TEST_KEPT", "kept");
  const pid_t child = start_program(
      {"sh", "-c", "exec test \"$TROUPE_TEST_REPLACED $TROUPE_TEST_KEPT\" = 'new kept'"},
      {"TROUPE_TEST_REPLACED=new"});
  REQUIRE(child > 0);
  CHECK(end_of(child) == 0);
  CHECK(start_program({"troupe-no-such-program"}) == -1);
}

} // namespace troupe
