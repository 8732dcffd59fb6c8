#include "tests/doctest_torch.hpp"

#include <cstring>
#include <regex>

#include <nlohmann/json.hpp>

#include "experiments/dashboard/api.hpp"
#include "experiments/run_folder/folder_lock.hpp"
#include "tests/experiments/dashboard/dashboard_fixture.hpp"
#include "tests/folders.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using namespace troupe::experiments::dashboard;
using Json = nlohmann::json;

namespace {

/// Records the requests that it gets.
class NotingOperator : public RunOperator {
public:
  explicit NotingOperator(std::vector<std::string>& asked) : asked_(asked) {}
  std::vector<std::string> actions() const override { return {"stop", "scale"}; }
  std::string status() override { return R"({"phase": "training"})"; }
  std::string stop() override { return note("stop"); }
  std::string scale(const std::string& role, int count) override {
    if (role != "environment") {
      throw std::invalid_argument("only environment actors are scaled");
    }
    return note("scale " + role + " " + std::to_string(count));
  }
  std::string restart(const std::string& role, const std::string& node) override {
    return note("restart " + role + "@" + node);
  }
  std::string checkpoint() override { return note("checkpoint"); }
  std::string pause(bool paused) override { return note(paused ? "pause" : "resume"); }
  std::string timeline(std::int64_t updates) override {
    return note("timeline " + std::to_string(updates));
  }
  std::string limit(double samples_per_insert, double error_buffer) override {
    return note("limit " + std::to_string(static_cast<int>(samples_per_insert)) + " within "
                + std::to_string(static_cast<int>(error_buffer)));
  }

  Picture picture(int actor, int environment, bool observed) override {
    note("picture " + std::to_string(actor) + "/" + std::to_string(environment)
         + (observed ? " as observed" : ""));
    return {.jpeg = "JPEG", .observed = observed, .agent_steps = 1200, .environments = 4};
  }

private:
  std::string note(const std::string& what) {
    asked_.push_back(what);
    return "done: " + what;
  }
  std::vector<std::string>& asked_;
};

struct Fixture {
  Fixture() {
    write_run(folder / "balance" / "2026-11-25T10-00-00", 1, 20);
    write_run(folder / "balance" / "2026-11-25T11-00-00", 2, 20);
    write_run(folder / "speeds" / "part" / "balance" / "2026-11-25T12-00-00", 3, 20);
  }
  const TemporaryFolder folder;
  std::vector<std::string> asked;
  Api api{folder.path(),
          [this](const std::filesystem::path&) { return std::make_unique<NotingOperator>(asked); },
          "", std::chrono::hours(1)};
  const std::string first = "balance/2026-11-25T10-00-00", second = "balance/2026-11-25T11-00-00";

  Json get(const std::string& path, const std::map<std::string, std::string>& query = {}) {
    return Json::parse(api.answer({.path = path, .query = query}).body);
  }
  web::Response post(const std::string& path, const Json& body) {
    return api.answer({.method = "POST", .path = path, .body = body.dump()});
  }
};

} // namespace

TEST_CASE_FIXTURE(
    Fixture,
    "The list of runs includes those of sweeps, newest first, with state, result and group") {
  const Json runs = get("/api/runs")["runs"];
  REQUIRE(runs.size() == 3);
  CHECK(runs[0]["id"] == "speeds/part/balance/2026-11-25T12-00-00");
  CHECK(runs[0]["sweep"] == "speeds");
  CHECK(runs[2]["id"] == first);
  CHECK(runs[2]["sweep"] == "");
  CHECK(runs[2]["state"] == "finished");
  CHECK(runs[2]["result"] == 100);
  CHECK(runs[2]["task"] == "cartpole_balance");
  CHECK(runs[2]["agent"] == "d4pg");
  CHECK(runs[2]["environment_steps"] == 200);
  CHECK(runs[1]["group"] == runs[2]["group"]); // they differ only in the seed
  const FolderLock lock(folder / second, "this run");
  CHECK(get("/api/runs")["runs"][1]["state"] == "running");
}

TEST_CASE_FIXTURE(Fixture,
                  "Curves are sent in one binary response that contains only those that changed") {
  const auto ask = [&](std::uint64_t version) {
    const Json one = {{"id", first}, {"version", version}};
    const Json other = {{"id", second}, {"version", 0}};
    return post("/api/series",
                {{"x", "updates"}, {"y", "headline"}, {"points", 100}, {"runs", {one, other}}})
        .body;
  };
  std::string bytes = ask(0);
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  CHECK(length % 4 == 0);
  const Json head = Json::parse(bytes.substr(4, length))["runs"];
  REQUIRE(head.size() == 2);
  CHECK(head[1]["id"] == second);
  CHECK(head[1]["points"] == 1);
  CHECK(head[1]["read"] == 1.0);
  float numbers[4];
  std::memcpy(numbers, bytes.data() + 4 + length + 4 * head[1]["offset"].get<std::size_t>(),
              sizeof numbers);
  CHECK(numbers[0] == 20);  // updates
  CHECK(numbers[1] == 200); // the return
  bytes = ask(head[0]["version"]);
  std::memcpy(&length, bytes.data(), sizeof length);
  CHECK(Json::parse(bytes.substr(4, length))["runs"].size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "Curves are refused for more runs than the server keeps in memory") {
  const auto ask = [&](std::size_t count) {
    const Json runs(count, Json{{"id", first}, {"version", 0}});
    return post("/api/series",
                {{"x", "updates"}, {"y", "headline"}, {"points", 100}, {"runs", runs}});
  };
  CHECK(ask(RunCatalogue::kMostLoaded).status == 200);
  CHECK(has(error_of([&] { ask(RunCatalogue::kMostLoaded + 1); }), "at most 256 are drawn"));
}

TEST_CASE_FIXTURE(Fixture, "A run without metrics is sent once, as completely read") {
  const auto sent = [&](std::uint64_t version) {
    const Json one = {{"id", first}, {"version", version}};
    const Json wanted = {
        {"x", "updates"}, {"y", "headline"}, {"points", 100}, {"runs", Json::array({one})}};
    const std::string bytes = post("/api/series", wanted).body;
    std::uint32_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    return Json::parse(bytes.substr(4, length)).at("runs");
  };
  std::filesystem::remove(folder / first / "metrics.csv");
  const Json runs = sent(0);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0]["read"] == 1.0);
  CHECK(runs[0]["points"] == 0);
  CHECK(sent(runs[0]["version"]).empty());
}

TEST_CASE_FIXTURE(Fixture,
                  "A run is described with its live numbers, plan, checkpoints and first warning") {
  const Json run = get("/api/run", {{"id", first}});
  CHECK(run["live"]["seconds"]["learner.update"] == 3.0);
  CHECK(run["live"]["shards"][0]["waiting"] == "a sample waits for items");
  CHECK(run["plan"]["shards"] == 1);
  CHECK(run["first_problem"]["text"] == "warning a disk is slow");
  CHECK(run["actions"].empty()); // it is over
  const FolderLock lock(folder / second, "this run");
  const Json live = get("/api/run", {{"id", second}});
  CHECK(live["status"]["phase"] == "training");
  CHECK(live["actions"] == Json({"stop", "scale"}));
}

TEST_CASE_FIXTURE(Fixture, "Configurations are compared key by key for two or more runs") {
  const Json config = get("/api/config", {{"id", first}, {"other", second}});
  CHECK(has(config["text"], "cartpole_balance"));
  REQUIRE(config["differences"].size() == 1);
  CHECK(config["differences"][0] == Json({{"key", "seed"}, {"before", "2"}, {"after", "1"}}));
  const Json table = Json::parse(
      post("/api/compare", {{"runs", {first, second, "speeds/part/balance/2026-11-25T12-00-00"}}})
          .body);
  CHECK(table["keys"] == Json({"seed"}));
  CHECK(table["rows"][0]["values"] == Json({"1"}));
  CHECK(table["rows"][2]["values"] == Json({"3"}));
  CHECK(table["rows"][2]["result"] == 300);
}

TEST_CASE_FIXTURE(Fixture, "Log lines are filtered by source, text and level") {
  CHECK(get("/api/logs", {{"id", first}})["lines"].size() == 3);
  CHECK(get("/api/logs", {{"id", first}, {"contains", "EVALUATION"}})["lines"].size() == 1);
  CHECK(get("/api/logs", {{"id", first}, {"who", "learner"}})["lines"].empty());
  const Json problems = get("/api/logs", {{"id", first}, {"problems", "1"}})["lines"];
  REQUIRE(problems.size() == 1);
  CHECK(problems[0]["level"] == "warning");
}

TEST_CASE_FIXTURE(Fixture, "Only videos are sent, in full or in part") {
  std::filesystem::create_directories(folder / first / "videos");
  std::ofstream(folder / first / "videos" / "200.mp4") << "0123456789";
  CHECK(get("/api/run", {{"id", first}})["videos"][0]["path"] == "videos/200.mp4");
  const auto ask = [&](const std::string& path, const std::string& range) {
    web::Request request{.path = "/api/file", .query = {{"id", first}, {"path", path}}};
    if (!range.empty()) {
      request.headers["range"] = range;
    }
    return api.answer(request);
  };
  CHECK(ask("videos/200.mp4", "").body == "0123456789");
  CHECK(ask("videos/200.mp4", "").type == "video/mp4");
  CHECK(ask("videos/200.mp4", "bytes=2-4").body == "234");
  CHECK(ask("videos/200.mp4", "bytes=2-4").status == 206);
  CHECK(ask("videos/200.mp4", "bytes=8-").body == "89");
  CHECK(ask("videos/200.mp4", "bytes=-3").body == "789");
  CHECK(ask("videos/200.mp4", "bytes=10-").status == 416);
  CHECK(ask("videos/200.mp4", "bytes=-0").status == 416);
  CHECK(ask("videos/200.mp4", "bytes=4-99").body == "456789");
  for (const char* ignored :
       {"bytes=5-2", "lines=1-2", "bytes=0-1,3-4", "bytes=-", "bytes=x-", "bytes=1-x", "bytes=1"}) {
    CAPTURE(ignored);
    CHECK(ask("videos/200.mp4", ignored).status == 200);
    CHECK(ask("videos/200.mp4", ignored).body == "0123456789");
  }
  for (const char* path :
       {"config.textproto", "videos/../config.textproto", "/etc/passwd", "videos/none.mp4", ""}) {
    CHECK(ask(path, "").status == 404);
  }
  CHECK(has(error_of([&] { get("/api/run", {{"id", "../" + first}}); }), "there is no such run"));
}

TEST_CASE_FIXTURE(
    Fixture, "Actions reach the run's operator, and refused actions are answered with the reason") {
  CHECK(Json::parse(post("/api/stop", {{"id", first}}).body)["done"] == "done: stop");
  post("/api/scale", {{"id", first}, {"role", "environment"}, {"count", 4}});
  post("/api/restart", {{"id", first}, {"role", "learner"}});
  post("/api/checkpoint", {{"id", first}});
  post("/api/pause", {{"id", first}, {"paused", true}});
  post("/api/pause", {{"id", first}, {"paused", false}});
  post("/api/timeline", {{"id", first}, {"updates", 20}});
  post("/api/limit", {{"id", first}, {"samples_per_insert", 16}, {"error_buffer", 500}});
  CHECK(asked
        == std::vector<std::string>{"stop", "scale environment 4", "restart learner@", "checkpoint",
                                    "pause", "resume", "timeline 20", "limit 16 within 500"});
  CHECK(has(error_of([&] {
              post("/api/scale", {{"id", first}, {"role", "learner"}, {"count", 4}});
            }),
            "only environment"));
  CHECK(has(error_of([&] {
              post("/api/scale", {{"id", first}, {"role", "environment"}, {"count", -1}});
            }),
            "count"));
  CHECK(has(error_of([&] { post("/api/stop", Json::array()); }), "JSON object"));
  CHECK(has(error_of([&] { post("/api/stop", {{"id", 3}}); }), "id"));
  CHECK(has(error_of([&] {
              post("/api/restart", {{"id", first}, {"role", 3}});
            }),
            "role: must be a string"));
  CHECK(api.answer({.path = "/api/stop"}).status == 404); // GET changes nothing
  CHECK(has(error_of([&] {
              post("/api/pause", {{"id", first}, {"paused", 1}});
            }),
            "paused: must be true or false"));
  CHECK(has(error_of([&] {
              post("/api/timeline", {{"id", first}, {"updates", -1}});
            }),
            "updates: must be a whole number"));
  CHECK(has(error_of([&] {
              post("/api/limit", {{"id", first}, {"samples_per_insert", "much"}});
            }),
            "samples_per_insert: must be a number"));
  CHECK(asked.size() == 8);
}

TEST_CASE_FIXTURE(Fixture, "A deeply nested body is refused") {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const auto refusal = [&](const std::string& body) {
    return error_of([&] { api.answer({.method = "POST", .path = "/api/stop", .body = body}); });
  };
  CHECK(has(refusal("{\"id\": " + deep + "}"), "the body must be a JSON object"));
  CHECK(has(refusal(deep), "the body must be a JSON object"));
}

TEST_CASE_FIXTURE(Fixture, "A deeply nested live.json is not read") {
  const FolderLock lock(folder / second, "this run");
  std::ofstream(folder / second / "live.json")
      << "{\"updates\": 7, \"learner\": " << std::string(100'000, '[') << std::string(100'000, ']')
      << "}";
  CHECK(get("/api/run", {{"id", second}})["live"].is_null());
  CHECK(has(api.answer({.path = "/metrics"}).body, "troupe_runs{state=\"running\"} 1"));
}

TEST_CASE_FIXTURE(Fixture, "A live picture is a JPEG, and a header describes it") {
  std::map<std::string, std::string> query{
      {"id", first}, {"actor", "3"}, {"environment", "1"}, {"observed", "1"}};
  const web::Response seen = api.answer({.path = "/api/picture", .query = query});
  CHECK(seen.type == "image/jpeg");
  CHECK(seen.body == "JPEG");
  REQUIRE(seen.headers.size() == 1);
  CHECK(seen.headers[0].first == "X-Troupe-Picture");
  CHECK(Json::parse(seen.headers[0].second)
        == Json({{"observed", true}, {"agent_steps", 1200}, {"environments", 4}}));
  CHECK(asked == std::vector<std::string>{"picture 3/1 as observed"});
  for (const char* actor : {"", "-1", "1e3", "1000000"}) {
    query["actor"] = actor;
    CHECK(has(error_of([&] { api.answer({.path = "/api/picture", .query = query}); }),
              "must be a whole number"));
  }
}

TEST_CASE_FIXTURE(Fixture, "Prometheus gets the live runs by name and the count of the others") {
  CHECK(has(api.answer({.path = "/metrics"}).body, "troupe_runs{state=\"finished\"} 3"));
  const FolderLock lock(folder / second, "this run");
  const std::string text = api.answer({.path = "/metrics"}).body;
  CHECK(has(text, "# TYPE troupe_environment_steps_total counter"));
  CHECK(has(text, "troupe_environment_steps_total{run=\"" + second
                      + "\",task=\"cartpole_balance\",agent=\"d4pg\"} 200"));
  CHECK(has(text, "troupe_shard_waiting"));
  CHECK(has(text, "troupe_insertions_in_flight{run=\"" + second
                      + "\",task=\"cartpole_balance\",agent=\"d4pg\"} 12"));
  CHECK(has(text, "troupe_refused_connections_total{run=\"" + second
                      + "\",task=\"cartpole_balance\",agent=\"d4pg\"} 4"));
  CHECK_FALSE(has(text, first));
}

TEST_CASE_FIXTURE(Fixture, "Grafana's dashboard asks for metrics and labels that are exported") {
  const FolderLock lock(folder / second, "this run");
  const std::string exported = api.answer({.path = "/metrics"}).body;
  const Json board = Json::parse(read_text(in_source("experiments/dashboard/grafana.json")));
  const auto matches = [](const std::string& text, const std::regex& form) {
    std::vector<std::string> found;
    for (std::sregex_iterator at(text.begin(), text.end(), form), end; at != end; ++at) {
      found.push_back(at->str(1));
    }
    return found;
  };
  const auto check = [&](const std::string& expression, const std::vector<std::string>& labels) {
    CAPTURE(expression);
    const auto names = matches(expression, std::regex("(troupe_[a-z_]+)"));
    CHECK_FALSE(names.empty());
    for (const std::string& name : names) {
      CHECK_MESSAGE(has(exported, "\n# TYPE " + name + " "), name);
      for (const std::string& label : labels) {
        const std::regex form("\n" + name + R"(\{([^}]*,)?)" + label + "=");
        CHECK_MESSAGE((label == "__name__" || std::regex_search(exported, form)),
                      (name + " " + label));
      }
    }
  };
  std::size_t targets = 0;
  for (const Json& panel : board["panels"]) {
    for (const Json& target : panel.value("targets", Json::array())) {
      std::vector<std::string> labels =
          matches(target["legendFormat"], std::regex(R"(\{\{(\w+)\}\})"));
      const auto filtered = matches(target["expr"], std::regex(R"(\{(\w+)=)"));
      labels.insert(labels.end(), filtered.begin(), filtered.end());
      check(target["expr"], labels);
      ++targets;
    }
  }
  CHECK(targets >= board["panels"].size());
  for (const Json& variable : board["templating"]["list"]) {
    if (variable["type"] == "query") {
      check(variable["query"], {"run"});
    }
  }
}
