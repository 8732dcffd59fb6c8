#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

#include "env/random.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/replay_tables.hpp"
#include "replay/service/shard_client.hpp"
#include "replay/writers/writer.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

namespace {

constexpr const char* kTables = R"(# Two tables that share what a writer writes.
table {
  name: "short"
  column { name: "state" shape: 3 }
  column { name: "step" type: "int64" }
  items: "windows"
  max_items: 50
}
table {
  name: "long"
  column { name: "state" shape: 3 }
  column { name: "step" type: "int64" }
  items: "windows"
  sampler: "prioritized"
  limiter: "samples_per_insert" minimum_items: 10 samples_per_insert: 4 error_buffer: 100
}
)";

/// `troupe replay serve` and its endpoint.
struct Served {
  explicit Served(std::vector<std::string> flags) : program(words(std::move(flags))) {
    const auto whole_line = [](const std::string& text) { return text.find('\n') != text.npos; };
    if (!program.read_until(whole_line))
      throw std::runtime_error("no endpoint: " + program.output());
    endpoint = json::parse(program.output().substr(0, program.output().find('\n')))["endpoint"];
  }
  static std::vector<std::string> words(std::vector<std::string> flags) {
    std::vector<std::string> made{in_build("troupe"), "replay", "serve", "--json"};
    made.insert(made.end(), flags.begin(), flags.end());
    return made;
  }
  Program program;
  std::string endpoint;
};

replay::Deadline soon() {
  return Clock::now() + std::chrono::seconds(20);
}

replay::InsertionPtr steps(replay::Writer& writer, int count) {
  for (int i = 0; i < count; ++i) {
    const std::int64_t step = writer.rows();
    const float state[] = {static_cast<float>(step), 1, 2};
    std::memcpy(writer.next(0).data(), state, sizeof state);
    std::memcpy(writer.next(1).data(), &step, sizeof step);
    writer.append();
    writer.add_item(step, 1);
  }
  return writer.take();
}

} // namespace

TEST_CASE("Tables from a file are served, described to clients, reported by info, and ended by a "
          "signal") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "tables.textproto";
  std::ofstream(file) << kTables;
  Served served(
      {"--config", file.string(), "--listen", "ipc://" + (folder.path() / "port").string()});
  env::wire::Context context;
  auto client = replay::ShardClient::connect(context, served.endpoint, soon(), {.table = "long"});
  replay::Writer writer(client.signature(), 5);
  REQUIRE(client.insert(steps(writer, 8), soon()));
  REQUIRE(client.flush(soon()));
  CHECK_FALSE(client.sample(4, Clock::now() + std::chrono::milliseconds(50))); // it keeps waiting
  const Outcome told = run_troupe({"replay", "info", served.endpoint, "--json", "--seconds", "0"});
  REQUIRE(told.exit_code == 0);
  const json info = json::parse(told.output);
  REQUIRE(info["tables"].size() == 2);
  CHECK(info["tables"][0]["name"] == "short");
  CHECK(info["tables"][0]["max_items"] == 50);
  const json& table = info["tables"][1];
  CHECK(table["items"] == 8);
  CHECK(table["sampler"] == "prioritized");
  CHECK(table["limiter"]["samples_per_insert"] == 4);
  CHECK(table["columns"][0]["shape"] == json({3}));
  CHECK(has(table["waiting"], "8 of minimum_items 10"));
  const Outcome text =
      run_troupe({"replay", "info", served.endpoint, "--table", "long", "--seconds", "0.01"});
  CHECK(text.exit_code == 0);
  CHECK(has(text.output, "items      8 of 1000000"));
  CHECK(has(text.output, "waiting    1 samples of 4 wait"));
  CHECK_FALSE(has(text.output, "\"short\""));
  REQUIRE(client.insert(steps(writer, 8), soon()));
  const auto batch = client.sample(4, soon());
  REQUIRE(batch);
  std::int64_t step = -1;
  std::memcpy(&step, batch->parts[0].rows(1, 0).data(), sizeof step);
  float state = -1;
  std::memcpy(&state, batch->parts[0].rows(0, 0).data(), sizeof state);
  CHECK(static_cast<float>(step) == state);
  served.program.send(SIGTERM);
  CHECK(served.program.wait() == 0);
  CHECK(has(served.program.output(), "table \"long\": 16 items inserted, 4 sampled, 16 held"));
}

TEST_CASE("Flags define a single table, and keys encrypt its connections") {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
  REQUIRE(run_troupe({"keys", "new", path("server")}).exit_code == 0);
  REQUIRE(run_troupe({"keys", "new", path("client")}).exit_code == 0);
  Served served({"--column", "state:float32:3", "--column", "step:int64", "--set", "items=windows",
                 "--set", "max_items=7", "--secret-key", path("server/troupe.secret"),
                 "--allowed-keys", path("client/troupe.public")});
  const Outcome told =
      run_troupe({"replay", "info", served.endpoint, "--json", "--seconds", "0", "--secret-key",
                  path("client/troupe.secret"), "--server-key", path("server/troupe.public")});
  REQUIRE(told.exit_code == 0);
  CHECK(json::parse(told.output)["tables"][0]["max_items"] == 7);
  const Outcome stranger =
      run_troupe({"replay", "info", served.endpoint, "--seconds", "0", "--deadline", "0.5"});
  CHECK(stranger.exit_code == 1);
  CHECK(has(stranger.last_line, "does not answer"));
}

TEST_CASE("A served table larger than its memory continues from its checkpoint after a restart") {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
  const std::vector<std::string> words = {"--column",
                                          "pixels:uint8:3,84,84",
                                          "--column",
                                          "step:int64",
                                          "--set",
                                          "max_bytes=3000000",
                                          "--set",
                                          "disk_bytes=100000000",
                                          "--set",
                                          "seed=3",
                                          "--set",
                                          "disk_folder=" + path("spill"),
                                          "--checkpoints",
                                          path("checkpoints"),
                                          "--checkpoint-seconds",
                                          "0"};
  constexpr int kSteps = 400; // 8 MB
  {
    Served served(words);
    env::wire::Context context;
    auto client = replay::ShardClient::connect(context, served.endpoint, soon());
    replay::Writer writer(client.signature(), 5);
    for (std::int64_t step = 0; step < kSteps; ++step) {
      std::memset(writer.next(0).data(), static_cast<int>(step % 251), 3 * 84 * 84);
      std::memcpy(writer.next(1).data(), &step, sizeof step);
      writer.append();
      writer.add_item(step, 1);
      if (step % 8 == 7) {
        REQUIRE(client.insert(writer.take(), soon()));
      }
    }
    REQUIRE(client.flush(soon()));
    const Outcome text = run_troupe({"replay", "info", served.endpoint, "--seconds", "0"});
    CHECK(has(text.output, "on disk"));
    served.program.send(SIGTERM);
    CHECK(served.program.wait() == 0);
    CHECK(has(served.program.output(), "checkpoint 1 in "));
  }
  Served again(words);
  env::wire::Context context;
  auto client = replay::ShardClient::connect(context, again.endpoint, soon());
  CHECK(client.stats(soon()).items == kSteps);
  CHECK(client.stats(soon()).disk_bytes > 1'000'000);
  const auto batch = client.sample(200, soon());
  REQUIRE(batch);
  for (const auto& part : batch->parts) {
    const auto pixels = part.rows(0, 0);
    std::int64_t step = -1;
    std::memcpy(&step, part.rows(1, 0).data(), sizeof step);
    CHECK(std::all_of(pixels.begin(), pixels.end(), [&](std::byte pixel) {
      return pixel == static_cast<std::byte>(step % 251);
    }));
  }
}

TEST_CASE("An invalid table is refused, and the error names the place, key, value and rule") {
  struct Mistake {
    std::string text;
    std::string part;
  };
  for (const Mistake& mistake : std::vector<Mistake>{
           {"", "has no table"},
           {"table { }", "t:1:1: table[0].column is not given"},
           {"table { column { name: \"a\" } max_item: 3 }",
            "t:1:30: table.max_item is not a key; did you mean"},
           {"table { column { name: \"a\" } }\ntable { name: \"b\" column { name: \"a\" } "
            "sampler: \"priority\" }",
            "t:2:40: table[1].sampler is \"priority\"; it must be one of"},
           {"table { column { name: \"a\" type: \"float\" } }",
            "table[0].column[0].type is \"float\"; it must be one of"},
           {"table { column { name: \"a\" } }\ntable { column { name: \"a\" } }",
            "table[0].name is \"\"; each of several tables needs one"},
           {"table { name: \"x\" column { name: \"a\" } } table { name: \"x\" column { name: \"a\" "
            "} }",
            "table[1].name is \"x\", which another table has too"},
           {"table { name: \"x\" column { name: \"a\" } max_bytes: 5 }",
            "table[0].max_bytes is 5; it must be a whole number from 1048576"},
           {"table { name: \"x\" column { name: \"a\" shape: -3 } }",
            "table[0].column[0].shape is -3"},
       }) {
    CAPTURE(mistake.text);
    try {
      parse_replay_tables(mistake.text, "t");
      FAIL("was read");
    } catch (const ConfigError& error) {
      CAPTURE(std::string(error.what()));
      CHECK(has(error.what(), mistake.part));
    }
  }
  struct Flags {
    std::vector<std::string> words;
    std::string part; // part of the last line
  };
  for (const Flags& mistake : std::vector<Flags>{
           {{}, "give either --config FILE or the columns"},
           {{"--column", "a:float:3"}, "--column a:float:3: "},
           {{"--column", "a:float32:3:4"}, "is not a column; write name, name:type"},
           {{"--column", "a:float32:x"}, "--column a:float32:x: shape is x"},
           {{"--column", "a", "--set", "sampler=best"}, "--set sampler=best: table[0].sampler is"},
           {{"--column", "a", "--set", "column.name=b"}, "may be given several times"},
           {{"--column", "a", "--set", "sample=best"}, "did you mean sampler"},
           {{"--column", "a", "--column", "a"}, "table \"\": replay column 'a' exists twice"},
           {{"--column", "a", "--set", "minimum_items=10", "--set", "max_items=5"},
            "table \"\": replay.minimum_items is 10 but must be"},
           {{"--column", "a", "--listen", "tcp://0.0.0.0:*"}, "keys"},
           {{"--column", "x\xff"}, "has a name that is not UTF-8"},
           {{"--column", "a", "--set", "samples_per_insert=nan"}, "samples_per_insert"},
           {{"--column", "a", "--checkpoints", "c", "--checkpoint-seconds", "nan"},
            "nan is not a finite number"},
           {{"--column", "a", "--checkpoints", "c", "--checkpoint-seconds", "-inf"},
            "--checkpoint-seconds"},
           {{"--config", "/nowhere.textproto"}, "/nowhere.textproto: cannot be read"},
       }) {
    std::vector<std::string> words{"replay", "serve"};
    words.insert(words.end(), mistake.words.begin(), mistake.words.end());
    const Outcome outcome = run_troupe(words);
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(has(outcome.last_line, mistake.part));
  }
}

TEST_CASE("The table keys are listed with their rules") {
  const Outcome keys = run_troupe({"list", "table-keys"});
  CHECK(keys.exit_code == 0);
  CHECK(has(keys.output, "column.shape = "));
  CHECK(has(keys.output, "max_times_sampled = 0\n    samples after which an item is removed"));
}

TEST_CASE("A mutated table file is either parsed completely or refused with a ConfigError") {
  const std::string original = kTables;
  env::Random random(3);
  const auto below = [&](std::size_t limit) {
    return static_cast<std::size_t>(random.bits() % limit);
  };
  int refused = 0;
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = original;
    for (std::size_t edits = 1 + below(3); edits > 0; --edits) {
      const std::size_t at = below(text.size());
      const std::size_t count = below(std::min<std::size_t>(text.size() - at, 40)) + 1;
      if (below(3) == 0)
        text[at] = static_cast<char>(random.bits());
      else if (below(2) == 0 && text.size() > 60)
        text.erase(at, count);
      else
        text.insert(below(text.size()), text.substr(at, count));
    }
    CAPTURE(text);
    try {
      const ReplayTables tables = parse_replay_tables(text, "t");
      REQUIRE(tables.table_size() > 0);
      ++read;
    } catch (const ConfigError& error) {
      REQUIRE(std::string(error.what()).starts_with("t"));
      ++refused;
    }
  }
  CHECK(refused > 1000);
  CHECK(read > 50);
}
