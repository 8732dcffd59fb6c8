// Checkpoints in a real object store, as on a cluster.
#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "replay/objects/object_store.hpp"
#include "tests/experiments/commands/small_run.hpp"
#include "tests/replay/objects/swift.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using nlohmann::json;
using replay::ObjectAddress;
namespace fs = std::filesystem;

namespace {

const std::string kStore = "s3://bucket/my/runs";

/// Command line of the program, run so that it finds the keys of the test's store.
std::vector<std::string> with_store(const std::string& endpoint, std::vector<std::string> words,
                                    const std::string& secret = "testing") {
  std::vector<std::string> all = {"/usr/bin/env",
                                  "-u",
                                  "AWS_ENDPOINT_URL_S3",
                                  "-u",
                                  "AWS_PROFILE",
                                  "AWS_ACCESS_KEY_ID=test:tester",
                                  "AWS_SECRET_ACCESS_KEY=" + secret,
                                  "AWS_REGION=us-east-1",
                                  "AWS_ENDPOINT_URL=" + endpoint};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

json finished(const std::vector<std::string>& words, const fs::path& folder) {
  Program program(words, folder);
  const int exit_code = program.wait();
  CAPTURE(program.output());
  REQUIRE(exit_code == 0);
  return last_json(program.output());
}

std::vector<std::string> names_in(replay::ObjectStore& store, const ObjectAddress& folder) {
  std::vector<std::string> names;
  for (const auto& object : store.list(folder))
    names.push_back(object.key.substr(folder.key.size() + 1));
  return names;
}

bool has_name(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> train_into_store(const std::vector<std::string>& more = {}) {
  auto words = train_small({"--json", "--quiet", "--set", "checkpoint.store=" + kStore});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

} // namespace

TEST_CASE("A run whose disk is lost resumes from the object store as from its own folder") {
  const SmallRun place;
  const replay::Swift swift(place.folder / "swift");
  if (!swift.runs())
    return;
  const json before =
      finished(with_store(swift.endpoint(),
                          train_into_store(
                              {"--set", "deterministic=true", "--set", "d4pg.precision=float32",
                               "--set", "checkpoint.minutes=0.005", "--set", "checkpoint.keep=1"})),
               place.folder.path());
  CHECK(before.at("failed_copies") == 0);
  const fs::path run = place.only_run();
  const std::string name = run.filename();
  const std::string number = std::to_string(before.at("updates").get<std::int64_t>());
  const ObjectAddress there{.bucket = "bucket", .key = "my/runs/small/" + name};
  replay::ObjectStore store(swift.options());
  const auto names = names_in(store, there);
  CHECK(has_name(names, "config.textproto"));
  CHECK(has_name(names, "metrics.csv"));
  CHECK(has_name(names, "checkpoints/" + number + "/manifest.json"));
  for (const std::string& one : names) // checkpoint.keep=1
    CHECK((!one.starts_with("checkpoints/") || one.starts_with("checkpoints/" + number + "/")));
  const std::string manifest = read_text(run / "checkpoints" / number / "manifest.json");
  CHECK(store.get_bytes(below(there, "checkpoints/" + number + "/manifest.json"), 1 << 20)
        == manifest);
  for (const auto& entry : fs::recursive_directory_iterator(run)) // no links of copies are left
    CHECK(entry.path().extension() != ".partial");
  for (const char* file : {"config.textproto", "log.txt", "origin.json"})
    CHECK(!has(read_text(run / file), "testing"));

  fs::rename(place.folder / "runs", place.folder / "lost"); // its own folder, for comparison
  const std::vector<std::string> further = {"--json", "--quiet", "--set",
                                            "stop.environment_steps=4000"};
  std::vector<std::string> from_store = {in_build("troupe"), "resume", kStore + "/small/" + name};
  from_store.insert(from_store.end(), further.begin(), further.end());
  const json resumed = finished(with_store(swift.endpoint(), from_store), place.folder.path());
  std::vector<std::string> from_folder = {in_build("troupe"), "resume",
                                          (place.folder / "lost/small" / name).string(), "--set",
                                          "checkpoint.store="};
  from_folder.insert(from_folder.end(), further.begin(), further.end());
  const json expected = finished(from_folder, place.folder.path());
  for (const char* counter :
       {"environment_steps", "agent_steps", "updates", "inserts", "samples", "returns"}) {
    CAPTURE(counter);
    CHECK(resumed.at(counter) == expected.at(counter));
  }
  CHECK(resumed.at("updates") > before.at("updates"));
  const fs::path parameters = "learner.safetensors";
  CHECK(read_text(fs::path(resumed.at("checkpoint").get<std::string>()) / parameters)
        == read_text(fs::path(expected.at("checkpoint").get<std::string>()) / parameters));

  // The run is here, and the store has nothing newer.
  const auto evaluated =
      with_store(swift.endpoint(), {in_build("troupe"), "evaluate", kStore + "/small/" + name,
                                    "--episodes", "1", "--json"});
  Program again(evaluated, place.folder.path());
  CHECK(again.wait() == 0);
  CHECK(has(again.output(), "already has this run's newest checkpoint"));
  fs::remove_all(place.folder / "runs");
  Program fetched(evaluated, place.folder.path());
  CHECK(fetched.wait() == 0);
  CHECK(has(fetched.output(), "fetched checkpoint "));
}

TEST_CASE("A launch on a cluster continues a run from the object store") {
  const SmallRun place;
  const replay::Swift swift(place.folder / "swift");
  if (!swift.runs())
    return;
  const json before =
      finished(with_store(swift.endpoint(), train_into_store()), place.folder.path());
  const fs::path run = place.only_run();
  const std::string stored = kStore + "/small/" + run.filename().string();
  fs::remove_all(place.folder / "runs");
  std::ofstream(place.folder / "one.textproto") << "node { name: \"one\" } local {} "
                                                   "oversubscribe: true";
  std::vector<std::string> words = {in_build("troupe"), "launch", "one.textproto",
                                    "small.textproto", stored};
  Program refused(with_store(swift.endpoint(), words), place.folder.path());
  CHECK(refused.wait() == 2);
  CHECK(has(refused.last_line(), "a run to continue needs --resume"));
  CHECK_FALSE(fs::exists(place.folder / "runs"));
  words.insert(words.end(), {"--resume", "--json", "--set", "stop.environment_steps=3500"});
  const json resumed = finished(with_store(swift.endpoint(), words), place.folder.path());
  CHECK(place.only_run() == run);
  CHECK(resumed.at("updates") > before.at("updates"));
  CHECK(resumed.at("environment_steps") >= 3500);
  CHECK(has(read_text(run / "log.txt"), "stop.environment_steps was 2500 and is 3500"));
}

TEST_CASE("A newer checkpoint from the object store replaces the metrics and the experiment of an "
          "older local run") {
  const SmallRun place;
  const replay::Swift swift(place.folder / "swift");
  if (!swift.runs())
    return;
  finished(with_store(swift.endpoint(), train_into_store()), place.folder.path());
  const fs::path run = place.only_run();
  const fs::path runs = place.folder / "runs", older = place.folder / "older";
  fs::copy(runs, older, fs::copy_options::recursive);
  finished(with_store(swift.endpoint(), {in_build("troupe"), "resume", run.string(), "--json",
                                         "--set", "stop.environment_steps=4000"}),
           place.folder.path());
  const std::string config = read_text(run / "config.textproto");
  fs::remove_all(runs);
  fs::rename(older, runs);
  const std::string former = read_text(run / "config.textproto");
  REQUIRE(former != config);

  const std::string stored = kStore + "/small/" + run.filename().string();
  Program fetched(
      with_store(swift.endpoint(), {in_build("troupe"), "evaluate", stored, "--episodes", "1"}),
      place.folder.path());
  CHECK(fetched.wait() == 0);
  CAPTURE(fetched.output());
  CHECK(has(fetched.output(), "fetched checkpoint "));
  CHECK(read_text(run / "config.textproto") == config);
  CHECK(read_text(run / "config-1.textproto") == former);
  replay::ObjectStore store(swift.options());
  const ObjectAddress there{.bucket = "bucket", .key = "my/runs/small/" + run.filename().string()};
  CHECK(read_text(run / "metrics.csv") == store.get_bytes(below(there, "metrics.csv"), 1 << 20));
  CHECK_FALSE(fs::exists(run / ".fetched"));
}

TEST_CASE("A damaged checkpoint in the object store is skipped, and an incomplete one is ignored") {
  const SmallRun place;
  const replay::Swift swift(place.folder / "swift");
  if (!swift.runs())
    return;
  const json before =
      finished(with_store(swift.endpoint(), train_into_store()), place.folder.path());
  const std::string name = place.only_run().filename();
  const ObjectAddress there{.bucket = "bucket", .key = "my/runs/small/" + name};
  const std::string number = std::to_string(before.at("updates").get<std::int64_t>());
  replay::ObjectStore store(swift.options());
  const fs::path local = place.only_run() / "checkpoints" / number;
  for (const auto& entry : fs::recursive_directory_iterator(local))
    if (entry.is_regular_file()) {
      const std::string file = fs::relative(entry.path(), local);
      std::string text = read_text(entry.path());
      if (file == "learner.safetensors")
        text.back() = static_cast<char>(text.back() ^ 1);
      store.put_bytes(below(there, "checkpoints/888888/" + file), std::as_bytes(std::span(text)));
      if (file != "manifest.json")
        store.put_bytes(below(there, "checkpoints/999999/" + file), std::as_bytes(std::span(text)));
    }
  fs::remove_all(place.folder / "runs");
  Program fetched(with_store(swift.endpoint(), {in_build("troupe"), "evaluate",
                                                kStore + "/small/" + name, "--episodes", "1"}),
                  place.folder.path());
  CHECK(fetched.wait() == 0);
  CAPTURE(fetched.output());
  CHECK(has(fetched.output(), "checkpoints/888888: "));
  CHECK(has(fetched.output(), "trying the one before it"));
  CHECK(has(fetched.output(), "fetched checkpoint " + number + " of "));
  CHECK(!has(fetched.output(), "999999"));
}

TEST_CASE("An unreachable object store is counted and logged, and the run continues") {
  const SmallRun place;
  std::string endpoint;
  {
    replay::Swift swift(place.folder / "swift");
    if (!swift.runs())
      return;
    endpoint = swift.endpoint();
  } // nothing listens there any more
  const json summary = finished(with_store(endpoint, train_into_store()), place.folder.path());
  CHECK(summary.at("failed_copies") >= 1);
  CHECK(summary.at("returns").size() == 2);
  CHECK(fs::exists(fs::path(summary.at("checkpoint").get<std::string>()) / "manifest.json"));
  const fs::path run = place.only_run();
  CHECK(has(read_text(run / "log.txt"), "was not copied to the store: PUT s3://bucket/my/runs/"));
  CHECK(has(read_text(run / "metrics.csv"), "failed_copies"));
}

TEST_CASE(
    "An invalid store address, missing credentials and a missing run are reported with a remedy") {
  const SmallRun place;
  const auto mistake = [&](const std::vector<std::string>& words, const std::string& what) {
    Program program(words, place.folder.path());
    CHECK(program.wait() == 2);
    CAPTURE(program.output());
    CHECK(has(program.output(), what));
    CHECK(!has(program.output(), "hunter2"));
  };
  mistake(train_small({"--set", "checkpoint.store=/mnt/runs"}),
          "checkpoint.store is \"/mnt/runs\"");
  mistake(with_store("https://user:hunter2@store", train_into_store()),
          "AWS_ENDPOINT_URL has a user");
  auto without = with_store("http://127.0.0.1:1", train_into_store());
  without.insert(without.begin() + 1, {"-u", "HOME", "-u", "AWS_SHARED_CREDENTIALS_FILE"});
  std::erase(without, "AWS_ACCESS_KEY_ID=test:tester");
  mistake(without, "set both");
  const replay::Swift swift(place.folder / "swift");
  if (!swift.runs())
    return;
  mistake(with_store(swift.endpoint(), {in_build("troupe"), "resume", kStore + "/small/nowhere"}),
          "no run has a complete checkpoint there");
  Program refused(with_store(swift.endpoint(),
                             {in_build("troupe"), "resume", kStore + "/small/nowhere"}, "hunter2"),
                  place.folder.path());
  CHECK(refused.wait() != 0);
  CHECK(has(refused.output(), "403 SignatureDoesNotMatch"));
  CHECK(!has(refused.output(), "hunter2"));
}

TEST_CASE("A recording in the object store can be checked and used for training on another host") {
  const SmallRun place;
  const replay::Swift swift(place.folder / "swift");
  if (!swift.runs())
    return;
  const std::string address = "s3://bucket/data/random";
  const std::vector<std::string> record = {in_build("troupe"),
                                           "record",
                                           "small.textproto",
                                           "--random",
                                           "--episodes",
                                           "2",
                                           "--out",
                                           address,
                                           "--json",
                                           "--set",
                                           "environment.time_limit=100"};
  const json made = finished(with_store(swift.endpoint(), record), place.folder.path());
  CHECK(made.at("steps") == 200);
  replay::ObjectStore store(swift.options());
  CHECK(has_name(names_in(store, {.bucket = "bucket", .key = "data/random"}), "manifest"));
  fs::rename(place.folder / "recordings", place.folder / "elsewhere");
  Program again(with_store(swift.endpoint(), record), place.folder.path());
  CHECK(again.wait() == 2);
  CHECK(has(again.output(), address + " exists"));

  const auto check =
      with_store(swift.endpoint(), {in_build("troupe"), "dataset", "check", address});
  Program checked(check, place.folder.path());
  CHECK(checked.wait() == 0);
  CHECK(has(checked.output(), "fetched " + address + " to recordings/bucket/data/random"));
  CHECK(has(checked.output(), "200 steps: all are good"));
  fs::remove_all(place.folder / "recordings");
  std::ofstream(place.folder / "clone.textproto") << R"(
environment { task: "pendulum_swingup" }
bc { layers: [16] batch_size: 16 }
evaluation { period: 0 final_episodes: 1 video: false }
recording { path: "s3://bucket/data/random" updates: 100 }
)";
  const json trained =
      finished(with_store(swift.endpoint(),
                          {in_build("troupe"), "train", "clone.textproto", "--json", "--quiet"}),
               place.folder.path());
  CHECK(trained.at("updates") == 100);

  fs::remove_all(place.folder / "recordings");
  for (const auto& object : store.list({.bucket = "bucket", .key = "data/random"}))
    if (!object.key.ends_with("manifest")) {
      std::string text = store.get_bytes({.bucket = "bucket", .key = object.key}, 1 << 24);
      text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
      store.put_bytes({.bucket = "bucket", .key = object.key}, std::as_bytes(std::span(text)));
    }
  Program damaged(check, place.folder.path());
  CHECK(damaged.wait() != 0);
  CHECK(!fs::exists(place.folder / "recordings/bucket/data/random"));
}

TEST_CASE("A classifier learns the same from pictures and shards in the object store as from local "
          "files") {
  const SmallRun place;
  const replay::Swift swift(place.folder / "swift");
  if (!swift.runs())
    return;
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), in_build("troupe"));
    Program program(with_store(swift.endpoint(), words), place.folder.path());
    const int code = program.wait();
    return std::pair(code, program.output());
  };
  for (const std::string layout : {"folder", "tar"})
    for (const std::string split : {"train", "validation"})
      REQUIRE(run({"dataset", "render", layout, "--classes", "cartpole_balance,pendulum_swingup",
                   "--rows", "8", "--size", "32", "--layout", layout, "--split", split})
                  .first
              == 0);
  replay::ObjectStore store(swift.options());
  for (const std::string layout : {"folder", "tar"})
    for (const auto& entry : fs::recursive_directory_iterator(place.folder / layout))
      if (entry.is_regular_file())
        store.put_file({.bucket = "bucket",
                        .key = "data/" + fs::relative(entry.path(), place.folder.path()).string()},
                       entry.path());
  const auto trained = [&](const std::string& path) {
    std::ofstream(place.folder / "pictures.textproto") << R"(
deterministic: true
data { size: 32 crop: "padded" epochs: 1 }
classifier { model: "resnet20" batch_size: 4 warmup_epochs: 0 }
checkpoint { minutes: 0 }
)";
    const auto result =
        finished(with_store(swift.endpoint(), {in_build("troupe"), "train", "pictures.textproto",
                                               "--json", "--quiet", "--set", "data.path=" + path}),
                 place.folder.path());
    return result.at("metrics");
  };
  for (const std::string layout : {"folder", "tar"})
    CHECK(trained("s3://bucket/data/" + layout) == trained(layout));

  std::string shard;
  for (const auto& entry : fs::directory_iterator(place.folder / "tar/train"))
    if (entry.path().extension() == ".tar")
      shard = entry.path().filename();
  REQUIRE(!shard.empty());
  const auto digit = shard.size() - 5;
  const std::string pattern =
      shard.substr(0, digit) + "{" + shard[digit] + ".." + shard[digit] + "}.tar";
  for (const std::string& name : {shard, pattern}) {
    const auto [code, output] =
        run({"dataset", "info", "s3://bucket/data/tar/train/" + name, "--json"});
    CAPTURE(output);
    CHECK(code == 0);
    CHECK(has(output, "cartpole_balance"));
  }
  const auto [code, output] = run({"dataset", "info", "s3://bucket/data/none"});
  CHECK(code == 2);
  CHECK(has(output, "PATH: the object store has no s3://bucket/data/none"));
  const auto small = run({"dataset", "check", "s3://bucket/data/folder", "--cache", "other",
                          "--cache-gigabytes", "1e-6"});
  CHECK(small.first != 0);
  CHECK(has(small.second, "--cache-gigabytes is"));
  CHECK(has(small.second, "raise it"));
}
