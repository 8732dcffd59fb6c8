#include "tests/doctest_torch.hpp"

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "experiments/report/curve.hpp"
#include "experiments/report/recorder.hpp"
#include "experiments/run_folder/event_file.hpp"
#include "experiments/run_folder/events.pb.h"
#include "experiments/run_folder/live_file.hpp"
#include "experiments/run_folder/metrics_file.hpp"
#include "tests/full_disk.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::experiments;
namespace fs = std::filesystem;
namespace actors = troupe::actors;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> columns() {
  return MetricsFile::columns({"critic_loss", "gradient_norm"});
}
const UtcTime kNow = UtcTime(std::chrono::seconds(1'795'255'200));

std::string cell(const std::vector<std::vector<std::string>>& records, std::size_t row,
                 const std::string& column) {
  for (std::size_t i = 0; i < records[0].size(); ++i) {
    if (records[0][i] == column) {
      return records[row].at(i);
    }
  }
  return "no such column";
}

template <typename T>
T little_endian(const std::string& bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<unsigned char>(bytes.at(at + i))) << (8 * i);
  }
  return value;
}

std::vector<Event> read_events(const fs::path& path) {
  const std::string bytes = read_text(path);
  std::vector<Event> events;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto size = static_cast<std::size_t>(little_endian<std::uint64_t>(bytes, at));
    REQUIRE(little_endian<std::uint32_t>(bytes, at + 8) == masked_crc32c(bytes.data() + at, 8));
    REQUIRE(little_endian<std::uint32_t>(bytes, at + 12 + size)
            == masked_crc32c(bytes.data() + at + 12, size));
    REQUIRE(events.emplace_back().ParseFromString(bytes.substr(at + 12, size)));
    at += 16 + size;
  }
  return events;
}

} // namespace

TEST_CASE("A CSV record reads back whatever its fields contain") {
  const std::vector<std::string> fields = {"plain", "", "a,b", "say \"no\"", "two\r\nlines", " "};
  const auto records = read_csv(csv_record(fields) + csv_record({"second"}));
  REQUIRE(records.size() == 2);
  CHECK(records[0] == fields);
  CHECK(records[1] == std::vector<std::string>{"second"});
  CHECK_THROWS_AS(read_csv("\"open"), std::runtime_error);
}

TEST_CASE("metrics.csv has one row per report, constant columns, and empty fields for NaN") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "metrics.csv";
  actors::Progress progress;
  progress.environment_steps = 800;
  progress.updates = 50;
  progress.replay_failed_spills = 7;
  progress.failed_copies = 2;
  progress.episode_return = kNan;
  progress.training_seconds = 0.1;
  progress.processor_seconds = 0.25;
  progress.learner = {{"critic_loss", 1.5}, {"unheard_of", 3}};
  {
    MetricsFile file(path, columns());
    file.progress(progress);
    file.evaluation(
        {.environment_steps = 800, .updates = 50, .training_seconds = 1, .returns = {10, 30}});
    file.evaluation({.environment_steps = 900,
                     .updates = 60,
                     .training_seconds = 1,
                     .returns = {},
                     .final = true});
  }
  const auto records = read_csv(read_text(path));
  REQUIRE(records.size() == 4);
  for (const auto& record : records) {
    CHECK(record.size() == columns().size());
  }
  CHECK(cell(records, 1, "kind") == "progress");
  CHECK(cell(records, 1, "environment_steps") == "800");
  CHECK(cell(records, 1, "episode_return").empty());
  CHECK(cell(records, 1, "replay_failed_spills") == "7");
  CHECK(cell(records, 1, "failed_copies") == "2");
  CHECK(cell(records, 1, "training_seconds") == "0.1");
  CHECK(cell(records, 1, "processor_seconds") == "0.25");
  CHECK(cell(records, 1, "critic_loss") == "1.5");
  CHECK(cell(records, 2, "kind") == "evaluation");
  CHECK(cell(records, 2, "evaluation_return") == "20");
  CHECK(cell(records, 2, "evaluation_return_min") == "10");
  CHECK(cell(records, 2, "evaluation_return_max") == "30");
  CHECK(cell(records, 3, "kind") == "final");
  CHECK(cell(records, 3, "evaluation_return").empty());
}

TEST_CASE("metrics.jsonl has one JSON object per row of metrics.csv, without missing values") {
  const TemporaryFolder folder;
  const fs::path path = folder / "metrics.jsonl";
  std::ofstream(path) << "{\"kind\":\"progress\",\"updates\":1}\n{\"kind\":\"prog";
  actors::Progress progress;
  progress.environment_steps = 800;
  progress.episode_return = kNan;
  progress.training_seconds = 1e-7;
  progress.learner = {{"a \"loss\",\nin nats", -1.5}, {"unheard_of", 3}};
  std::ofstream(folder / "metrics.csv", std::ios::binary) << "kind,updates\r\n"; // of old
  {
    MetricsFile file(folder / "metrics.csv", MetricsFile::columns({"a \"loss\",\nin nats"}));
    file.progress(progress);
    file.evaluation({.environment_steps = 800, .updates = 50, .returns = {10, 30}});
  }
  std::vector<nlohmann::json> rows;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    rows.push_back(nlohmann::json::parse(line));
  REQUIRE(rows.size() == 3); // the incomplete one was removed
  CHECK(rows[0].at("updates") == 1);
  CHECK(rows[1].at("kind") == "progress");
  CHECK(rows[1].at("environment_steps") == 800);
  CHECK(rows[1].at("training_seconds") == 1e-7);
  CHECK(rows[1].at("a \"loss\",\nin nats") == -1.5);
  CHECK_FALSE(rows[1].contains("episode_return"));
  CHECK_FALSE(rows[1].contains("unheard_of"));
  CHECK(rows[2].at("kind") == "evaluation");
  CHECK(rows[2].at("evaluation_return") == 20);
}

TEST_CASE("metrics.csv continues after a kill in the middle of a row or of its header") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "metrics.csv";
  { MetricsFile(path, columns()).progress({}); }
  std::ofstream(path, std::ios::app | std::ios::binary) << "progress,12,3";
  { MetricsFile(path, columns()).progress({}); }
  const auto records = read_csv(read_text(path));
  REQUIRE(records.size() == 3);
  CHECK(records[2].size() == columns().size());
  const std::string header = csv_record(columns());
  for (const std::size_t written : {std::size_t{1}, header.size() - 1, header.size()}) {
    CAPTURE(written);
    std::ofstream(path, std::ios::binary) << header.substr(0, written);
    { MetricsFile(path, columns()).progress({}); }
    CHECK(read_text(path).starts_with(header + "progress,"));
    CHECK(read_csv(read_text(path)).size() == 2);
  }
  CHECK_THROWS_WITH_AS(MetricsFile("/dev/full", columns()).progress({}),
                       "/dev/full: cannot be written: No space left on device", std::runtime_error);
}

TEST_CASE("metrics.csv of an earlier version keeps its columns in their order") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "metrics.csv";
  const std::string old =
      "kind,updates,environment_steps,evaluation_return_min,evaluation_return_max,"
      "evaluation_return,critic_loss\r\nevaluation,1,400,0,2,1,\r\n";
  std::ofstream(path, std::ios::binary) << old;
  std::vector<std::string> warnings;
  {
    Recorder recorder(
        {.folder = folder.path(),
         .columns = columns(),
         .now = [] { return kNow; },
         .listener = [&](const auto& level,
                         const auto& text) { warnings.push_back(level + " " + text); }});
    actors::Progress progress;
    progress.environment_steps = 800;
    progress.updates = 50;
    progress.learner = {{"critic_loss", 1.5}, {"gradient_norm", 3}};
    recorder.callbacks().progress(progress);
    REQUIRE(warnings.size() == 1);
    recorder.callbacks().evaluated({.environment_steps = 800, .updates = 50, .returns = {4, 6}});
  }
  CHECK(warnings[0].starts_with("warning metrics.csv keeps the columns that it was created with"));
  CHECK(warnings[0].find("agent_steps,episodes,inserts,samples") != std::string::npos);
  CHECK(warnings[0].ends_with(" more"));
  CHECK(read_text(path) == old + "progress,50,800,,,,1.5\r\nevaluation,50,800,4,6,5,\r\n");
  const auto curve = read_curve(path);
  REQUIRE(curve.size() == 2);
  CHECK(curve[1].environment_steps == 800);
  CHECK(curve[1].maximum == 6);
  CHECK(MetricsFile(path, columns()).left_out().starts_with("agent_steps,"));
  CHECK(MetricsFile(folder / "new.csv", columns()).left_out().empty());
}

TEST_CASE("metrics.csv that is damaged or of a later version is refused and left unchanged") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "metrics.csv";
  for (const auto& [text, complaint] : std::vector<std::pair<std::string, std::string>>{
           {"kind,updates,warmth\r\nprogress,1,2\r\nprogr",
            ": has columns that this version does not write (warmth); resume with the version that "
            "wrote it, or move the file away"},
           {"a,b\r\n", ": is damaged: its first line is not a header that begins with kind; repair "
                       "it, or move it away"},
           {"updates,kind\r\n",
            ": is damaged: its first line is not a header that begins with kind; "
            "repair it, or move it away"},
           {"kind,upd",
            ": is damaged: its first line is not a header that begins with kind; repair "
            "it, or move it away"},
           {"kind,updates,updates\r\n",
            ": is damaged: its header has a column twice; repair it, or move it away"},
           {"kind,updates\r\nprogress,1\r\nprogress,1,7\r\n",
            ": is damaged: record 3 has 3 fields and its header 2; repair it, or move it away"}}) {
    std::ofstream(path, std::ios::binary) << text;
    const std::string told = path.string() + complaint;
    CHECK_THROWS_WITH_AS(MetricsFile(path, columns()), told.c_str(), std::runtime_error);
    CHECK(read_text(path) == text);
  }
}

TEST_CASE("CRC-32C has the values of RFC 3720") {
  const std::string digits = "123456789";
  CHECK(crc32c(digits.data(), digits.size()) == 0xE3069283U);
  const std::string zeros(32, '\0');
  CHECK(crc32c(zeros.data(), zeros.size()) == 0x8A9136AAU);
  CHECK(crc32c("", 0) == 0);
}

TEST_CASE("An event file holds a version and every finite scalar with its step and time") {
  const TemporaryFolder folder;
  fs::path path;
  {
    EventFile file(folder.path(), kNow);
    path = file.file().path();
    file.scalars(kNow, 7, {{"a", 1.5}, {"b", kNan}, {"c", -2}});
    file.scalars(kNow, 8, {{"b", kNan}});
  }
  CHECK(path.filename() == "events.out.tfevents.1795255200.troupe");
  const auto events = read_events(path);
  REQUIRE(events.size() == 2);
  CHECK(events[0].file_version() == "brain.Event:2");
  CHECK(events[1].step() == 7);
  CHECK(events[1].wall_time() == 1'795'255'200);
  REQUIRE(events[1].summary().value_size() == 2);
  CHECK(events[1].summary().value(0).tag() == "a");
  CHECK(events[1].summary().value(1).simple_value() == -2);
  CHECK(EventFile(folder.path(), kNow).file().path() != path); // a second one never overwrites
}

TEST_CASE("A recorder writes every report to its files and prints whole lines to the screen") {
  const TemporaryFolder folder;
  const fs::path screen = folder.path() / "screen";
  std::FILE* out = std::fopen(screen.c_str(), "w");
  {
    Recorder recorder({.folder = folder.path(),
                       .columns = columns(),
                       .screen = out,
                       .terminal = false,
                       .now = [] { return kNow; }});
    const auto callbacks = recorder.callbacks();
    callbacks.progress({});
    callbacks.evaluated({.environment_steps = 100, .returns = {1, 3}});
    callbacks.evaluated({.environment_steps = 200, .returns = {5, 7}, .final = true});
    callbacks.episode(50, 12.5, 1000);
    callbacks.distributions({.environment_steps = 60, .updates = 3, .histograms = {}});
    callbacks.log("warning", "an actor died\nand was restarted");
    CHECK(recorder.unwritten().empty());
  }
  std::fclose(out);
  CHECK(read_text(screen).find("evaluation: mean return 2.0 over 2 episodes") != std::string::npos);
  CHECK(read_text(screen).find("final evaluation: mean return 6.0") != std::string::npos);
  CHECK(read_text(folder.path() / "log.txt")
            .find("2026-11-21T10:00:00Z warning an actor died and was restarted\n")
        != std::string::npos);
  CHECK(read_csv(read_text(folder.path() / "metrics.csv")).size() == 4);
  const auto curve = read_curve(folder.path() / "metrics.csv");
  REQUIRE(curve.size() == 2);
  CHECK(curve[0].value == 2);
  CHECK(curve[1].maximum == 7);
}

TEST_CASE("A recorder writes pictures to the events up to 64 MiB, and the settings and the outcome "
          "of the run") {
  const TemporaryFolder folder;
  const fs::path large = folder / "large.png";
  std::ofstream(large).close();
  fs::resize_file(large, 40UL << 20);
  std::vector<std::string> warnings;
  const auto keep = [&](const std::string& level, const std::string& text) {
    if (level == "warning")
      warnings.push_back(text);
  };
  {
    Recorder recorder({.folder = folder.path(),
                       .columns = columns(),
                       .settings = {{"seed", 3.0}},
                       .now = [] { return kNow; },
                       .listener = keep});
    recorder.callbacks().evaluated({.updates = 9,
                                    .metrics = {{"score", 1}},
                                    .pictures = {{"samples", {1, 2, {1, 2, 3, 4, 5, 6}}}}});
    for (std::int64_t step = 10; step < 14; ++step) {
      recorder.picture("evaluation/video", step, large, 640, 480);
    }
    recorder.ended(false);
  }
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("have reached 64 MiB; " + large.string()) != std::string::npos);
  const auto events = read_events(folder / ("events.out.tfevents.1795255200.troupe"));
  REQUIRE(events.size() == 6); // version, settings, score, samples, video, end
  const auto content = [&](std::size_t at) {
    EventHparams hparams;
    REQUIRE(
        hparams.ParseFromString(events[at].summary().value(0).metadata().plugin_data().content()));
    return hparams;
  };
  CHECK(content(1).session_start_info().hparams().at("seed").number_value() == 3);
  CHECK(events[3].step() == 9);
  CHECK(events[3].summary().value(0).tag() == "pictures/samples");
  CHECK(events[3].summary().value(0).image().width() == 2);
  CHECK(events[3].summary().value(0).image().encoded_image_string()
        == read_text(folder / "pictures/samples-9.png"));
  CHECK(events[4].step() == 10);
  CHECK(events[4].summary().value(0).image().encoded_image_string().size() == 40UL << 20);
  CHECK(content(5).session_end_info().status() == EventHparams::SessionEnd::FAILURE);
}

TEST_CASE(
    "live.json holds the last report, complete with shards, stages, queues and waiting requests") {
  const TemporaryFolder folder;
  CHECK_FALSE(read_live_file(folder.path()));
  LiveFile live(folder.path());
  actors::Progress progress;
  progress.updates = 3;
  progress.episode_return = kNan;
  REQUIRE(live.write(progress, kNow));
  progress.updates = 4;
  progress.seconds["learner.update"] = 1.5;
  progress.actor_times =
      std::make_shared<const actors::Progress::ActorTimes>(actors::Progress::ActorTimes{
          {{.role = "learner", .index = 0, .seconds = progress.seconds}}, 7});
  progress.insertions_in_flight = 12;
  progress.ready_batches = 2;
  progress.shards = {{.index = 1, .waiting = "a \"sample\" waits"}};
  progress.waits = {"learner 0: waiting for samples from replay 1"};
  REQUIRE(live.write(progress, kNow));
  const std::string text = read_live_file(folder.path()).value();
  CHECK(text.find("\"updates\":4") != std::string::npos);
  CHECK(text.find("\"episode_return\":null") != std::string::npos);
  CHECK(text.find("\"actors\":[{\"role\":\"learner\",\"index\":0,"
                  "\"seconds\":{\"learner.update\":1.5}}],\"actors_left_out\":7")
        != std::string::npos);
  CHECK(text.find("\"insertions_in_flight\":12") != std::string::npos);
  CHECK(text.find("\"ready_batches\":2") != std::string::npos);
  CHECK(text.find("\"seconds\":{\"learner.update\":1.5}") != std::string::npos);
  CHECK(text.find("\"waiting\":\"a \\\"sample\\\" waits\"") != std::string::npos);
  CHECK(text.find("waiting for samples from replay 1") != std::string::npos);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1); // nothing is left beside it
  CHECK_FALSE(LiveFile(folder.path() / "none").write(progress, kNow));
}

TEST_CASE("While a disk is full, records are buffered, and they are written once there is room") {
  const TemporaryFolder folder;
  std::vector<std::string> warnings;
  Recorder recorder({.folder = folder.path(),
                     .columns = columns(),
                     .now = [] { return kNow; },
                     .listener = [&](const auto&, const auto& text) { warnings.push_back(text); }});
  const auto callbacks = recorder.callbacks();
  callbacks.progress({});
  {
    const FullDisk full; // for files of this process
    for (int i = 0; i < 3; ++i)
      callbacks.progress({});
    CHECK(recorder.unwritten().find("metrics.csv: cannot be written") != std::string::npos);
  }
  REQUIRE(warnings.size() == 4); // both metrics files, the events, and the log that reported them
  CHECK(warnings[0].find("metrics.csv: cannot be written: ") != std::string::npos);
  CHECK(warnings[0].find("; up to 4 MiB of records are kept in memory") != std::string::npos);
  CHECK(recorder.unwritten().empty());
  REQUIRE(warnings.size() == 8);
  CHECK(warnings[1].find("metrics.jsonl: cannot be written: ") != std::string::npos);
  CHECK(warnings[4].find("metrics.csv: is written again; 3 records waited and 0 were dropped")
        != std::string::npos);
  CHECK(read_csv(read_text(folder.path() / "metrics.csv")).size() == 5);
  CHECK(read_events(folder / "events.out.tfevents.1795255200.troupe").size() == 6);
  const std::string log = read_text(folder / "log.txt");
  for (const std::string& warning : warnings)
    CHECK(log.find(warning) != std::string::npos);
}
