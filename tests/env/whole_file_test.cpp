#include "env/whole_file.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace troupe::env {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path =
      fs::temp_directory_path() / ("troupe_whole_file_test_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_whole(const fs::path& path, const std::string& text) {
  WholeFileWriter file(path);
  file.write(text.data(), text.size());
  file.commit();
}

TEST_CASE("a committed file replaces the old one and leaves nothing beside it") {
  const Folder folder;
  write_whole(folder.path / "f", "old");
  write_whole(folder.path / "f", "new and longer");
  CHECK(text_of(folder.path / "f") == "new and longer");
  CHECK_FALSE(fs::exists(folder.path / "f.partial"));
}

TEST_CASE("a file that is not committed leaves the old one and nothing of itself") {
  const Folder folder;
  write_whole(folder.path / "f", "old");
  {
    WholeFileWriter file(folder.path / "f");
    file.write("half", 4);
    CHECK(fs::exists(file.partial()));
  }
  CHECK(text_of(folder.path / "f") == "old");
  CHECK_FALSE(fs::exists(folder.path / "f.partial"));
}

TEST_CASE("a full disk and a missing folder are named with the system's reason") {
  const Folder folder;
  CHECK_THROWS_WITH_AS(WholeFileWriter(folder.path / "none" / "f"),
                       doctest::Contains("No such file"), std::runtime_error);
  if (!fs::exists("/dev/full")) {
    MESSAGE("skipped: no /dev/full here");
    return;
  }
  write_whole(folder.path / "f", "old");
  fs::create_symlink("/dev/full", folder.path / "f.partial");
  CHECK_THROWS_WITH_AS(write_whole(folder.path / "f", "new"), doctest::Contains("No space left"),
                       std::runtime_error);
  CHECK(text_of(folder.path / "f") == "old");
}

TEST_CASE("a reader counts what is left and refuses to read past the end") {
  const Folder folder;
  write_whole(folder.path / "f", "0123456789");
  FileReader file(folder.path / "f");
  char bytes[8] = {};
  CHECK(file.left() == 10);
  REQUIRE(file.read(bytes, 8));
  CHECK(std::string(bytes, 8) == "01234567");
  CHECK(file.left() == 2);
  CHECK_FALSE(file.read(bytes, 3));
  CHECK(file.read(bytes, 2));
  CHECK(file.left() == 0);
}

TEST_CASE("a file that shrinks while it is read is short, not garbage") {
  const Folder folder;
  write_whole(folder.path / "f", "0123456789");
  FileReader file(folder.path / "f");
  fs::resize_file(folder.path / "f", 4);
  char bytes[10] = {};
  CHECK_FALSE(file.read(bytes, 10));
}

TEST_CASE("what is no file cannot be read") {
  const Folder folder;
  CHECK_THROWS_WITH_AS(FileReader(folder.path / "none"), doctest::Contains("none"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(FileReader(folder.path), doctest::Contains("Is a directory"),
                       std::runtime_error);
}

} // namespace
} // namespace troupe::env
