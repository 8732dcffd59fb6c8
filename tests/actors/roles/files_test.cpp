#include "tests/doctest_torch.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "actors/roles/files.hpp"
#include "actors/run/checkpointer_actor.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> some_bytes() {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 1000; ++i)
    bytes.push_back(static_cast<std::byte>(i * 7));
  return bytes;
}

TEST_CASE("A file is read back unchanged") {
  const TemporaryFolder folder;
  write_file(folder / "state", some_bytes());
  CHECK((read_file(folder / "state")
         == some_bytes())); // parentheses hide LibTorch's operator<< from doctest
  CHECK_FALSE(fs::exists(folder / "state.partial"));
}

TEST_CASE("A truncated file and a file with a flipped bit are refused") {
  const TemporaryFolder folder;
  const fs::path path = folder / "state";
  write_file(path, some_bytes());
  const std::string whole = read_text(path);
  for (std::size_t size = 0; size < whole.size(); size += 37) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    CHECK_THROWS_WITH_AS(read_file(path), doctest::Contains("state"), std::runtime_error);
  }
  for (std::size_t at = 0; at < whole.size(); at += 41) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    std::ofstream(path, std::ios::binary) << damaged;
    CHECK_THROWS_WITH_AS(read_file(path), doctest::Contains("damaged"), std::runtime_error);
  }
}

ino_t inode_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_ino;
}

TEST_CASE("A reserved file alternates between the space of two files") {
  const TemporaryFolder folder;
  const fs::path path = folder / "state", spare = folder / "state.spare";
  auto bytes = some_bytes();
  write_reserved_file(path, bytes);
  const ino_t first = inode_of(path), second = inode_of(spare);
  for (const int number : {1, 2, 3}) {
    bytes[0] = static_cast<std::byte>(number);
    write_reserved_file(path, bytes);
    CHECK((read_file(path) == bytes));
    CHECK(inode_of(path) == (number % 2 == 0 ? first : second));
    CHECK(inode_of(spare) == (number % 2 == 0 ? second : first));
  }
  bytes.push_back({});
  write_reserved_file(path, bytes);
  CHECK((read_file(path) == bytes));
  fs::remove(spare);
  bytes[0] = std::byte{9};
  write_reserved_file(path, bytes);
  CHECK((read_file(path) == bytes));
  remove_reserved_file(path);
  CHECK(fs::is_empty(folder.path()));
  CHECK_NOTHROW(remove_reserved_file(path));
}

TEST_CASE("A full disk is reported and leaves the old file unchanged") {
  if (!fs::exists("/dev/full")) {
    MESSAGE("skipped: no /dev/full here");
    return;
  }
  const TemporaryFolder folder;
  const fs::path path = folder / "state";
  write_file(path, some_bytes());
  fs::create_symlink("/dev/full", folder / "state.partial");
  CHECK_THROWS_WITH_AS(write_file(path, std::vector<std::byte>(1 << 20)),
                       doctest::Contains("No space left"), std::runtime_error);
  CHECK((read_file(path) == some_bytes())); // parentheses hide LibTorch's operator<< from doctest
}

TEST_CASE("The latest checkpoint is the complete one with the most updates") {
  const TemporaryFolder folder;
  CHECK(latest_checkpoint(folder.path()).empty());
  for (const char* name : {"900", "1000", "2000", "junk", ".3000.partial"})
    fs::create_directories(folder / "checkpoints" / name);
  for (const char* name : {"900", "1000", "junk"})
    std::ofstream(folder / "checkpoints" / name / "manifest.json") << "{}";
  CHECK(latest_checkpoint(folder.path()) == folder / "checkpoints" / "1000");
}

TEST_CASE("A manifest that is foreign, has another version or names a file of the wrong size is "
          "refused") {
  const TemporaryFolder folder;
  const fs::path manifest = folder / "manifest.json";
  CHECK_THROWS_WITH_AS(read_manifest(folder.path()), doctest::Contains("not a complete checkpoint"),
                       std::runtime_error);
  std::ofstream(manifest) << "not JSON";
  CHECK_THROWS_WITH_AS(read_manifest(folder.path()), doctest::Contains("not a manifest"),
                       std::runtime_error);
  std::ofstream(manifest) << R"({"version": 99})";
  CHECK_THROWS_WITH_AS(read_manifest(folder.path()), doctest::Contains("version 99"),
                       std::runtime_error);
  std::ofstream(manifest)
      << R"({"version": 2, "files": [{"name": "learner.safetensors", "bytes": "10"}]})";
  CHECK_THROWS_WITH_AS(read_manifest(folder.path()), doctest::Contains("is missing"),
                       std::runtime_error);
  std::ofstream(folder / "learner.safetensors") << "short";
  CHECK_THROWS_WITH_AS(read_manifest(folder.path()), doctest::Contains("has 5"),
                       std::runtime_error);
  std::ofstream(folder / "learner.safetensors") << "0123456789";
  CHECK(read_manifest(folder.path()).files_size() == 1);
}

} // namespace
} // namespace troupe::actors
