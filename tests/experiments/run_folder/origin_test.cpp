#include "experiments/run_folder/origin.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "tests/scoped_variable.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {

struct Repository {
  int git(const std::string& words) const {
    const std::string where = "git -C " + folder.path().string();
    return std::system((where + " -c user.name=t -c user.email=t@example.org " + words + " > "
                        + (folder / "git.log").string() + " 2>&1")
                           .c_str());
  }
  Origin origin() const { return present_origin("1.2.3", folder.path()); }
  void write(const std::string& text) const { std::ofstream(folder / "agent.cpp") << text; }

  TemporaryFolder folder;
};

} // namespace

TEST_CASE("A run's origin has the commit and the number of files that differ from it") {
  const Repository repository;
  const Origin outside = repository.origin();
  CHECK(outside.commit_text().empty());
  CHECK(outside.version == "1.2.3");
  CHECK(outside.cores > 0);
  CHECK(has(outside.command, "experiments_run_folder_test"));
  REQUIRE(repository.git("init") == 0);
  CHECK(repository.origin().commit.empty()); // nothing is committed yet
  repository.write("one");
  REQUIRE(repository.git("add agent.cpp") == 0);
  REQUIRE(repository.git("commit -m first") == 0);
  const Origin clean = repository.origin();
  CHECK(clean.commit.size() == 40);
  CHECK(clean.changed_files == 0); // git.log is not Git's
  CHECK(clean.commit_text() == clean.commit.substr(0, 12));
  repository.write("two");
  const Origin changed = repository.origin();
  CHECK(changed.commit == clean.commit);
  CHECK(changed.commit_text() == clean.commit.substr(0, 12) + " and 1 changed file");
}

TEST_CASE("An origin survives a round trip, and a damaged file gives no origin") {
  const TemporaryFolder folder;
  CHECK_FALSE(read_origin(folder.path()));
  Origin origin{.version = "1", .command = "train \xff", .processor = "P", .commit = "abc"};
  origin.cores = 3;
  origin.changed_files = 2;
  write_origin(folder.path(), origin);
  const auto read = read_origin(folder.path());
  REQUIRE(read);
  CHECK(read->commit_text() == "abc and 2 changed files");
  CHECK(read->cores == 3);
  CHECK(has(read->command, "train "));
  for (const char* text : {"", "[]", "{", R"({"version": 1})", R"({"version": "1"})"}) {
    std::ofstream(folder / "origin.json") << text;
    CHECK_FALSE(read_origin(folder.path()));
  }
}

TEST_CASE("The commit is left out if Git is not on the path or hangs") {
  const TemporaryFolder folder;
  const ScopedVariable path("PATH", folder.path().string());
  CHECK(present_origin("1").commit.empty());
  std::ofstream(folder / "git") << "#!/bin/sh\nkill -STOP $$\n";
  fs::permissions(folder / "git", fs::perms::owner_all);
  CHECK(present_origin("1").commit.empty());
}
