#include "env/appended_file.hpp"
#include "tests/full_disk.hpp"
#include "tests/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <stdexcept>
#include <string>

namespace troupe::env {
namespace {

TEST_CASE("Records are appended to the existing content of a file") {
  const TemporaryFolder folder;
  std::ofstream(folder / "f") << "old ";
  AppendedFile file(folder / "f");
  AppendedFile another(folder / "f");
  CHECK(file.append("one "));
  CHECK(another.append("two "));
  CHECK(file.append("three"));
  CHECK(read_text(folder / "f") == "old one two three");
  CHECK_FALSE(file.news());
  CHECK_THROWS_WITH_AS(AppendedFile(folder / "none" / "f"),
                       doctest::Contains("f: cannot be written: No such file"), std::runtime_error);
}

TEST_CASE("Records wait while the disk is full, including one that was written in part") {
  const TemporaryFolder folder;
  AppendedFile file(folder / "f");
  file.append("first ");
  {
    const FullDisk full(9);
    CHECK(file.append("second "));
    CHECK(read_text(folder / "f") == "first sec");
    CHECK(file.append("third"));
    CHECK(file.flush().find("f: cannot be written: ") != std::string::npos);
    CHECK(file.news().value_or("").find("up to 4 MiB of records are kept") != std::string::npos);
    CHECK_FALSE(file.news()); // reported once
  }
  CHECK(file.flush().empty());
  CHECK(read_text(folder / "f") == "first second third");
  CHECK(file.news().value_or("").find("f: is written again; 2 records waited and 0 were dropped")
        != std::string::npos);
  CHECK_FALSE(file.news());
}

TEST_CASE("Waiting records are bounded in size, and dropped records are counted") {
  const TemporaryFolder folder;
  AppendedFile file(folder / "f");
  const std::string half(AppendedFile::kMostWaiting / 2, 'x');
  {
    const FullDisk full;
    CHECK(file.append(half));
    CHECK(file.append(half));
    CHECK_FALSE(file.append("y"));
    CHECK_FALSE(file.append("y"));
    CHECK(file.news());
  }
  CHECK(file.append("z"));
  CHECK(read_text(folder / "f") == half + half + "z");
  CHECK(file.news().value_or("").find("2 records waited and 2 were dropped") != std::string::npos);
}

} // namespace
} // namespace troupe::env
