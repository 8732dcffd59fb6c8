#include "experiments/dashboard/api.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "env/text/json_depth.hpp"
#include "env/text/number_in.hpp"
#include "experiments/config/on_data.hpp"
#include "experiments/config/resume_changes.hpp"
#include "experiments/dashboard/prometheus_reply.hpp"
#include "experiments/dashboard/run_file.hpp"
#include "experiments/dashboard/series_reply.hpp"
#include "experiments/run_folder/live_file.hpp"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments::dashboard {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kMostCompared = 500; // maximum number of runs
constexpr int kDeepestJson = 64;

web::Response json_reply(const Json& value) {
  return {.body = value.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

Json or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

/// Parses the JSON text of a request, a file or a head; null if it is not valid, or nested too
/// deeply.
Json parsed(const std::string& text) {
  Json value = nullptr;
  if (!env::is_deeper_than(text, kDeepestJson)) {
    value = Json::parse(text, nullptr, false);
  }
  if (value.is_discarded()) {
    value = nullptr;
  }
  return value;
}

Json body_of(const web::Request& request) {
  Json body = parsed(request.body);
  if (!body.is_object()) {
    throw std::invalid_argument("the body must be a JSON object");
  }
  return body;
}

std::string text_in(const Json& body, const std::string& key) {
  const auto found = body.find(key);
  if (found == body.end() || !found->is_string()) {
    throw std::invalid_argument(key + ": must be a string in the body");
  }
  return *found;
}

/// As text_in(); "" if the body has no such key.
std::string optional_text_in(const Json& body, const std::string& key) {
  return body.contains(key) ? text_in(body, key) : "";
}

double number_in(const Json& body, const std::string& key) {
  const auto found = body.find(key);
  if (found == body.end() || !found->is_number()) {
    throw std::invalid_argument(key + ": must be a number in the body");
  }
  return *found;
}

int whole_number(const web::Request& request, const std::string& key) {
  const std::string text = request.parameter(key);
  const auto number = env::number_in<unsigned>(text, 0, 999'999);
  if (!number) {
    throw std::invalid_argument(key + "=" + text + ": must be a whole number from 0 to 999999");
  }
  return static_cast<int>(*number);
}

Json files_json(const std::filesystem::path& run, const std::string& kind) {
  Json files = Json::array();
  for (const RunFile& file : run_files(run, kind)) {
    files.push_back({{"path", file.path}, {"time", file.time}});
  }
  return files;
}

/// The run's roles and their numbers, from which the page draws the data flow.
Json plan_json(const Experiment& e) {
  return {{"on_data", is_on_data(e)},
          {"plays", plays(e)},
          {"environment_actors", plays(e) ? e.actors().environment() : 0},
          {"environments_per_actor", e.actors().environments_per_actor()},
          {"shards", is_on_data(e) ? 0 : e.replay().shards()},
          {"samples_per_insert", e.replay().samples_per_insert()},
          {"minimum_items", e.replay().minimum_items()},
          {"capacity_items", e.replay().capacity_items()},
          {"capacity_bytes", e.replay().capacity_bytes()},
          {"replicas", e.learner().replicas()},
          {"strategy", e.learner().strategy()},
          {"parameter_servers", e.learner().parameter_servers()},
          {"evaluation_period", e.evaluation().period()}};
}

} // namespace

Api::Api(const std::filesystem::path& runs, Connect connect, std::string selected,
         std::chrono::milliseconds budget)
    : catalogue_(runs),
      operators_(std::move(connect)),
      selected_(std::move(selected)),
      budget_(budget) {}

RunMetrics::Deadline Api::budget_end() const {
  return std::chrono::steady_clock::now() + budget_;
}

bool Api::serves(const std::string& path) {
  return path.starts_with("/api/") || path == "/metrics";
}

web::Response Api::answer(const web::Request& request) {
  const std::string& path = request.path;
  if (request.method == "POST") {
    return path == "/api/series"    ? series_reply(request, catalogue_, budget_)
           : path == "/api/compare" ? compare(request)
           : path == "/api/stop" || path == "/api/scale" || path == "/api/restart"
                   || path == "/api/checkpoint" || path == "/api/pause" || path == "/api/timeline"
                   || path == "/api/limit"
               ? act(request)
               : web::error_response(404, path + ": does not accept POST");
  }
  if (path == "/api/file") {
    return file_reply(catalogue_.find(request.parameter("id"))->folder(), request);
  }
  return path == "/api/runs"      ? list()
         : path == "/api/run"     ? one(request)
         : path == "/api/config"  ? config(request)
         : path == "/api/logs"    ? logs(request)
         : path == "/api/picture" ? picture(request)
         : path == "/metrics"     ? prometheus_reply(catalogue_, budget_end())
                                  : web::error_response(404, path + ": there is no such endpoint");
}

web::Response Api::list() {
  const auto deadline = budget_end();
  Json runs = Json::array();
  bool pending = false;
  for (const RunPtr& run : catalogue_.runs()) {
    const RunSummary summary = run->summary(deadline);
    pending = pending || summary.group.empty();
    runs.push_back({{"id", run->id()},
                    {"sweep", run->sweep()},
                    {"started", run->folder().filename().string()},
                    {"state", summary.state},
                    {"experiment", summary.experiment},
                    {"task", summary.task},
                    {"agent", summary.agent},
                    {"seed", summary.seed},
                    {"group", summary.group},
                    {"headline", summary.headline},
                    {"problem", summary.problem},
                    {"environment_steps", summary.environment_steps},
                    {"updates", summary.updates},
                    {"training_seconds", summary.training_seconds},
                    {"target", summary.target},
                    {"result", or_null(summary.result)}});
  }
  return json_reply({{"folder", std::filesystem::absolute(catalogue_.folder()).string()},
                     {"selected", selected_},
                     {"pending", pending},
                     {"runs", runs}});
}

web::Response Api::one(const web::Request& request) {
  const RunPtr run = catalogue_.find(request.parameter("id"));
  const RunSummary summary = run->summary(budget_end());
  Json out = {{"id", run->id()},
              {"folder", std::filesystem::absolute(run->folder()).string()},
              {"state", summary.state},
              {"live", parsed(read_live_file(run->folder()).value_or("null"))},
              {"videos", files_json(run->folder(), "videos")},
              {"pictures", files_json(run->folder(), "pictures")},
              {"timelines", files_json(run->folder(), "timelines")}};
  Operators::Told told;
  if (summary.state == "running") {
    told = operators_.status(*run);
  }
  out["status"] = parsed(told.status);
  out["actions"] = told.actions;
  out["why_no_actions"] = told.problem;
  Json checkpoints = Json::array();
  for (const CheckpointFolder& one : complete_checkpoints(run->folder())) {
    checkpoints.push_back(one.updates);
  }
  out["checkpoints"] = checkpoints;
  const LogLine problem = run->first_problem();
  out["first_problem"] = {{"time", problem.time}, {"text", problem.text}};
  out["plan"] = summary.problem.empty() ? plan_json(run->experiment()) : Json(nullptr);
  return json_reply(out);
}

web::Response Api::config(const web::Request& request) {
  const RunPtr run = catalogue_.find(request.parameter("id"));
  Json out = {{"id", run->id()}, {"text", run->config_text()}, {"other", ""}};
  if (const std::string other = request.parameter("other"); !other.empty()) {
    Json differences = Json::array();
    for (const KeyChange& change :
         changes_between(catalogue_.find(other)->experiment(), run->experiment())) {
      differences.push_back(
          {{"key", change.key}, {"before", change.before}, {"after", change.after}});
    }
    out["other"] = other;
    out["differences"] = differences;
  }
  return json_reply(out);
}

web::Response Api::compare(const web::Request& request) {
  const Json body = body_of(request);
  const auto wanted = body.find("runs");
  if (wanted == body.end() || !wanted->is_array() || wanted->size() > kMostCompared) {
    throw std::invalid_argument("runs: must be a list of at most " + std::to_string(kMostCompared)
                                + " runs");
  }
  std::optional<Experiment> first;
  std::vector<std::string> keys;
  std::map<std::string, std::string> common; // values of the first run
  struct Row {
    RunPtr run;
    RunSummary summary = {};
    std::map<std::string, std::string> values = {};
  };
  std::vector<Row> rows;
  for (const Json& id : *wanted) {
    Row row{.run = catalogue_.find(id.is_string() ? std::string(id) : "")};
    row.summary = row.run->summary(RunMetrics::Deadline::max());
    if (!row.summary.problem.empty()) { // no configuration to compare
      continue;
    }
    const Experiment experiment = row.run->experiment();
    first = first ? first : experiment;
    for (const KeyChange& change : changes_between(*first, experiment)) {
      if (change.key != "name" && common.try_emplace(change.key, change.before).second) {
        keys.push_back(change.key);
      }
      row.values[change.key] = change.after;
    }
    rows.push_back(std::move(row));
  }
  Json out_rows = Json::array();
  for (const Row& row : rows) {
    Json values = Json::array();
    for (const std::string& key : keys) {
      const auto own = row.values.find(key);
      values.push_back(own == row.values.end() ? common[key] : own->second);
    }
    out_rows.push_back({{"id", row.run->id()},
                        {"state", row.summary.state},
                        {"headline", row.summary.headline},
                        {"values", values},
                        {"updates", row.summary.updates},
                        {"environment_steps", row.summary.environment_steps},
                        {"training_seconds", row.summary.training_seconds},
                        {"result", or_null(row.summary.result)}});
  }
  return json_reply({{"keys", keys}, {"rows", out_rows}});
}

web::Response Api::logs(const web::Request& request) {
  const RunPtr run = catalogue_.find(request.parameter("id"));
  const LogFilter filter{.who = request.parameter("who"),
                         .contains = request.parameter("contains"),
                         .problems = request.parameter("problems") == "1"};
  catalogue_.used_log(run);
  Json lines = Json::array();
  for (const LogLine& line : run->log(filter)) {
    lines.push_back(
        {{"time", line.time}, {"who", line.who}, {"text", line.text}, {"level", level_of(line)}});
  }
  return json_reply({{"lines", lines}, {"most", filter.most}});
}

web::Response Api::picture(const web::Request& request) {
  const RunPtr run = catalogue_.find(request.parameter("id"));
  const int actor = whole_number(request, "actor");
  const int environment = whole_number(request, "environment");
  RunOperator::Picture made;
  operators_.act(*run, [&](RunOperator& one) {
    made = one.picture(actor, environment, request.parameter("observed") == "1");
    return std::string();
  });
  return {.type = "image/jpeg",
          .body = std::move(made.jpeg),
          .headers = {{"X-Troupe-Picture", Json({{"observed", made.observed},
                                                 {"agent_steps", made.agent_steps},
                                                 {"environments", made.environments}})
                                               .dump()}}};
}

web::Response Api::act(const web::Request& request) {
  const Json body = body_of(request);
  const RunPtr run = catalogue_.find(text_in(body, "id"));
  const std::string done = operators_.act(*run, [&](RunOperator& one) {
    if (request.path == "/api/stop") {
      return one.stop();
    }
    if (request.path == "/api/restart") {
      return one.restart(optional_text_in(body, "role"), optional_text_in(body, "node"));
    }
    if (request.path == "/api/checkpoint") {
      return one.checkpoint();
    }
    if (request.path == "/api/pause") {
      const auto paused = body.find("paused");
      if (paused == body.end() || !paused->is_boolean()) {
        throw std::invalid_argument("paused: must be true or false");
      }
      return one.pause(*paused);
    }
    if (request.path == "/api/timeline") {
      const auto updates = body.find("updates");
      if (updates == body.end() || !updates->is_number_unsigned() || *updates > 1000) {
        throw std::invalid_argument("updates: must be a whole number from 1 to 1000");
      }
      return one.timeline(*updates);
    }
    if (request.path == "/api/limit") {
      const double ratio = number_in(body, "samples_per_insert");
      return one.limit(ratio, number_in(body, "error_buffer"));
    }
    const auto count = body.find("count");
    if (count == body.end() || !count->is_number_unsigned() || *count > 1'000'000) {
      throw std::invalid_argument("count: must be a whole number from 0 to 1000000");
    }
    return one.scale(text_in(body, "role"), *count);
  });
  return json_reply({{"done", done}});
}

} // namespace troupe::experiments::dashboard
