// Processes that are killed, and disks that are full or failing, while blobs and checkpoints are
// written.
#include <fcntl.h>
#include <sched.h>
#include <string>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <doctest/doctest.h>

#include "replay/storage/checkpoint_reader.hpp"
#include "replay/storage/checkpoint_writer.hpp"
#include "replay/storage/segment_store.hpp"
#include "replay/storage/storage_error.hpp"
#include "tests/replay/storage/storage_faults.hpp"
#include "tests/replay/storage/storage_folder.hpp"

namespace troupe::replay {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr CheckpointConfig kSmall{.segment_bytes = 3000, .max_segments = 2};

/// Writes checkpoint `number` with the blobs number..number+5, of 1000 bytes each.
void write(const fs::path& root, std::uint64_t number, bool with_previous) {
  CheckpointWriter writer(root / std::to_string(number),
                          with_previous ? root / std::to_string(number - 1) : fs::path(), kSmall);
  for (std::uint64_t i = number; i < number + 6; ++i)
    if (!writer.keep({1, i, 0}))
      writer.add({1, i, 0}, blob_of(i, 1000));
  writer.commit(blob_of(number, 10));
}

/// What is wrong with checkpoint `number`, "" if nothing is.
std::string wrong_with(const fs::path& root, std::uint64_t number) {
  try {
    const CheckpointReader reader(root / std::to_string(number));
    reader.verify();
    if (reader.blobs().size() != 6)
      return "other blobs";
    for (std::uint64_t i = number; i < number + 6; ++i) {
      const CheckpointBlob* blob = reader.find({1, i, 0});
      Bytes bytes(1000);
      if (blob == nullptr)
        return "no blob " + std::to_string(i);
      reader.read(*blob, bytes);
      if (bytes != blob_of(i, 1000))
        return "other bytes in blob " + std::to_string(i);
    }
  } catch (const StorageError& error) {
    return error.what();
  }
  return "";
}

int write_in_child(const fs::path& root) {
  try {
    write(root, 2, true);
    return 0;
  } catch (const StorageError&) {
    return 1;
  } catch (...) {
    return 2;
  }
}

TEST_CASE("A kill before any system call leaves a table's checkpoint whole or absent and the "
          "previous one valid") {
  const StorageFolder folder;
  write(folder.path, 1, false);
  std::uint64_t whole = 0;
  std::uint64_t stop = 0;
  for (;; ++stop) {
    std::uint64_t n = 0;
    const Traced run = traced([&] { return write_in_child(folder.path); },
                              [&](std::uint64_t) { return n++ == stop ? kKill : 0; });
    if (run.ending == Ending::cannot_trace) {
      MESSAGE("skipped: cannot trace a child here");
      return;
    }
    REQUIRE_EQ(wrong_with(folder.path, 1), "");
    if (fs::exists(folder.path / "2")) { // it has its final name, so it must be complete
      REQUIRE_EQ(wrong_with(folder.path, 2), "");
      fs::remove_all(folder.path / "2");
      ++whole;
    }
    if (run.ending == Ending::exited) {
      REQUIRE_EQ(run.code, 0);
      break;
    }
    if (stop % 7 == 0) { // leftovers of the killed process do no harm
      write(folder.path, 2, true);
      REQUIRE_EQ(wrong_with(folder.path, 2), "");
      fs::remove_all(folder.path / "2");
    }
  }
  CHECK_GT(stop, 30);
  CHECK_GT(whole, 2); // killed between the rename and the end
  CHECK_LT(whole, stop / 2);
}

TEST_CASE("A failure of any system call is reported or tolerated and leaves the previous "
          "checkpoint valid") {
  const StorageFolder folder;
  write(folder.path, 1, false);
  for (const int error : {EIO, ENOSPC}) {
    int failed = 0;
    for (std::uint64_t place = 0;; ++place) {
      std::uint64_t n = 0;
      bool reached = false;
      const Traced run = traced([&] { return write_in_child(folder.path); },
                                [&](std::uint64_t call) {
                                  if (!is_of_files(call) || n++ != place)
                                    return 0;
                                  reached = true;
                                  return error;
                                });
      if (run.ending == Ending::cannot_trace) {
        MESSAGE("skipped: cannot trace a child here");
        return;
      }
      REQUIRE_EQ(run.ending, Ending::exited);
      REQUIRE_LE(run.code, 1);
      REQUIRE_EQ(wrong_with(folder.path, 1), "");
      if (run.code == 0)
        REQUIRE_EQ(wrong_with(folder.path, 2), "");
      failed += run.code;
      // A folder of this name holds a complete checkpoint, even where the call failed that makes
      // the name survive a crash.
      if (fs::exists(folder.path / "2"))
        REQUIRE_EQ(wrong_with(folder.path, 2), "");
      fs::remove_all(folder.path / "2");
      if (!reached) {
        REQUIRE_EQ(run.code, 0);
        break;
      }
    }
    CHECK_GT(failed, 10);
  }
}

TEST_CASE("A checkpoint is flushed to disk before it is renamed, and a store never flushes") {
  const StorageFolder folder;
  write(folder.path, 1, false);
  int writes = 0; // since the last fsync
  int before = 0, after = 0;
  bool named = false;
  const auto judge = [&](std::uint64_t call) {
    if (call == SYS_rename && before >= 2) { // a segment is renamed before the manifest
      CHECK_EQ(writes, 0);
      named = true;
    }
    if (call == SYS_pwritev || call == SYS_pwrite64 || call == SYS_write)
      ++writes;
    if (call == SYS_fsync) {
      ++(named ? after : before);
      writes = 0;
    }
    return 0;
  };
  if (traced([&] { return write_in_child(folder.path); }, judge).ending == Ending::cannot_trace) {
    MESSAGE("skipped: cannot trace a child here");
    return;
  }
  CHECK(named);
  CHECK_GE(before, 2); // a segment and the manifest
  CHECK_GE(after, 2);  // the checkpoint's folder and the one above it
  int flushes = 0;
  traced(
      [&] {
        SegmentStore store({folder.path, 4096, 1 << 20, 0.9});
        std::vector<BlobRef> refs;
        for (std::uint64_t i = 0; i < 20; ++i)
          refs.push_back(store.append(blob_of(i, 1000)));
        for (std::size_t i = 0; i < 20; i += 2)
          store.release(refs[i]);
        return static_cast<int>(store.compact(1 << 20).size());
      },
      [&](std::uint64_t call) {
        flushes += call == SYS_fsync || call == SYS_fdatasync ? 1 : 0;
        return 0;
      });
  CHECK_EQ(flushes, 0);
}

/// Mounts a disk of one megabyte at `folder`, visible to this process alone.
bool mount_small_disk(const fs::path& folder) {
  const auto put = [](const char* path, const std::string& text) {
    const int file = ::open(path, O_WRONLY | O_CLOEXEC);
    const bool written = file >= 0 && ::write(file, text.data(), text.size()) > 0;
    ::close(file);
    return written;
  };
  const std::string user = std::to_string(::getuid());
  const std::string group = std::to_string(::getgid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return false;
  put("/proc/self/setgroups", "deny");
  put("/proc/self/uid_map", "0 " + user + " 1");
  put("/proc/self/gid_map", "0 " + group + " 1");
  return ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=1m") == 0;
}

constexpr const char* kNoMount = "skipped: cannot mount a small disk here";

/// Fills a store with segments of 256 kB until it refuses more. Returns what is wrong, "" if
/// nothing is.
std::string fill_store(const fs::path& folder) {
  SegmentStore store({folder, 256 << 10, 1 << 29});
  std::vector<BlobRef> refs;
  const auto wrong_blob = [&] {
    for (std::size_t i = 0; i < refs.size(); ++i) {
      Bytes bytes(refs[i].size());
      store.read(refs[i], bytes);
      if (bytes != blob_of(i, 50'000))
        return "wrong blob " + std::to_string(i);
    }
    return std::string();
  };
  const auto fill = [&]() -> std::string {
    const std::uint64_t before = store.stats().disk_bytes;
    try {
      for (;;)
        refs.push_back(store.append(blob_of(refs.size(), 50'000)));
    } catch (const StorageError& error) {
      const std::string text = error.what();
      if (error.kind() != StorageError::Kind::full
          || text.find(folder.string()) == std::string::npos
          || text.find("No space left") == std::string::npos)
        return text;
    }
    return store.stats().disk_bytes >= before ? wrong_blob() : "bytes went astray";
  };
  std::string wrong = fill();
  const std::size_t first = refs.size();
  for (int i = 0; i < 4 && wrong.empty(); ++i)
    wrong = fill(); // refuses again and again, and stays usable
  if (!wrong.empty() || first < 15 || refs.size() != first)
    return wrong + " " + std::to_string(first) + " blobs, then " + std::to_string(refs.size());
  for (std::size_t i = 0; i < 5; ++i) // the first segment
    store.release(refs[i]);
  const BlobRef again = store.append(blob_of(99, 200'000));
  Bytes bytes(200'000);
  store.read(again, bytes);
  return bytes == blob_of(99, 200'000) ? "" : "wrong after a release";
}

TEST_CASE("A full disk refuses a blob and keeps the others, and a release makes room") {
  const StorageFolder folder;
  const std::string wrong =
      in_child([&] { return mount_small_disk(folder.path) ? fill_store(folder.path) : kNoMount; });
  if (wrong == kNoMount)
    MESSAGE(wrong);
  else
    CHECK_EQ(wrong, "");
}

/// Writes a checkpoint that does not fit on the disk beside one that does.
std::string overfill(const fs::path& root) {
  write(root, 1, false);
  try {
    CheckpointWriter writer(root / "2", root / "1");
    if (!writer.keep({1, 3, 0}))
      return "nothing to keep";
    for (std::uint64_t i = 100;; ++i)
      writer.add({1, i, 0}, blob_of(i, 50'000));
  } catch (const StorageError& error) {
    if (error.kind() != StorageError::Kind::full
        || std::string(error.what()).find("2.partial/segment-") == std::string::npos)
      return error.what();
  }
  if (files_in(root).size() != 1)
    return "it left something";
  if (const std::string wrong = wrong_with(root, 1); !wrong.empty())
    return wrong;
  write(root, 2, true);
  return wrong_with(root, 2);
}

TEST_CASE("A checkpoint too large for the disk leaves nothing, and a smaller one then fits") {
  const StorageFolder folder;
  const std::string wrong =
      in_child([&] { return mount_small_disk(folder.path) ? overfill(folder.path) : kNoMount; });
  if (wrong == kNoMount)
    MESSAGE(wrong);
  else
    CHECK_EQ(wrong, "");
}

TEST_CASE("A partially written blob leaves no trace") {
  const StorageFolder folder;
  const std::string wrong = in_child([&]() -> std::string {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{250'000, 250'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0)
      return "cannot limit the size of files";
    SegmentStore store({folder.path, 1 << 20, 1 << 30});
    const BlobRef a = store.append(blob_of(1, 100'000));
    const BlobRef b = store.append(blob_of(2, 100'000));
    try {
      store.append(blob_of(3, 100'000)); // the first half of it fits
      return "not refused";
    } catch (const StorageError& error) {
      if (error.kind() != StorageError::Kind::full)
        return error.what();
    }
    const BlobRef c = store.append(blob_of(4, 40'000));
    if (c.place.offset != b.place.offset + 100'000 + SegmentFile::kRecordBytes)
      return "a gap";
    std::uint64_t seed = 1;
    for (const BlobRef& ref : {a, b, c}) {
      Bytes bytes(ref.size());
      store.read(ref, bytes);
      if (bytes != blob_of(seed == 3 ? 4 : seed, ref.size()))
        return "wrong bytes";
      ++seed;
    }
    return "";
  });
  CHECK_EQ(wrong, "");
}

TEST_CASE("A store leaves no files when its owner is killed by SIGKILL") {
  const StorageFolder folder;
  std::size_t files = 1;
  const std::string end = in_child([&]() -> std::string {
    SegmentStore store({folder.path, 4096, 1 << 20});
    for (std::uint64_t i = 0; i < 20; ++i)
      store.append(blob_of(i, 3000));
    ::raise(SIGKILL);
    return "alive";
  });
  files = files_in(folder.path).size();
  CHECK_EQ(end, "signal 9");
  CHECK_EQ(files, 0);
}

} // namespace
} // namespace troupe::replay
