#include "tests/folders.hpp"
#include "tests/learner/transparent/trainer_run.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "tests/scoped_variable.hpp"

using namespace troupe;
using namespace troupe::learner::transparent;

namespace {

void check_equal_ranks(const RunOfRanks& run, const std::string& prefix) {
  CAPTURE(run.outcome.output);
  CHECK(run.outcome.exit_code == 0);
  for (const std::string& rank : run.ranks) {
    CHECK_FALSE(lines_of(rank, prefix).empty());
    CHECK(lines_of(rank, prefix) == lines_of(run.ranks[0], prefix));
  }
}

/// What two ranks of small_style print under mpirun; nothing if there is no mpirun.
std::optional<Outcome> run_with_mpirun(const std::vector<std::string>& flags,
                                       const std::string& steps, const TemporaryFolder& folder) {
  if (std::system("mpirun --version > /dev/null 2>&1") != 0) {
    MESSAGE("skipped: there is no mpirun");
    return std::nullopt;
  }
  const ScopedVariable allowed("OMPI_ALLOW_RUN_AS_ROOT", "1");
  const ScopedVariable confirmed("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  std::vector<std::string> words{"mpirun", "--oversubscribe", "-np", "2"};
  words.insert(words.end(), flags.begin(), flags.end());
  for (const auto& word : {in_build("troupe"), std::string("transparent"), std::string("--"),
                           style("small_style"), std::string("sgd"), std::string("16"), steps})
    words.push_back(word);
  const Outcome both = run_alone(words, folder);
  CAPTURE(both.output);
  CHECK(both.exit_code == 0);
  return both;
}

/// The sample numbers that dcgan_style printed in each epoch.
std::vector<std::vector<int>> epochs_of(const std::string& text) {
  std::vector<std::vector<int>> epochs;
  for (const std::string& line : lines_of(text, "samples")) {
    std::istringstream in(line.substr(7));
    epochs.emplace_back();
    for (int sample = 0; in >> sample;)
      epochs.back().push_back(sample);
  }
  return epochs;
}

} // namespace

TEST_CASE("Two ranks on half a batch each train as one on the whole, with every optimizer") {
  const TemporaryFolder folder;
  for (const std::string name : {"sgd", "adam", "adamw", "rmsprop", "adagrad", "lbfgs"}) {
    CAPTURE(name);
    const auto alone = run_alone({style("small_style"), name, "32", "20"}, folder);
    const auto both = run_ranks(2, {style("small_style"), name, "16", "20"}, folder);
    check_equal_ranks(both, "parameter ");
    // A line search amplifies rounding.
    CHECK(largest_difference(numbers_of(alone.output, "parameter "),
                             numbers_of(both.ranks[0], "parameter "))
          < (name == "lbfgs" ? 0.05 : 2e-4));
  }
}

TEST_CASE("Four ranks over TCP train as one, as do two ranks that divide the batch") {
  const TemporaryFolder folder;
  const auto alone = run_alone({style("small_style"), "sgd", "32", "40"}, folder);
  const auto four =
      run_ranks(4, {style("small_style"), "sgd", "8", "40"}, folder, {"--backend", "tcp"});
  const auto divided =
      run_ranks(2, {style("small_style"), "sgd", "32", "40"}, folder, {"--batch", "divide"});
  for (const auto& run : {four, divided}) {
    check_equal_ranks(run, "parameter ");
    CHECK(largest_difference(numbers_of(alone.output, "parameter "),
                             numbers_of(run.ranks[0], "parameter "))
          < 2e-4);
  }
}

TEST_CASE("Gradients of several backward passes are averaged once") {
  const TemporaryFolder folder;
  const auto alone = run_alone({style("small_style"), "sgd", "32", "20"}, folder);
  const auto both = run_ranks(2, {style("small_style"), "sgd", "16", "20", "accumulate"}, folder);
  check_equal_ranks(both, "parameter ");
  CHECK(largest_difference(numbers_of(alone.output, "parameter "),
                           numbers_of(both.ranks[0], "parameter "))
        < 2e-4);
}

TEST_CASE(
    "A parameter without gradients keeps none, and one with a gradient on one rank counts on all") {
  const TemporaryFolder folder;
  const auto both = run_ranks(2, {style("small_style"), "adam", "16", "30", "unused"}, folder);
  check_equal_ranks(both, "parameter ");
  CHECK(numbers_of(both.ranks[0], "unused gradients:") == std::vector<double>{0});
  CHECK(numbers_of(both.ranks[0], "parameter never") == std::vector<double>{1, 1, 1});
  CHECK(numbers_of(both.ranks[0], "parameter sometimes")[0] < 1);
}

TEST_CASE("Ranks with different initial parameters start from rank 0's") {
  const TemporaryFolder folder;
  check_equal_ranks(run_ranks(3, {style("small_style"), "adam", "8", "10", "clock"}, folder),
                    "parameter ");
}

TEST_CASE(
    "A program with two optimizers, batch norm and workers trains on different samples per rank") {
  const TemporaryFolder folder;
  const auto run = run_ranks(2, {style("dcgan_style"), folder.path().string(), "20"}, folder,
                             {"--rank0-writes"});
  check_equal_ranks(run, "generator ");
  check_equal_ranks(run, "discriminator ");
  CHECK(lines_of(run.ranks[0], "noise ") != lines_of(run.ranks[1], "noise "));
  CHECK(std::filesystem::file_size(folder / "generator.pt") > 0);

  const auto first = epochs_of(run.ranks[0]);
  const auto second = epochs_of(run.ranks[1]);
  REQUIRE(first.size() == second.size());
  REQUIRE(first.size() > 1);
  CHECK(first[0] != first[1]); // reshuffled
  for (std::size_t epoch = 0; epoch < first.size(); ++epoch) {
    CHECK(first[epoch].size() == 125);
    std::multiset<int> seen(first[epoch].begin(), first[epoch].end());
    seen.insert(second[epoch].begin(), second[epoch].end());
    CHECK(std::set<int>(seen.begin(), seen.end()).size() == 250); // each sample once
  }
}

TEST_CASE("With --rank0-writes, only rank 0 writes files, and the others read back their own") {
  const TemporaryFolder folder;
  std::ofstream(folder / "log.txt") << "begin\n";
  std::ofstream(folder / "old.txt") << "old";
  const auto run =
      run_ranks(3, {style("small_style"), "sgd", "8", "4", "writes"}, folder, {"--rank0-writes"});
  check_equal_ranks(run, "wrote 1");
  CHECK(read_text(folder / "log.txt") == "begin\nline\n"); // written by one rank
  CHECK(std::filesystem::exists(folder / "who.txt"));
  CHECK(std::filesystem::exists(folder / "weight.pt"));
  CHECK_FALSE(std::filesystem::exists(folder / "old.txt"));
  CHECK_FALSE(std::filesystem::exists(folder / "temporary.txt"));
}

TEST_CASE("A folder that every rank removes and recreates contains what rank 0 wrote") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "ckpt/old/deep");
  std::ofstream(folder / "ckpt/old/model") << "old";
  std::ofstream(folder / "ckpt/old/deep/optimizer") << "old";
  REQUIRE(::mkfifo((folder / "go").c_str(), 0600) == 0);
  const auto run =
      run_ranks(2, {style("small_style"), "sgd", "8", "2", "renew"}, folder, {"--rank0-writes"});
  check_equal_ranks(run, "renewed, bad 0");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "ckpt"))
    names.insert(entry.path().lexically_relative(folder / "ckpt").string());
  CHECK(names
        == std::set<std::string>{"atomic", "best", "latest", "second", "whole", "whole/model"});
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    CHECK_FALSE(entry.path().filename().string().starts_with("ckpt_")); // left by mkstemp
  CHECK_FALSE(std::filesystem::exists(folder / "gone"));
  CHECK(read_text(folder / "ckpt/atomic") == "whole");
  CHECK(read_text(folder / "ckpt/whole/model") == "wei"); // one file with two names
  CHECK(std::filesystem::read_symlink(folder / "ckpt/latest") == "second");
  CHECK(std::filesystem::read_symlink(folder / "ckpt/best") == "second");
}

TEST_CASE("Processes started by mpirun train together") {
  const TemporaryFolder folder;
  const auto alone = run_alone({style("small_style"), "sgd", "32", "20"}, folder);
  const auto both = run_with_mpirun({}, "20", folder);
  if (!both)
    return;
  const auto single = numbers_of(alone.output, "parameter ");
  const auto twice = numbers_of(both->output, "parameter ");
  REQUIRE(twice.size() == 2 * single.size()); // in any order of lines
  for (const double value : single)
    CHECK(std::count_if(twice.begin(), twice.end(),
                        [&](double other) { return std::abs(other - value) < 2e-4; })
          >= 2);
}

TEST_CASE("Ranks that mpirun has not bound to cores share the threads of the host") {
  const TemporaryFolder folder;
  const ScopedVariable told("OMP_DISPLAY_ENV", "true"), free("OMP_NUM_THREADS", {});
  const auto both = run_with_mpirun({"--bind-to", "none"}, "1", folder);
  if (!both)
    return;
  const auto threads = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN) / 2);
  CHECK(has(both->output, "OMP_NUM_THREADS = '" + std::to_string(threads) + "'"));
}

TEST_CASE("Without a launcher, the library does nothing and says so") {
  const TemporaryFolder folder;
  const std::string library =
      std::string("LD_PRELOAD=") + in_build() + "/libtroupe_transparent.so ";
  const auto plain = run_alone({style("small_style"), "sgd", "16", "5"}, folder);
  const auto loaded = run_alone({"sh", "-c", library + style("small_style") + " sgd 16 5"}, folder);
  CHECK(loaded.exit_code == 0);
  CHECK(lines_of(loaded.output, "parameter ") == lines_of(plain.output, "parameter "));
  CHECK(has(loaded.output, "troupe transparent: does nothing"));
  const auto other = run_alone({"sh", "-c", library + "true"}, folder);
  CHECK(other.output.empty());
}
