#include "tests/folders.hpp"
#include "tests/learner/transparent/trainer_run.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

using namespace troupe;
using namespace troupe::learner::transparent;

namespace {

/// A run of two ranks that would take days. The constructor returns when both have made two steps.
struct LongRun {
  TemporaryFolder folder;
  Program program;
  int process[2] = {-1, -1};

  explicit LongRun(const std::vector<std::string>& flags = {})
      : program(words(flags), folder.path()) {
    REQUIRE(program.read_until([](const std::string& text) {
      return has(text, "[0] step 2") && has(text, "[1] step 2");
    }));
    for (int rank = 0; rank < 2; ++rank) {
      const auto lines =
          lines_of(program.output(), '[' + std::to_string(rank) + "] step 2 process");
      process[rank] = std::stoi(lines.at(0).substr(lines.at(0).rfind(' ')));
    }
  }

  static std::vector<std::string> words(const std::vector<std::string>& flags) {
    std::vector<std::string> all{in_build("troupe"), "transparent", "-n", "2", "--output", "all"};
    all.insert(all.end(), flags.begin(), flags.end());
    for (const std::string& word : {std::string("--"), style("small_style"), std::string("sgd"),
                                    std::string("16"), std::string("2000000000")})
      all.push_back(word);
    return all;
  }

  bool all_gone() const { return ::kill(process[0], 0) != 0 && ::kill(process[1], 0) != 0; }
};

} // namespace

TEST_CASE("If a rank is killed, all ranks end, and the last line names it") {
  for (const int rank : {0, 1}) {
    LongRun run;
    ::kill(run.process[rank], SIGKILL);
    CHECK(run.program.wait() == 1);
    CAPTURE(run.program.output());
    CHECK(has(run.program.last_line(), "rank " + std::to_string(rank) + " of 2 (process "
                                           + std::to_string(run.process[rank])
                                           + ") was killed by signal 9 (Killed)"));
    CHECK(run.all_gone());
  }
}

TEST_CASE("A frozen rank is named at the deadline") {
  LongRun run({"--timeout", "3"});
  ::kill(run.process[1], SIGSTOP);
  CHECK(run.program.wait() == 1);
  CAPTURE(run.program.output());
  CHECK(has(run.program.last_line(), "rank 0 of 2"));
  CHECK(has(run.program.last_line(), "rank 1"));
  CHECK(run.all_gone());
}

TEST_CASE("SIGTERM ends all ranks") {
  LongRun run;
  run.program.send(SIGTERM);
  CHECK(run.program.wait() == 1);
  CAPTURE(run.program.output());
  CHECK(has(run.program.last_line(), "stopped by signal 15"));
  CHECK(run.all_gone());
}

TEST_CASE("A rank that ends before the others is reported as an error") {
  const TemporaryFolder folder;
  const auto run = run_ranks(2, {style("small_style"), "sgd", "16", "8", "lead"}, folder);
  CAPTURE(run.outcome.output);
  CHECK(run.outcome.exit_code == 1);
  CHECK(has(run.outcome.output, "program ended after 4 steps, but another rank continues"));
  CHECK(has(run.outcome.output, "step 5 of optimizer 1 (SGD)"));
  CHECK(has(run.outcome.last_line, "ended with exit code 1: "));
}

TEST_CASE("An error of the program on one rank is reported as the cause") {
  const TemporaryFolder folder;
  const auto thrown = run_ranks(3, {style("small_style"), "sgd", "8", "8", "throw"}, folder);
  CAPTURE(thrown.outcome.output);
  CHECK(thrown.outcome.exit_code == 1);
  CHECK(has(thrown.outcome.last_line, "was killed by signal 6 (Aborted)"));
  CHECK(has(thrown.outcome.last_line, "the data are on fire"));

  std::filesystem::remove_all(folder / "lead");
  const auto left = run_ranks(2, {style("small_style"), "sgd", "16", "8", "exit"}, folder);
  CAPTURE(left.outcome.output);
  CHECK(left.outcome.exit_code == 1);
  CHECK(has(left.outcome.output, "exit code 3"));
}

TEST_CASE("Parameters that diverge are detected and reported with the rank and the step") {
  const TemporaryFolder folder;
  const auto run = run_ranks(2, {style("small_style"), "sgd", "16", "30", "noise"}, folder,
                             {"--check-every", "10"});
  CAPTURE(run.outcome.output);
  CHECK(run.outcome.exit_code == 1);
  CHECK(has(run.outcome.last_line,
            "before step 11 of optimizer 1 (SGD) the parameters of rank 1 were no longer"));
  CHECK(run_ranks(2, {style("small_style"), "sgd", "16", "30", "noise"}, folder,
                  {"--check-every", "0"})
            .outcome.exit_code
        == 0);
}

TEST_CASE("A command that cannot be run is refused with an explanation") {
  const TemporaryFolder folder;
  std::ofstream(folder / "script") << "#!/bin/sh\n";
  std::ofstream(folder / "text") << "text";
  ::chmod((folder / "script").c_str(), 0755);
  std::filesystem::copy(style("small_style"), folder / "setuid");
  ::chmod((folder / "setuid").c_str(), 04755);
  struct Mistake {
    std::vector<std::string> words;
    std::string part; // expected in the last line
  };
  std::vector<Mistake> mistakes{
      {{"-n", "0", "--", style("small_style")}, "-n"},
      {{"-n", "two", "--", style("small_style")}, "-n"},
      {{"-n", "2"}, "PROGRAM"},
      {{"--", style("small_style")}, "-n is missing"},
      {{"-n", "2", "--batch", "half", "--", style("small_style")}, "--batch"},
      {{"-n", "2", "--backend", "pigeon", "--", style("small_style")}, "--backend"},
      {{"-n", "2", "--timeout", "0", "--", style("small_style")}, "--timeout"},
      {{"-n", "2", "--", "./nowhere"}, "does not exist"},
      {{"-n", "2", "--", "no-such-program"}, "is not on the PATH"},
      {{"-n", "2", "--", "./text"}, "is not executable"},
      {{"-n", "2", "--", "./script"}, "a script cannot be made data-parallel"},
      {{"-n", "2", "--", "./setuid"}, "is setuid or setgid"},
      {{"-n", "2", "--", "/bin/ls"}, "is not linked to LibTorch"}};
  if (std::filesystem::exists("/sbin/ldconfig")) // static, in Debian
    mistakes.push_back({{"-n", "2", "--", "/sbin/ldconfig"}, "ldconfig is"});
  for (Mistake& mistake : mistakes) {
    mistake.words.insert(mistake.words.begin(), "transparent");
    const auto outcome = experiments::run_troupe(mistake.words, folder.path());
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(has(outcome.last_line, mistake.part));
  }
  const auto help = experiments::run_troupe({"transparent", "--help"});
  CHECK(help.exit_code == 0);
  CHECK(has(help.output, "Example: troupe transparent -n 4 -- ./trainer"));
}
