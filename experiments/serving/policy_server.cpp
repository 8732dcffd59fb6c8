#include "experiments/serving/policy_server.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "env/text/joined.hpp"
#include "experiments/serving/act_request.hpp"
#include "experiments/serving/pending_answer.hpp"
#include "experiments/serving/server_metrics.hpp"
#include "experiments/web/secrets.hpp"

namespace troupe::experiments::serving {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using Reply = web::HttpServer::Reply;

constexpr double kMostShare = 1e6;

web::Response busy(const std::string& what) {
  web::Response made = web::error_response(503, what);
  made.headers.emplace_back("Retry-After", "1");
  return made;
}

bool is_probe(const std::string& path) {
  return path == "/healthz" || path == "/readyz";
}

} // namespace

struct PolicyServer::Parts {
  struct Version {
    std::string name;
    double share = 1;
    std::shared_ptr<Batcher> batcher;

    std::int64_t updates() const { return batcher ? batcher->policy().contract().updates : -1; }
  };

  explicit Parts(PolicyServerOptions its_options)
      : options(std::move(its_options)), sessions(options.sessions) {
    for (const VersionOptions& version : options.versions) {
      versions.push_back({.name = version.name, .share = version.share, .batcher = {}});
      load(versions.size() - 1, true);
    }
    server.emplace(options.http);
  }

  std::unique_ptr<ServedPolicy> newer(std::size_t index) {
    auto policy = options.versions[index].newer(versions[index].updates());
    if (policy == nullptr)
      return nullptr;
    const std::shared_ptr<Batcher> other =
        versions[index].batcher ? versions[index].batcher : versions[0].batcher;
    if (other)
      if (const std::string difference =
              contract_difference(policy->contract(), other->policy().contract());
          !difference.empty())
        throw std::invalid_argument("version " + versions[index].name + " has another contract: "
                                    + difference + "; serve it with a separate server");
    return policy;
  }

  void load(std::size_t index, bool first) {
    std::unique_ptr<ServedPolicy> policy;
    try {
      policy = newer(index);
    } catch (const std::exception& failure) {
      if (first)
        throw;
      metrics.reloaded(false);
      log("version " + versions[index].name + " was not reloaded: " + failure.what());
      return;
    }
    if (policy == nullptr)
      return;
    auto batcher = std::make_shared<Batcher>(
        std::move(policy), options.batches, [this](std::size_t size) { metrics.computed(size); },
        [this](std::function<void()> task) { server->post(std::move(task)); });
    const std::lock_guard lock(mutex);
    Version& version = versions[index];
    version.batcher = std::move(batcher);
    metrics.loaded(version.name, static_cast<double>(version.updates()), version.share);
    if (!first) {
      metrics.reloaded(true);
      log("version " + version.name + " now has " + std::to_string(version.updates()) + " updates");
    }
  }

  void log(const std::string& text) const {
    if (options.log)
      options.log(text);
  }

  const Version& named(const std::string& name) const {
    for (const Version& version : versions)
      if (version.name == name)
        return version;
    throw std::invalid_argument("there is no version \"" + name + "\"; there are "
                                + env::joined(versions, ", ", &Version::name));
  }

  /// Chooses a version according to the shares, as evenly as possible.
  const Version& next() {
    double total = 0;
    for (const Version& version : versions)
      total += version.share;
    constexpr double kGolden = 0.6180339887498949;
    double at = std::fmod(static_cast<double>(turn++) * kGolden, 1.0) * total;
    for (const Version& version : versions) {
      at -= version.share;
      if (at < 0)
        return version;
    }
    return versions[0];
  }

  /// Returns a copy, because the version may be replaced meanwhile.
  Version choose(const std::string& name) {
    const std::lock_guard lock(mutex);
    return name.empty() ? next() : named(name);
  }

  void act(const web::Request& http, const Reply& reply) {
    const auto asked = std::make_shared<PendingAnswer>();
    asked->reply = reply;
    asked->since = Clock::now();
    ActRequest request = parse_act_request(http);
    if (!request.session.empty()) {
      switch (sessions.take(request.session, request.first, asked->session)) {
      case Sessions::Taken::ok:
        break;
      case Sessions::Taken::unknown:
        throw std::invalid_argument(
            "there is no session \"" + request.session + "\", or it was idle for longer than "
            + std::to_string(options.sessions.idle.count()) + " s; begin it with \"first\": true");
      case Sessions::Taken::busy:
        return finish_early(*asked,
                            web::error_response(409, "the session \"" + request.session
                                                         + "\" has a request in progress; wait "
                                                           "for its answer"));
      case Sessions::Taken::full:
        return finish_early(*asked,
                            busy("the server remembers " + std::to_string(options.sessions.sessions)
                                 + " sessions already; end some with \"last\": true, or raise "
                                   "--sessions"));
      }
      asked->session_name = request.session;
      asked->begins = request.first;
      asked->ends = request.last;
    }
    try {
      submit(request, asked);
    } catch (...) {
      give_back(*asked, false);
      throw;
    }
  }

  void submit(const ActRequest& request, const std::shared_ptr<PendingAnswer>& asked) {
    const Session& session = asked->session; // replaced once there is an action
    if (!session.version.empty() && !request.version.empty() && request.version != session.version)
      throw std::invalid_argument("the session \"" + request.session + "\" was begun by version \""
                                  + session.version
                                  + "\" and stays with it; begin it again with "
                                    "\"first\": true for another one");
    const Version version = choose(session.version.empty() ? request.version : session.version);
    const ServedPolicy& policy = version.batcher->policy();
    asked->version = version.name;
    asked->updates = version.updates();
    asked->many = request.many;
    asked->as_bytes = request.as_bytes;
    if (request.session.empty() && policy.state_size() > 0)
      throw std::invalid_argument("the policy has a memory of the episode; give the request a "
                                  "\"session\", and \"first\": true where an episode begins");
    std::vector<Job> jobs;
    for (std::size_t i = 0; i < request.count(); ++i) {
      int frames = 0;
      jobs.push_back({.observation = read_observation(request, i, policy, frames),
                      .state = {},
                      .action = {},
                      .error = {},
                      .done = {}});
      std::vector<std::byte>& observation = jobs.back().observation;
      if (frames < policy.contract().history) {
        if (request.session.empty())
          throw std::invalid_argument("\"" + policy.contract().observations[0].spec.name
                                      + "\" has one frame but must have "
                                      + std::to_string(policy.contract().history)
                                      + ", oldest first; or give the request a \"session\"");
        policy.complete_history(observation, session.history);
      }
      if (const auto history = policy.history_of(observation); !request.session.empty())
        asked->history.assign(history.begin(), history.end());
      jobs.back().state = session.state;
      jobs.back().state.resize(policy.state_size());
      jobs.back().done = [this, asked, i](Job& job) { note(asked, i, job); };
    }
    asked->actions.resize(jobs.size());
    asked->left = jobs.size();
    if (!version.batcher->submit(std::move(jobs))) {
      give_back(*asked, false);
      finish_early(
          *asked,
          busy(std::to_string(options.batches.queued)
               + " observations are already waiting; try again later, or start another server"));
    }
  }

  void note(const std::shared_ptr<PendingAnswer>& asked, std::size_t i, Job& job) {
    asked->actions[i] = std::move(job.action);
    if (job.error.empty()) { // after an error the client may retry from the same state
      asked->session.version = asked->version;
      asked->session.state = std::move(job.state);
      asked->session.history = std::move(asked->history);
    } else {
      asked->error = job.error;
    }
    if (--asked->left > 0)
      return;
    give_back(*asked, asked->error.empty());
    finish_early(*asked, !asked->error.empty() ? web::error_response(500, asked->error)
                                               : asked->response());
  }

  void give_back(PendingAnswer& asked, bool acted) {
    const std::string name = std::exchange(asked.session_name, {});
    if (name.empty())
      return;
    if (acted && asked.ends)
      sessions.end(name);
    else if (acted || !asked.begins)
      sessions.put_back(name, std::move(asked.session));
    else
      sessions.undo(name);
  }

  void finish_early(const PendingAnswer& asked, web::Response response) {
    metrics.answered(asked.version, response.status,
                     std::chrono::duration<double>(Clock::now() - asked.since).count());
    asked.reply(std::move(response));
  }

  web::Response versions_reply() {
    const std::lock_guard lock(mutex);
    Json all = Json::array();
    for (const Version& version : versions)
      all.push_back(
          {{"name", version.name}, {"updates", version.updates()}, {"share", version.share}});
    return {.body = Json{{"versions", all}}.dump()};
  }

  web::Response set_shares(const std::string& text) {
    const Json body = parse_body(text);
    if (!body.is_object())
      throw std::invalid_argument("the body must be a JSON object of shares by version");
    const std::lock_guard lock(mutex);
    std::vector<double> shares;
    double total = 0;
    for (const Version& version : versions) {
      const Json share = body.value(version.name, Json(version.share));
      if (!share.is_number() || share < 0 || share > kMostShare)
        throw std::invalid_argument("the share of \"" + version.name
                                    + "\" must be a number from 0 to 1e6");
      total += shares.emplace_back(share);
    }
    for (const auto& [name, ignored] : body.items())
      named(name);
    if (total <= 0)
      throw std::invalid_argument("at least one share must be above 0");
    for (std::size_t i = 0; i < versions.size(); ++i) {
      versions[i].share = shares[i];
      metrics.loaded(versions[i].name, static_cast<double>(versions[i].updates()), shares[i]);
    }
    return {.body = "{}"};
  }

  std::size_t queued() {
    const std::lock_guard lock(mutex);
    std::size_t all = 0;
    for (const Version& version : versions)
      all += version.batcher->queued();
    return all;
  }

  web::Response answer(const web::Request& request) {
    const bool reads = request.method == "GET" || request.method == "HEAD";
    const std::string& path = request.path;
    if (path == "/v1/shares" && request.method == "POST")
      return set_shares(request.body);
    if (path == "/v1/act" || path == "/v1/shares")
      return web::error_response(405, path + " takes POST");
    if (path == "/v1/versions" && reads)
      return versions_reply();
    if (path == "/v1/contract" && reads)
      return {.body =
                  contract_text(choose(request.parameter("version")).batcher->policy().contract())};
    if (path == "/metrics" && reads)
      return {.type = "text/plain; version=0.0.4; charset=utf-8",
              .body = metrics.text(queued(), sessions.size())};
    if (is_probe(path) && reads)
      return {.type = "text/plain; charset=utf-8", .body = "ok\n"};
    return web::error_response(404, path
                                        + ": there are /v1/act, /v1/contract, /v1/versions, "
                                          "/v1/shares, /metrics, /healthz and /readyz");
  }

  bool may_ask(const web::Request& request) const {
    const std::string authorization = request.header("authorization");
    const std::string bearer = "Bearer ";
    return is_probe(request.path)
           || (authorization.starts_with(bearer)
               && web::equal_secrets(options.token,
                                     std::string_view(authorization).substr(bearer.size())));
  }

  void act_or_count(const web::Request& request, const Reply& reply) {
    const Clock::time_point since = Clock::now();
    try {
      act(request, reply);
    } catch (const std::invalid_argument&) { // the HTTP server answers it
      metrics.answered({}, 400, std::chrono::duration<double>(Clock::now() - since).count());
      throw;
    }
  }

  void serve(const web::Request& request, const Reply& reply) {
    if (!may_ask(request))
      reply(web::error_response(401, "send \"Authorization: Bearer TOKEN\" with the token that "
                                     "`troupe serve policy` printed"));
    else if (request.path == "/v1/act" && request.method == "POST")
      act_or_count(request, reply);
    else
      reply(answer(request));
  }

  PolicyServerOptions options;
  ServerMetrics metrics;
  Sessions sessions;
  std::mutex mutex; // guards the members of the versions, and `turn`
  std::vector<Version> versions;
  std::uint64_t turn = 0;
  std::optional<web::HttpServer> server; // its threads use the other members
};

PolicyServer::PolicyServer(PolicyServerOptions options)
    : parts_(std::make_unique<Parts>(std::move(options))) {
  parts_->server->start(
      [this](const web::Request& request, const Reply& reply) { serve(request, reply); });
}

PolicyServer::~PolicyServer() {
  parts_->server->stop();
  for (auto& version : parts_->versions)
    version.batcher.reset(); // together with the replies that wait in it
}

std::string PolicyServer::address() const {
  return parts_->server->address();
}

void PolicyServer::reload() {
  for (std::size_t i = 0; i < parts_->versions.size(); ++i)
    parts_->load(i, false);
}

void PolicyServer::act(const web::Request& request, const Reply& reply) {
  parts_->act_or_count(request, reply);
}

void PolicyServer::serve(const web::Request& request, const Reply& reply) {
  parts_->serve(request, reply);
}

} // namespace troupe::experiments::serving
