// User mistakes and failures, tried with the real program: each gives one clear line and an exit
// code other than 0, and harms no existing run.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>

#include "experiments/run_folder/run_folder.hpp"
#include "tests/experiments/commands/program.hpp"
#include "tests/experiments/commands/small_run.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;

namespace {

Outcome run_words(const std::vector<std::string>& words, const fs::path& folder) {
  Program program(words, folder);
  const int exit_code = program.wait();
  return {exit_code, program.output(), program.last_line()};
}

/// Runs a script as root in its own user and mount namespaces, so that it may mount; the exit code
/// is 125 where that is forbidden.
Outcome in_own_mounts(const std::string& script, const fs::path& folder) {
  return run_words({"sh", "-c",
                    "unshare --user --map-root-user --mount true 2>/dev/null || exit 125\n"
                    "exec unshare --user --map-root-user --mount sh -c '"
                        + script + "'"},
                   folder);
}

constexpr int kForbidden = 125;

int lines_of_troupe(const std::string& output) {
  int count = output.rfind("troupe: ", 0) == 0 ? 1 : 0;
  for (std::size_t at = output.find("\ntroupe: "); at != std::string::npos;
       at = output.find("\ntroupe: ", at + 1))
    ++count;
  return count;
}

} // namespace

TEST_CASE("An invalid environment is reported before a run folder exists") {
  const SmallRun place;
  struct Mistake {
    std::vector<std::string> words;
    int exit_code;
    std::string part;
  };
  const std::string pixels = "environment.pixels.camera=";
  for (const Mistake& mistake : std::vector<Mistake>{
           {{"--set", "environment.task=pendulum_swingdown"}, 2, "did you mean pendulum_swingup"},
           {{"--set", "environment.tasks=x"}, 2, "environment.tasks"},
           {{"--set", "replay.shards=two"}, 2, "replay.shards"},
           {{"--set", "replay.shards=65"}, 2, "from 1 to 64"},
           {{"--set", "replay.shards=3"}, 2, "be at most 2, the environments of the run"},
           {{"--set", "deterministic=true", "--set", "replay.shards=2", "--set",
             "actors.environment=3"},
            2,
            "must divide 3, the environments of the run"},
           {{"--set", "environment.models=nowhere"}, 1, "nowhere"},
           {{"--set", pixels + "elsewhere"}, 2, "'elsewhere' is not a camera"},
           {{"--set", pixels + "7"}, 2, "'7' is not a camera"},
       }) {
    const Outcome outcome = run_words(train_small(mistake.words), place.folder.path());
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == mistake.exit_code);
    CHECK(has(outcome.last_line, mistake.part));
    CHECK(lines_of_troupe(outcome.output) == 1);
    CHECK_FALSE(fs::exists(place.folder.path() / "runs"));
  }
}

TEST_CASE("Without OpenGL, a run from pixels is refused with a package to install, and a run from "
          "states works") {
  const SmallRun place;
  const std::string hide =
      "for f in $(ldconfig -p | sed -nE \"s/.*(libEGL|libOSMesa)[.]so.* => //p\"); do "
      "mount --bind /dev/null $f; done; export PATH; exec troupe train small.textproto ";
  const Outcome pixels =
      in_own_mounts(hide + "--set environment.pixels.renderer=OPENGL", place.folder.path());
  if (pixels.exit_code == kForbidden) {
    MESSAGE("skipped: this machine forbids user namespaces");
    return;
  }
  CAPTURE(pixels.output);
  CHECK(pixels.exit_code == 1);
  CHECK(has(pixels.last_line, "libegl1"));
  CHECK(lines_of_troupe(pixels.output) == 1);
  CHECK_FALSE(fs::exists(place.folder.path() / "runs"));
  CHECK(in_own_mounts(hide, place.folder.path()).exit_code == 0);
}

TEST_CASE("A disk that fills up at a checkpoint ends the run and leaves other runs unchanged") {
  const SmallRun place;
  const Outcome outcome = in_own_mounts(
      "mkdir disk && mount -t tmpfs -o size=4m none disk && troupe train small.textproto --runs "
      "disk/runs --quiet || exit 90\n"
      "before=$(find disk/runs/small -type f -path \"*checkpoints*\" | xargs cat | sha256sum)\n"
      "head -c 8m /dev/zero > disk/fill 2>/dev/null; truncate -s -48K disk/fill\n"
      "troupe train small.textproto --runs disk/runs --set d4pg.policy_layers=256,256; code=$?\n"
      "first=$(ls -d disk/runs/small/* | head -n 1)\n"
      "after=$(find $first -type f -path \"*checkpoints*\" | xargs cat | sha256sum)\n"
      "[ \"$before\" = \"$after\" ] || exit 91\n"
      "troupe evaluate $first --episodes 1 >/dev/null || exit 92\n"
      "[ -z \"$(ls -A $(ls -d disk/runs/small/* | tail -n 1)/checkpoints)\" ] || exit 93\n"
      "exit $code",
      place.folder.path());
  if (outcome.exit_code == kForbidden) {
    MESSAGE("skipped: this machine forbids user namespaces");
    return;
  }
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 1);
  CHECK(has(outcome.last_line, "No space left on device"));
  CHECK(lines_of_troupe(outcome.output) == 1);
}

TEST_CASE("A port in use is reported, and the error names a remedy") {
  const int taken = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(taken, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(::listen(taken, 1) == 0);
  REQUIRE(::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const SmallRun place;
  const Outcome outcome =
      run_words(train_small({"--processes", "--port", port}), place.folder.path());
  ::close(taken);
  CAPTURE(outcome.output);
  CHECK(outcome.exit_code == 1);
  CHECK(has(outcome.last_line, "127.0.0.1:" + port));
  CHECK(has(outcome.last_line, "--port"));
  CHECK(lines_of_troupe(outcome.output) == 1);
  CHECK(run_words(train_small({"--processes", "--port", "70000"}), place.folder.path()).exit_code
        == 2);
}

TEST_CASE("A checkpoint that does not fit the network or is foreign is refused by name and left "
          "unchanged") {
  const SmallRun place;
  REQUIRE(run_words(train_small(), place.folder.path()).exit_code == 0);
  REQUIRE(run_words(train_small({"--runs", "other", "--set", "d4pg.policy_layers=24"}),
                    place.folder.path())
              .exit_code
          == 0);
  const fs::path run = place.only_run();
  const fs::path file = find_checkpoint(run).path / "learner.safetensors";
  const auto refused = [&](const std::string& command, const char* what) {
    const std::string before = read_text(file);
    const Outcome outcome = run_troupe({command, run.string()});
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == 1);
    CHECK(has(outcome.last_line, what));
    CHECK(lines_of_troupe(outcome.output) == 1);
    CHECK(read_text(file) == before);
  };
  fs::path other;
  for (const auto& entry : fs::directory_iterator(place.folder.path() / "other/small"))
    other = entry.path();
  fs::copy_file(find_checkpoint(other).path / "learner.safetensors", file,
                fs::copy_options::overwrite_existing);
  refused("evaluate", "is Float[24], must be Float[16]");
  refused("resume", "learner.safetensors should have");
  std::ofstream(file, std::ios::binary) << "PK\x03\x04 some archive of somebody else's";
  refused("evaluate", "learner.safetensors");
  refused("resume", "learner.safetensors");
}
