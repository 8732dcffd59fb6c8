#include "env/whole_file.hpp"
#include "tests/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace troupe::env {
namespace {

namespace fs = std::filesystem;

void write_whole(const fs::path& path, const std::string& text) {
  WholeFileWriter file(path);
  file.write(text.data(), text.size());
  file.commit();
}

TEST_CASE("A committed file replaces the old one and leaves no partial file") {
  const TemporaryFolder folder;
  write_whole(folder / "f", "old");
  write_whole(folder / "f", "new and longer");
  CHECK(read_text(folder / "f") == "new and longer");
  CHECK_FALSE(fs::exists(folder / "f.partial"));
}

TEST_CASE("A file that is not committed keeps the old one and leaves no partial file") {
  const TemporaryFolder folder;
  write_whole(folder / "f", "old");
  {
    WholeFileWriter file(folder / "f");
    file.write("half", 4);
    CHECK(fs::exists(file.partial()));
  }
  CHECK(read_text(folder / "f") == "old");
  CHECK_FALSE(fs::exists(folder / "f.partial"));
}

TEST_CASE("The error about a full disk or a missing folder gives the system's reason") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(WholeFileWriter(folder / "none" / "f"), doctest::Contains("No such file"),
                       std::runtime_error);
  if (!fs::exists("/dev/full")) {
    MESSAGE("skipped: no /dev/full here");
    return;
  }
  write_whole(folder / "f", "old");
  fs::create_symlink("/dev/full", folder / "f.partial");
  CHECK_THROWS_WITH_AS(write_whole(folder / "f", "new"), doctest::Contains("No space left"),
                       std::runtime_error);
  CHECK(read_text(folder / "f") == "old");
}

TEST_CASE("A reader counts the remaining bytes and refuses to read past the end") {
  const TemporaryFolder folder;
  write_whole(folder / "f", "0123456789");
  FileReader file(folder / "f");
  char bytes[8] = {};
  CHECK(file.left() == 10);
  REQUIRE(file.read(bytes, 8));
  CHECK(std::string(bytes, 8) == "01234567");
  CHECK(file.left() == 2);
  CHECK_FALSE(file.read(bytes, 3));
  CHECK(file.read(bytes, 2));
  CHECK(file.left() == 0);
}

TEST_CASE("Reading fails if the file has shrunk since it was opened") {
  const TemporaryFolder folder;
  write_whole(folder / "f", "0123456789");
  FileReader file(folder / "f");
  fs::resize_file(folder / "f", 4);
  char bytes[10] = {};
  CHECK_FALSE(file.read(bytes, 10));
}

TEST_CASE("A missing file and a directory cannot be read") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(FileReader(folder / "none"), doctest::Contains("none"), std::runtime_error);
  CHECK_THROWS_WITH_AS(FileReader(folder.path()), doctest::Contains("Is a directory"),
                       std::runtime_error);
}

} // namespace
} // namespace troupe::env
