#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "learner/transparent/diverted_files.hpp"
#include "learner/transparent/settings.hpp"
#include "learner/transparent/share.hpp"
#include "tests/full_disk.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::learner::transparent;

namespace {

Variables from(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? "" : found->second;
  };
}

std::string text_of(int descriptor) {
  std::string text(100, '\0');
  const ssize_t count = ::pread(descriptor, text.data(), text.size(), 0);
  return text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
}

void put(DivertedFiles& files, const std::filesystem::path& path, int flags, const char* text) {
  const auto descriptor = files.open(AT_FDCWD, path.c_str(), flags);
  REQUIRE(descriptor);
  REQUIRE(*descriptor >= 0);
  REQUIRE(::write(*descriptor, text, std::string_view(text).size()) > 0);
  ::close(*descriptor);
}

} // namespace

TEST_CASE("Settings survive a round trip through the environment") {
  Settings settings;
  settings.backend = "tcp";
  settings.batch = Batch::divide;
  settings.tail = Tail::drop;
  settings.evaluation = Evaluation::part;
  settings.buffers = Buffers::own;
  settings.overlap = false;
  settings.rank0_writes = true;
  settings.timeout_seconds = 7;
  settings.check_every = 0;
  std::map<std::string, std::string> values;
  for (const std::string& line : to_environment(settings))
    values[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  const Settings read = read_settings(from(values));
  CHECK(to_environment(read) == to_environment(settings));
  CHECK(to_environment(read_settings(from({}))) == to_environment(Settings{}));
}

TEST_CASE("A setting out of range is refused with its name, value and rule") {
  for (const auto& [name, value] : std::map<std::string, std::string>{{"BATCH", "half"},
                                                                      {"TAIL", "no"},
                                                                      {"TIMEOUT", "0"},
                                                                      {"TIMEOUT", "3s"},
                                                                      {"CHECK_EVERY", "-1"},
                                                                      {"RANK0_WRITES", "yes"},
                                                                      {"EVALUATION", "all"}}) {
    const std::string full = "TROUPE_TRANSPARENT_" + name;
    const auto message = error_of<std::invalid_argument>([&] {
      read_settings(from({{full, value}}));
    });
    CAPTURE(message);
    CHECK(message.starts_with(full + "=" + value + " must be "));
  }
}

TEST_CASE("Shares have equal length, cover the batch, and overlap only if it is not divisible") {
  std::mt19937 random(5);
  for (int trial = 0; trial < 500; ++trial) {
    const int size = 1 + static_cast<int>(random() % 7);
    std::vector<std::size_t> batch(1 + random() % 40);
    std::iota(batch.begin(), batch.end(), random() % 100);
    for (const Tail tail : {Tail::pad, Tail::drop}) {
      std::multiset<std::size_t> seen;
      const auto length = share_of(batch, 0, size, tail).size();
      for (int rank = 0; rank < size; ++rank) {
        const auto share = share_of(batch, rank, size, tail);
        CHECK(share.size() == length);
        seen.insert(share.begin(), share.end());
      }
      const auto left = batch.size() % static_cast<std::size_t>(size);
      for (const std::size_t sample : batch)
        CHECK(seen.count(sample) <= 1 + (tail == Tail::pad ? seen.size() / batch.size() : 0));
      CHECK(std::set<std::size_t>(seen.begin(), seen.end()).size()
            == (tail == Tail::pad ? batch.size() : batch.size() - left));
    }
  }
}

TEST_CASE("A diverted file can be read back by its own process only") {
  const TemporaryFolder folder;
  const auto path = folder / "model.pt";
  DivertedFiles files(folder.path());
  put(files, path, O_WRONLY | O_CREAT | O_TRUNC, "weights");
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(std::filesystem::is_empty(folder.path()));
  const auto back = files.open(AT_FDCWD, path.c_str(), O_RDONLY);
  REQUIRE(back);
  CHECK(text_of(*back) == "weights");
  ::close(*back);

  SUBCASE("Under the new name after a rename") {
    const auto moved = folder / "best.pt";
    CHECK(files.rename(AT_FDCWD, path.c_str(), AT_FDCWD, moved.c_str()) == 0);
    CHECK_FALSE(files.open(AT_FDCWD, path.c_str(), O_RDONLY));
    const auto descriptor = files.open(AT_FDCWD, moved.c_str(), O_RDONLY);
    REQUIRE(descriptor);
    CHECK(text_of(*descriptor) == "weights");
    ::close(*descriptor);
  }
  SUBCASE("Until it is removed") {
    CHECK(files.remove(AT_FDCWD, path.c_str()) == 0);
    CHECK_FALSE(files.open(AT_FDCWD, path.c_str(), O_RDONLY));
  }
}

TEST_CASE("Appending to an existing file leaves the original unchanged") {
  const TemporaryFolder folder;
  const auto path = folder / "log.txt";
  std::ofstream(path) << "one ";
  DivertedFiles files(folder.path());
  CHECK_FALSE(files.open(AT_FDCWD, path.c_str(), O_RDONLY));
  put(files, path, O_WRONLY | O_APPEND | O_CREAT, "two");
  const auto back = files.open(AT_FDCWD, path.c_str(), O_RDONLY);
  REQUIRE(back);
  CHECK(text_of(*back) == "one two");
  ::close(*back);
  CHECK(read_text(path) == "one ");
  CHECK(files.rename(AT_FDCWD, path.c_str(), AT_FDCWD, (folder / "other").c_str()) == 0);
  CHECK(files.remove(AT_FDCWD, path.c_str()) == 0);
  CHECK(read_text(path) == "one ");
}

TEST_CASE("A file whose copy does not fit on the disk is refused instead of being cut off") {
  const TemporaryFolder folder;
  const auto path = folder / "log.txt";
  const std::string text(200'000, 'x'); // several reads
  std::ofstream(path) << text;
  DivertedFiles files(folder.path());
  std::optional<int> refused;
  int reason = 0;
  {
    const FullDisk full(100'000);
    refused = files.open(AT_FDCWD, path.c_str(), O_RDWR);
    reason = errno;
  }
  CHECK(refused == -1);
  CHECK(reason == EFBIG);
  CHECK(read_text(path) == text);
  const auto whole = files.open(AT_FDCWD, path.c_str(), O_RDWR);
  REQUIRE(whole);
  CHECK(::lseek(*whole, 0, SEEK_END) == static_cast<off_t>(text.size()));
  ::close(*whole);
}

TEST_CASE("Devices, pipes, folders and paths that cannot be written are left to the system") {
  const TemporaryFolder folder;
  DivertedFiles files(folder.path());
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const auto writes = O_WRONLY | O_CREAT | O_TRUNC;
  CHECK_FALSE(files.open(AT_FDCWD, "/dev/null", writes));
  CHECK_FALSE(files.open(AT_FDCWD, "/proc/self/comm", writes));
  CHECK_FALSE(files.open(AT_FDCWD, (folder / "pipe").c_str(), O_RDWR));
  CHECK_FALSE(files.open(AT_FDCWD, folder.path().c_str(), writes));
  CHECK_FALSE(files.open(AT_FDCWD, (folder / "none" / "file").c_str(), writes));
  CHECK_FALSE(files.open(AT_FDCWD, (folder / "missing").c_str(), O_WRONLY));
  CHECK_FALSE(files.remove(AT_FDCWD, (folder / "pipe").c_str()));
}

TEST_CASE("A path that a rank has removed stays hidden from it until the path is created again") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "ckpt/old");
  std::ofstream(folder / "ckpt/old/model") << "old";
  DivertedFiles files(folder.path());
  const auto removed = [&](const char* name) {
    return files.is_removed(AT_FDCWD, (folder / name).c_str());
  };
  CHECK_FALSE(removed("ckpt/old/model"));
  CHECK(files.remove(AT_FDCWD, (folder / "ckpt/old/model").c_str()) == 0);
  CHECK(removed("ckpt/old/model"));
  CHECK_FALSE(removed("ckpt/old"));
  CHECK(files.remove(AT_FDCWD, (folder / "ckpt/old").c_str()) == 0);
  CHECK(removed("ckpt/old"));
  CHECK(read_text(folder / "ckpt/old/model") == "old");

  std::filesystem::create_directory(folder / "new");
  std::filesystem::remove_all(folder / "ckpt/old");
  std::filesystem::rename(folder / "new", folder / "ckpt/old"); // another folder of the name
  CHECK_FALSE(removed("ckpt/old"));
  CHECK(files.remove(AT_FDCWD, (folder / "ckpt/old").c_str()) == 0);
  CHECK(files.make_folder(AT_FDCWD, (folder / "ckpt/old").c_str()) == 0);
  CHECK_FALSE(removed("ckpt/old"));
}

TEST_CASE(
    "A rank writes into a folder that it found after removing it and that rank 0 then removes") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "ckpt/old");
  DivertedFiles files(folder.path());
  CHECK(files.remove(AT_FDCWD, (folder / "ckpt/old").c_str()) == 0);
  CHECK(files.remove(AT_FDCWD, (folder / "ckpt").c_str()) == 0);
  // The program finds both folders on disk and does not make them. Then rank 0 removes them.
  std::filesystem::remove_all(folder / "ckpt");
  put(files, folder / "ckpt/model", O_WRONLY | O_CREAT | O_TRUNC, "weights");
  put(files, folder / "ckpt/old/model", O_WRONLY | O_CREAT | O_TRUNC, "weights");
  CHECK(files.make_folder(AT_FDCWD, (folder / "ckpt/new").c_str()) == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "ckpt"));
}

TEST_CASE("Paths removed from a folder stay hidden if the folder is then removed and made again") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "ckpt/old");
  DivertedFiles files(folder.path());
  CHECK(files.remove(AT_FDCWD, (folder / "ckpt/old").c_str()) == 0);
  CHECK(files.remove(AT_FDCWD, (folder / "ckpt").c_str()) == 0);
  CHECK(files.make_folder(AT_FDCWD, (folder / "ckpt").c_str()) == 0);
  CHECK_FALSE(files.is_removed(AT_FDCWD, (folder / "ckpt").c_str()));
  CHECK(files.is_removed(AT_FDCWD, (folder / "ckpt/old").c_str()));
}

TEST_CASE("At most a fixed number of diverted files is kept, and the oldest is dropped first") {
  const TemporaryFolder folder;
  DivertedFiles files(folder.path());
  for (std::size_t i = 0; i <= DivertedFiles::kMost; ++i)
    put(files, folder / std::to_string(i), O_WRONLY | O_CREAT | O_TRUNC, "x");
  CHECK_FALSE(files.open(AT_FDCWD, (folder / "0").c_str(), O_RDONLY));
  const auto second = files.open(AT_FDCWD, (folder / "1").c_str(), O_RDONLY);
  REQUIRE(second);
  ::close(*second);
}

TEST_CASE("A stream's mode is interpreted as in the C library") {
  CHECK(DivertedFiles::flags_of("r") == O_RDONLY);
  CHECK(DivertedFiles::flags_of("rb+") == O_RDWR);
  CHECK(DivertedFiles::flags_of("wb") == (O_WRONLY | O_CREAT | O_TRUNC));
  CHECK(DivertedFiles::flags_of("w+x") == (O_RDWR | O_CREAT | O_TRUNC | O_EXCL));
  CHECK(DivertedFiles::flags_of("ae") == (O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC));
  CHECK_FALSE(DivertedFiles::flags_of("z"));
  CHECK_FALSE(DivertedFiles::flags_of(nullptr));
}
