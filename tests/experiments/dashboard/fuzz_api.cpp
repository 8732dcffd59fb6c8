// libFuzzer target of the dashboard's requests, and of the files of runs that it reads. The first
// byte selects what follows: the target of a GET request and, in a second line, its header Range;
// that of a POST request and its body; or a run's metrics.csv or live.json.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiments/dashboard/api.hpp"
#include "experiments/run_folder/folder_lock.hpp"
#include "tests/experiments/dashboard/dashboard_fixture.hpp"
#include "tests/fuzz_seeds.hpp"

namespace {

using namespace troupe::experiments;
using namespace troupe::experiments::dashboard;

enum Kind : std::uint8_t { kGet, kPost, kMetrics, kLive };

const std::string kVideo = "0123456789"; // the only file that requests may read
const std::string kSeries =
    "/api/series\n{\"x\": \"updates\", \"y\": \"headline\", \"points\": 10, "
    "\"runs\": [{\"id\": \"test/1\", \"version\": 0}]}";

/// An operator that obeys. Its numbers must be within the limits of the requests.
class Obedient : public RunOperator {
public:
  std::vector<std::string> actions() const override { return {"stop"}; }
  std::string status() override { return R"({"phase": "training"})"; }
  std::string stop() override { return "done"; }
  std::string scale(const std::string&, int count) override {
    return done(count >= 0 && count <= 1'000'000);
  }
  std::string restart(const std::string&, const std::string&) override { return "done"; }
  std::string checkpoint() override { return "done"; }
  std::string pause(bool) override { return "done"; }
  std::string timeline(std::int64_t updates) override {
    return done(updates >= 0 && updates <= 1000);
  }
  std::string limit(double samples_per_insert, double error_buffer) override {
    return done(std::isfinite(samples_per_insert) && std::isfinite(error_buffer));
  }
  Picture picture(int actor, int environment, bool) override {
    done(actor >= 0 && environment >= 0 && actor < 1'000'000 && environment < 1'000'000);
    return {.jpeg = "JPEG"};
  }

private:
  static std::string done(bool within_limits) {
    if (!within_limits)
      __builtin_trap();
    return "done";
  }
};

/// A finished run "test/1" and a live one "test/2".
class Runs {
public:
  Runs() {
    write_run(folder / "test/1", 1, 3);
    write_run(folder / "test/2", 2, 3);
    std::filesystem::create_directories(folder / "test/1/videos");
    std::ofstream(folder / "test/1/videos/200.mp4") << kVideo;
    lock_ = std::make_unique<FolderLock>(folder / "test/2", "this run");
  }
  std::unique_ptr<Api> api() const {
    return std::make_unique<Api>(
        folder.path(), [](const std::filesystem::path&) { return std::make_unique<Obedient>(); },
        "", std::chrono::hours(1));
  }

  const troupe::TemporaryFolder folder{troupe::kMemoryFolder};

private:
  std::unique_ptr<FolderLock> lock_;
};

/// Returns whether the request is granted.
bool grants(Api& api, const web::Request& request) {
  try {
    const web::Response answer = api.answer(request);
    const bool granted = answer.status == 200 || answer.status == 206;
    if (answer.type == "application/json" && !nlohmann::json::accept(answer.body))
      __builtin_trap();
    if (granted && request.path == "/api/file" && kVideo.find(answer.body) == std::string::npos)
      __builtin_trap();
    return granted;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

bool grants(Api& api, Kind kind, const std::string& text) {
  const std::size_t line = std::min(text.find('\n'), text.size());
  const std::string rest = text.substr(std::min(line + 1, text.size()));
  web::Request request;
  if (kind == kPost) {
    request.method = "POST";
    request.body = rest;
  } else {
    request.headers["range"] = rest;
  }
  return web::parse_target(text.substr(0, line), request) && grants(api, request);
}

/// Reads a run with a changed file. Whatever it contains, the requests are granted.
void read_changed(const Runs& runs, const std::string& file, const std::string& text) {
  const std::string before = troupe::read_text(runs.folder / file);
  std::ofstream(runs.folder / file, std::ios::binary) << text;
  const auto api = runs.api();
  if (!grants(*api, kGet, "/api/runs") || !grants(*api, kGet, "/api/run?id=test/1")
      || !grants(*api, kGet, "/api/run?id=test/2") || !grants(*api, kGet, "/metrics")
      || !grants(*api, kPost, kSeries))
    __builtin_trap();
  std::ofstream(runs.folder / file, std::ios::binary) << before; // for the next input
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  const Runs runs;
  std::vector<std::string> seeds{
      std::string(1, kMetrics) + read_text(runs.folder / "test/1/metrics.csv"),
      std::string(1, kLive) + read_text(runs.folder / "test/2/live.json")};
  for (const char* target :
       {"/api/runs", "/api/run?id=test/1", "/api/config?id=test/1&other=test/2",
        "/api/logs?id=test/1&who=head&contains=a%20b&problems=1",
        "/api/file?id=test/1&path=videos/200.mp4\nbytes=2-4",
        "/api/picture?id=test/2&actor=3&environment=1&observed=1", "/metrics"})
    seeds.push_back(std::string(1, kGet) + target);
  for (const char* request :
       {kSeries.c_str(), "/api/compare\n{\"runs\": [\"test/1\", \"test/2\"]}",
        "/api/stop\n{\"id\": \"test/2\"}",
        "/api/scale\n{\"id\": \"test/2\", \"role\": \"environment\", \"count\": 4}",
        "/api/restart\n{\"id\": \"test/2\", \"role\": \"learner\", \"node\": \"a\"}",
        "/api/checkpoint\n{\"id\": \"test/2\"}",
        "/api/pause\n{\"id\": \"test/2\", \"paused\": true}",
        "/api/timeline\n{\"id\": \"test/2\", \"updates\": 20}",
        "/api/limit\n{\"id\": \"test/2\", \"samples_per_insert\": 16, \"error_buffer\": 500}"})
    seeds.push_back(std::string(1, kPost) + request);
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  static const Runs runs;
  static const std::unique_ptr<Api> api = runs.api();
  const auto kind = static_cast<Kind>(data[0] % 4);
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (kind == kGet || kind == kPost)
    return troupe::fuzz_result(grants(*api, kind, text));
  read_changed(runs, kind == kMetrics ? "test/1/metrics.csv" : "test/2/live.json", text);
  return 0;
}
