// Checkpoints as files: truncated, damaged, half written, by a killed process, on a full disk.
#include "tests/doctest_torch.hpp"

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <sys/syscall.h>

#include "actors/roles/checkpoint.hpp"
#include "actors/roles/files.hpp"
#include "actors/roles/learner_files.hpp"
#include "actors/run/checkpointer_actor.hpp"
#include "actors/run/run.hpp"
#include "replay/table/table.hpp"
#include "replay/table/table_checkpoint.hpp"
#include "tests/replay/storage/storage_faults.hpp"
#include "tests/replay/table/saved_table.hpp"
#include "tests/replay/writers/episodes.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;
using replay::Ending;
using replay::is_of_files;
using replay::traced;

/// The parts of a small run: one learner, one environment actor, two shards.
class Parts {
public:
  Parts() : writer_(replay::transition_writer(spec_, 5, 12)), player_(spec_, 2) {}

  /// Writes a complete checkpoint of `updates` updates, on this process's only thread.
  void write(const fs::path& root, std::int64_t updates, double value, std::int64_t previous = 0,
             int keep = 2) {
    const auto number = std::to_string(updates);
    const fs::path partial = root / ("." + number + ".partial");
    fs::remove_all(partial);
    fs::create_directories(partial / "replay");
    for (int shard = 0; shard < 2; ++shard) {
      const std::string name = "replay/shard-" + std::to_string(shard);
      replay::write_checkpoint(tables_[shard].snapshot(), partial / name,
                               previous == 0 ? fs::path() : root / std::to_string(previous) / name);
    }
    write_learner({.folder = partial,
                   .snapshot = false,
                   .parameters = true,
                   .parameter_tensors = {{"w", at::full({8}, value)}},
                   .optimizer_tensors = {{"m", at::full({8}, value)}},
                   .updates = updates,
                   .replica = 0});
    write_file(part_path(partial, Role::environment, 0), std::vector<std::byte>(50));
    wire::Manifest manifest;
    manifest.mutable_state()->set_updates(updates);
    manifest.mutable_state()->set_training_seconds(value);
    commit_checkpoint(partial, root / number, manifest);
    remove_surplus(root, keep, 0);
  }

  void grow() {
    for (auto& table : tables_)
      for (int i = 0; i < 4; ++i) {
        while (writer_.pending_items() < 3)
          player_.step(writer_);
        table.insert(*writer_.take());
      }
  }

private:
  replay::TransitionSpec spec_ = replay::pixel_spec(1, 1);
  replay::Writer writer_;
  replay::Player player_;
  replay::Table tables_[2] = {{{.max_items = 100}, spec_, 1}, {{.max_items = 100}, spec_, 2}};
};

/// Returns the value of the newest sound checkpoint. Throws if one that looks complete is damaged.
double newest_value(const fs::path& root) {
  double newest = -1;
  for (const auto& [number, path] : numbered_folders(root))
    if (fs::exists(path / "manifest.json")) {
      verify_checkpoint(path);
      newest = read_manifest(path).state().training_seconds();
      const auto saved = read_learner(path, 0, {});
      REQUIRE(saved.updates == number);
      REQUIRE(saved.parameters.at("w")[3].item<double>() == newest);
    }
  return newest;
}

TEST_CASE("Flipped bits and truncations of a checkpoint's manifest are detected") {
  const TemporaryFolder folder;
  Parts parts;
  parts.grow();
  parts.write(folder.path(), 7, 1.5);
  const fs::path manifest = folder / "7/manifest.json";
  verify_checkpoint(folder / "7");
  const std::string whole = read_text(manifest);
  const auto refused = [&](const std::string& bytes) {
    std::ofstream(manifest, std::ios::binary) << bytes;
    CHECK_THROWS_WITH_AS(verify_checkpoint(folder / "7"), doctest::Contains("manifest.json"),
                         std::runtime_error);
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i % 3 == 0)
      refused(whole.substr(0, i));
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    refused(changed);
  }
  std::ofstream(manifest, std::ios::binary) << whole;
  verify_checkpoint(folder / "7");
}

TEST_CASE("A flipped bit or a truncation in any file of a checkpoint is detected, and the error "
          "names the file") {
  const TemporaryFolder folder;
  Parts parts;
  parts.grow();
  parts.write(folder.path(), 7, 1.5);
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "7"))
    if (entry.is_regular_file() && entry.path().filename() != "manifest.json")
      files.push_back(entry.path());
  CHECK(files.size() >= 7);
  for (const fs::path& file : files) {
    CAPTURE(file.string());
    const std::string whole = read_text(file);
    const auto refused = [&](const std::string& bytes) {
      std::ofstream(file, std::ios::binary) << bytes;
      CHECK_THROWS_WITH_AS(verify_checkpoint(folder / "7"),
                           doctest::Contains(file.filename().c_str()), std::runtime_error);
    };
    const std::size_t step = 1 + whole.size() / 60;
    for (std::size_t i = 0; i < whole.size(); i += step) {
      refused(whole.substr(0, i));
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
      refused(changed);
    }
    std::ofstream(file, std::ios::binary) << whole;
    fs::rename(file, folder / "elsewhere");
    CHECK_THROWS_WITH_AS(verify_checkpoint(folder / "7"), doctest::Contains("missing"),
                         std::runtime_error);
    fs::rename(folder / "elsewhere", file);
  }
  verify_checkpoint(folder / "7");
}

TEST_CASE("A kill before any system call leaves a run's checkpoint whole or absent and the "
          "previous one intact") {
  const TemporaryFolder folder;
  Parts parts;
  parts.grow();
  parts.write(folder.path(), 1, 1);
  parts.write(folder.path(), 2, 2, 1);
  parts.grow();
  std::uint64_t stop = 0;
  int older = 0, newer = 0;
  for (;; ++stop) {
    std::uint64_t n = 0;
    const auto run = traced(
        [&] {
          parts.write(folder.path(), 3, 3, 2);
          return 0;
        },
        [&](std::uint64_t) { return n++ == stop ? replay::kKill : 0; });
    if (run.ending == Ending::cannot_trace) {
      MESSAGE("skipped: cannot trace a child here");
      return;
    }
    const double value = newest_value(folder.path());
    REQUIRE((value == 2 || value == 3));
    ++(value == 2 ? older : newer);
    clear_checkpoint_remains(folder.path());
    for (const auto& entry : fs::directory_iterator(folder.path()))
      REQUIRE(entry.path().filename().string().front() != '.');
    fs::remove_all(folder / "3");
    if (!fs::exists(folder / "1/manifest.json")) { // removed when the third was complete
      fs::remove_all(folder / "1");
      parts.write(folder.path(), 1, 1, 0, 3);
    }
    if (run.ending == Ending::exited) {
      REQUIRE(run.code == 0);
      break;
    }
  }
  CHECK(older > 60);
  CHECK(newer > 5);
}

TEST_CASE("A kill while a checkpoint replaces one of the same number leaves one of them, even "
          "without atomic exchange") {
  for (const bool can_exchange : {true, false}) {
    const TemporaryFolder folder;
    Parts parts;
    parts.grow();
    parts.write(folder.path(), 5, 1);
    int first = 0, second = 0;
    for (std::uint64_t stop = 0;; ++stop) {
      std::uint64_t n = 0;
      const auto run = traced(
          [&] {
            parts.write(folder.path(), 5, 2, 0);
            return 0;
          },
          [&](std::uint64_t call) {
            if (n++ == stop)
              return replay::kKill;
            return call == SYS_renameat2 && !can_exchange ? EINVAL : 0;
          });
      if (run.ending == Ending::cannot_trace) {
        MESSAGE("skipped: cannot trace a child here");
        return;
      }
      clear_checkpoint_remains(folder.path());
      const double value = newest_value(folder.path());
      REQUIRE((value == 1 || value == 2));
      ++(value == 1 ? first : second);
      if (run.ending == Ending::exited)
        break;
      if (value == 2)
        parts.write(folder.path(), 5, 1);
    }
    CHECK(first > 50);
    CHECK(second >= 3);
  }
}

TEST_CASE("A disk that is full or fails at any call leaves the previous checkpoint intact") {
  const TemporaryFolder folder;
  Parts parts;
  parts.grow();
  parts.write(folder.path(), 2, 2);
  for (const int error : {EIO, ENOSPC}) {
    int failed = 0;
    for (std::uint64_t place = 0;; ++place) {
      std::uint64_t n = 0;
      bool reached = false;
      const auto run = traced(
          [&] {
            try {
              parts.write(folder.path(), 3, 3, 2);
              return 0;
            } catch (const std::exception& e) {
              return has(e.what(), folder.path().string()) ? 1 : 2;
            }
          },
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
      REQUIRE(run.ending == Ending::exited);
      REQUIRE(run.code <= 1); // 1: failed with a message that names the path
      REQUIRE(newest_value(folder.path()) >= 2);
      failed += run.code;
      fs::remove_all(folder / "3");
      if (!reached)
        break;
    }
    CHECK(failed > 20);
  }
}

TEST_CASE(
    "A second checkpoint is whole without hard links, and with them it costs only what is new") {
  for (const bool links : {true, false}) {
    const TemporaryFolder folder;
    Parts parts;
    for (int i = 0; i < 6; ++i)
      parts.grow();
    parts.write(folder.path(), 1, 1);
    const auto run = traced(
        [&] {
          parts.write(folder.path(), 2, 2, 1);
          return 0;
        },
        [&](std::uint64_t call) {
          return !links && (call == SYS_link || call == SYS_linkat) ? EPERM : 0;
        });
    if (run.ending == Ending::cannot_trace) {
      MESSAGE("skipped: cannot trace a child here");
      return;
    }
    CHECK(run.code == 0);
    CHECK(newest_value(folder.path()) == 2);
    CHECK(replay::shared_files(folder / "2") == (links ? 2 : 0)); // each shard's segment
  }
}

TEST_CASE("The newest and the best checkpoints are kept") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::vector<ScoredCheckpoint> all = {{1, 5.0}, {2, 9.0}, {3, {}}, {4, none},
                                             {5, 9.0}, {6, 1.0}, {7, {}}};
  const auto stay = [&](int keep, int best) {
    std::string text;
    const auto goes = surplus(all, keep, best);
    for (std::size_t i = 0; i < goes.size(); ++i)
      text += goes[i] ? "" : std::to_string(all[i].updates);
    return text;
  };
  CHECK(stay(2, 0) == "67");
  CHECK(stay(1, 1) == "57");
  CHECK(stay(2, 2) == "2567");
  CHECK(stay(1, 3) == "1257");
  CHECK(stay(1, 100) == "12567");
  CHECK(stay(100, 0) == "1234567");
  CHECK(surplus({}, 2, 2).empty());
}

TEST_CASE("A return recorded later is sealed and decides which checkpoint is kept") {
  const TemporaryFolder folder;
  Parts parts;
  parts.grow();
  for (int i = 1; i <= 4; ++i) {
    parts.write(folder.path(), i, i, i - 1, 10);
    score_checkpoint(folder / std::to_string(i), i == 2 ? 100 : i);
  }
  remove_surplus(folder.path(), 1, 1);
  const auto left = scored_checkpoints(folder.path());
  REQUIRE(left.size() == 2);
  CHECK(left[0].updates == 2);
  CHECK(*left[0].evaluation_return == 100);
  CHECK(left[1].updates == 4);
  verify_checkpoint(folder / "2");
  std::string changed = read_text(folder / "2/manifest.json");
  changed.replace(changed.find("\"evaluation_return\": 100"), 24, "\"evaluation_return\": 900");
  std::ofstream(folder / "2/manifest.json", std::ios::binary) << changed;
  CHECK_THROWS_WITH_AS(verify_checkpoint(folder / "2"), doctest::Contains("manifest.json"),
                       std::runtime_error);
}

TEST_CASE("A damaged checkpoint that is set aside displaces no newer ones") {
  const TemporaryFolder folder;
  Parts parts;
  parts.grow();
  for (int damages = 0; damages < 2; ++damages) {
    parts.write(folder.path(), 12, 1, 0, 10);
    parts.write(folder.path(), 20, 1, 0, 10);
    std::ofstream(folder / "20/learner.safetensors", std::ios::binary) << "";
    CHECK(set_damaged_aside(folder / "20") == folder / "20.damaged");
    CHECK(fs::exists(folder / "20.damaged/manifest.json"));
    parts.write(folder.path(), 13, 2, 12, 1); // keeps only the newest
    CHECK(newest_value(folder.path()) == 2);
    clear_checkpoint_remains(folder.path());
    const auto left = scored_checkpoints(folder.path());
    REQUIRE(left.size() == 1);
    CHECK(left[0].updates == 13);
    CHECK(fs::exists(folder / "20.damaged/manifest.json"));
  }
}

TEST_CASE("A checkpoint that replaces one of as many updates keeps its score") {
  const TemporaryFolder folder;
  Parts parts;
  parts.grow();
  parts.write(folder.path(), 3, 1);
  score_checkpoint(folder / "3", 7);
  parts.write(folder.path(), 3, 2);
  verify_checkpoint(folder / "3");
  const auto state = read_manifest(folder / "3").state();
  CHECK(state.training_seconds() == 2);
  CHECK(state.evaluated());
  CHECK(state.evaluation_return() == 7);
  CHECK(state.evaluation_updates() == 3);
}

} // namespace
} // namespace troupe::actors
