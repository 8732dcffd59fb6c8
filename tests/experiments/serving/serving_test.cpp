#include "tests/doctest_torch.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>

#include <nlohmann/json.hpp>

#include "env/random.hpp"
#include "env/wire/socket.hpp"
#include "experiments/serving/act_request.hpp"
#include "experiments/serving/message_door.hpp"
#include "experiments/serving/policy_server.hpp"
#include "tests/experiments/serving/summing_policy.hpp"
#include "tests/mutated.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;
using namespace troupe::experiments::serving;
using Json = nlohmann::json;

namespace {

VersionOptions version(const std::string& name, double share,
                       std::function<std::unique_ptr<ServedPolicy>()> make) {
  return {.name = name, .share = share, .newer = [make](std::int64_t) { return make(); }};
}

/// A client that waits for each answer.
struct Client {
  PolicyServer& server;
  Json operator()(const Json& body, int status = 200) const {
    return ask({.method = "POST", .path = "/v1/act", .body = body.dump()}, status);
  }
  Json ask(const web::Request& request, int status) const {
    std::promise<web::Response> answer;
    try {
      server.act(request, [&](web::Response response) { answer.set_value(std::move(response)); });
    } catch (const std::invalid_argument& mistake) {
      CHECK(status == 400);
      return Json{{"error", mistake.what()}};
    }
    const web::Response response = answer.get_future().get();
    CAPTURE(response.body);
    CHECK(response.status == status);
    return Json::parse(response.body);
  }
};

std::string error_in(const Json& answer) {
  return answer.value("error", "");
}

Json with(const Json& observation) {
  return {{"observation", observation}};
}

/// A client that sends requests as messages.
struct Dealer {
  explicit Dealer(const std::string& endpoint) : socket(context, env::wire::SocketType::dealer) {
    socket.connect(endpoint);
  }
  void send(const std::string& head, const std::vector<std::string>& parts) {
    env::wire::Message message{.peer = {}, .header = head, .frames = {}};
    for (const std::string& part : parts)
      message.frames.emplace_back(std::as_bytes(std::span(part)));
    REQUIRE(socket.send(std::move(message), std::chrono::steady_clock::now() + kPatience));
  }
  /// {"status": …, "id": …, "body": …}
  Json receive() {
    env::wire::Message message;
    REQUIRE(socket.wait(std::chrono::steady_clock::now() + kPatience));
    REQUIRE(socket.try_receive(message) == env::wire::Socket::Received::message);
    REQUIRE(message.frames.size() == 1);
    const auto bytes = message.frames[0].bytes();
    Json answer = Json::parse(message.header);
    answer["body"] = Json::parse(
        std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), nullptr, false);
    return answer;
  }

  static constexpr std::chrono::seconds kPatience{30};
  env::wire::Context context;
  env::wire::Socket socket;
};

} // namespace

TEST_CASE("Messages are answered like HTTP requests, with the request's id") {
  PolicyServer server({.token = "t", .versions = {version("main", 1, [] { return summing(); })}});
  env::wire::Context context;
  const MessageDoor door(context, {.endpoint = "tcp://127.0.0.1:*"},
                         [&](const web::Request& request, const web::HttpServer::Reply& reply) {
                           server.serve(request, reply);
                         });
  Dealer dealer(door.endpoint());
  const std::string bearer = R"("authorization": "Bearer t")";
  dealer.send(R"({"path": "/v1/act", "id": 7, )" + bearer + "}",
              {R"({"observation": {"state": [0.25, 0.5]}})"});
  Json answer = dealer.receive();
  CHECK(answer["status"] == 200);
  CHECK(answer["id"] == 7);
  CHECK(answer["body"]["action"] == Json{7.5});
  dealer.send(R"({"path": "/v1/versions", )" + bearer + "}", {});
  answer = dealer.receive();
  CHECK(answer["body"]["versions"][0]["name"] == "main");
  CHECK_FALSE(answer.contains("id"));
  const auto refused = [&](const std::string& head, const std::vector<std::string>& parts) {
    dealer.send(head, parts);
    const Json refusal = dealer.receive();
    return std::to_string(refusal["status"].get<int>()) + " " + error_in(refusal["body"]);
  };
  CHECK(has(refused(R"({"path": "/v1/act", "authorization": "Bearer x"})", {"{}"}), "401 "));
  CHECK(has(refused(R"({"path": "/v1/act", )" + bearer + "}", {"{}"}), "either \"observation\""));
  CHECK(has(refused("[]", {"{}"}), "400 the first part must be a JSON object"));
  CHECK(has(refused("nothing", {}), "400 the first part must be a JSON object"));
  CHECK(has(refused(R"({"path": 3})", {}), "400 path must be a string"));
  CHECK(has(refused(R"({"path": "/%4"})", {}), "400 path has a malformed escape"));
  const std::string large = "413 a message has a head of at most 16384 bytes, a body of at most ";
  CHECK(has(refused(R"({"path": "/v1/act"})", {"{}", "{}"}), large));
  CHECK(has(refused(R"({"path": ")" + std::string(20'000, '/') + "\"}", {"{}"}), large));
  CHECK(
      has(refused(R"({"id": ")" + std::string(300, 'i') + "\"}", {}), "its id at most 256 bytes"));
}

TEST_CASE("Messages beyond the limit are refused, and a closing endpoint drops late answers") {
  std::vector<web::HttpServer::Reply> kept;
  std::mutex mutex;
  env::wire::Context context;
  {
    const MessageDoor door(context, {.endpoint = "tcp://127.0.0.1:*", .waiting = 2},
                           [&](const web::Request&, const web::HttpServer::Reply& reply) {
                             const std::scoped_lock lock(mutex);
                             kept.push_back(reply);
                           });
    Dealer dealer(door.endpoint());
    for (int i = 0; i < 3; ++i)
      dealer.send(R"({"id": )" + std::to_string(i) + "}", {});
    const Json refusal = dealer.receive();
    CHECK(refusal["status"] == 503);
    CHECK(refusal["id"] == 2);
    CHECK(has(error_in(refusal["body"]), "2 requests are already waiting"));
    const std::scoped_lock lock(mutex);
    kept.at(0)({.body = "{}"});
    CHECK(dealer.receive()["id"] == 0);
  }
  kept.at(1)({.body = "{}"});
}

TEST_CASE("An observation of any nesting or in base64 becomes an action in the machine's units") {
  PolicyServer server({.token = "t", .versions = {version("main", 1, [] { return summing(); })}});
  const Client act{server};
  const Json answer = act(with({{"state", {0.25, 0.5}}}));
  CHECK(answer == Json{{"action", {7.5}}, {"version", "main"}, {"updates", 5}});
  CHECK(act(with({{"state", {{0.25}, {0.5}}}}))["action"] == Json{7.5});
  CHECK(act(with({0.25, 0.5}))["action"] == Json{7.5});
  CHECK(act(with({9, 9}))["action"] == Json{20}); // clipped
  CHECK(act(with({{"state", "AACAPgAAAD8="}}))["action"] == Json{7.5});
  CHECK(act({{"observations", {{{"state", {0, 1}}}, {{"state", {0, 1.5}}}}}})["actions"]
        == Json{{10.0}, {15.0}});
  const float numbers[] = {0.25F, 0.5F};
  web::Request bytes{.method = "POST",
                     .path = "/v1/act",
                     .headers = {{"content-type", "application/octet-stream"}},
                     .body = std::string(reinterpret_cast<const char*>(numbers), sizeof numbers)};
  std::promise<web::Response> made;
  server.act(bytes, [&](web::Response response) { made.set_value(std::move(response)); });
  const web::Response response = made.get_future().get();
  REQUIRE(response.body.size() == sizeof(float));
  float force = 0;
  std::memcpy(&force, response.body.data(), sizeof force);
  CHECK(force == 7.5F);
}

TEST_CASE("An invalid request is refused, and the error names the key and the rule") {
  PolicyServer server({.token = "t", .versions = {version("main", 1, [] { return summing(); })}});
  const Client act{server};
  const auto refusal = [&](const Json& body) { return error_in(act(body, 400)); };
  CHECK(has(refusal(Json::array()), "must be a JSON object"));
  CHECK(has(refusal(Json::object()), "either \"observation\" or \"observations\""));
  CHECK(has(refusal(with({1, 2, 3})), "has 3 numbers but must have 2"));
  CHECK(has(refusal(with({{"states", {1, 2}}})), "must have \"state\""));
  CHECK(has(refusal(with({{"state", {1, 2}}, {"more", 1}})), "and nothing else"));
  CHECK(has(refusal(with({{"state", {1, "x"}}})), "must contain numbers"));
  CHECK(has(refusal(with({{"state", {1, 1e300}}})), "finite as a float32"));
  for (const char* text :
       {"AAA=", "AAAAA", "AA=AAAAA", "    AACAPgAAAD8=", "AACAPgAAAD8=\n\n\n\n", "AA-A"})
    CHECK(has(refusal(with({{"state", text}})), "base64"));
  CHECK(has(refusal(with({{"state", "AADAfwAAAAA="}})), "not finite"));
  CHECK(has(refusal({{"observation", {1, 2}}, {"version", "old"}}), "no version \"old\""));
  CHECK(has(refusal({{"observation", {1, 2}}, {"first", 1}}), "\"first\" must be true or false"));
  CHECK(has(refusal({{"observation", {1, 2}}, {"session", std::string(200, 'a')}}), "128 bytes"));
  CHECK(has(refusal({{"observations", {{1, 2}}}, {"session", "a"}}), "one \"observation\""));
  Json deep = 1;
  for (int i = 0; i < 20; ++i)
    deep = Json::array({deep});
  CHECK(has(refusal(with(deep)), "nested more than"));
}

TEST_CASE("A session keeps only the memory and history of its own episode") {
  PolicyServer server(
      {.token = "t", .versions = {version("main", 1, [] { return summing(5, 3, 1); })}});
  const Client act{server};
  CHECK(has(error_in(act(with({0.1, 0}), 400)), "has a memory"));
  CHECK(has(error_in(act({{"observation", {0.1, 0}}, {"session", "a"}}, 400)), "begin it with"));
  const auto step = [&](const char* session, double number, bool first) {
    const Json answer = act({{"observation", {number, 0}}, {"session", session}, {"first", first}});
    return answer["action"][0].get<double>() / 10;
  };
  CHECK(step("a", 0.125, true) == 0.375); // three times the first frame
  CHECK(step("b", 0.25, true) == 0.75);
  CHECK(step("a", 0.25, false) == doctest::Approx(0.375 + 0.125 + 0.125 + 0.25));
  CHECK(step("a", 0, false) == doctest::Approx(0.875 + 0.125 + 0.25));
  const Json failed = act({{"observation", {3e38, 3e38}}, {"session", "a"}}, 500);
  CHECK(has(error_in(failed), "is not finite"));
  CHECK(step("a", 0, false) == doctest::Approx(1.25 + 0.25)); // the failed step does not count
  CHECK(step("a", 0.125, true) == 0.375);                     // again from the beginning
  CHECK(act({{"observation", {0.125, 0, 0.125, 0, 0.25, 0}},
             {"session", "c"},
             {"first", true}})["action"][0]
        == 5.0);
}

TEST_CASE(
    "Versions share requests by weight, keep their sessions, and must have the same contract") {
  PolicyServer server({.token = "t",
                       .versions = {version("main", 0.75, [] { return summing(1); }),
                                    version("candidate", 0.25, [] { return summing(2); })}});
  const Client act{server};
  int candidates = 0;
  for (int i = 0; i < 400; ++i)
    candidates += act(with({0, 0}))["version"] == "candidate" ? 1 : 0;
  CHECK(std::abs(candidates - 100) <= 2);
  CHECK(act({{"observation", {0, 0}}, {"version", "candidate"}})["updates"] == 2);
  for (const std::string session : {"a", "b", "c", "d", "e"}) {
    const Json begun = act({{"observation", {0, 0}}, {"session", session}, {"first", true}});
    for (int i = 0; i < 3; ++i)
      CHECK(act({{"observation", {0, 0}}, {"session", session}})["version"] == begun["version"]);
  }
  const auto other = [] { return summing(1, 1, 0, "pixels"); };
  CHECK(has(error_of([&] {
              PolicyServer({.token = "t",
                            .versions = {version("main", 1, [] { return summing(); }),
                                         version("other", 0, other)}});
            }),
            "version other has another contract: observations[0].name"));
}

TEST_CASE("Shares that are not numbers are refused, however deeply they are nested") {
  PolicyServer server({.token = "t", .versions = {version("main", 1, [] { return summing(); })}});
  const auto refusal = [&](const std::string& body) {
    return error_of([&] {
      server.serve({.method = "POST",
                    .path = "/v1/shares",
                    .headers = {{"authorization", "Bearer t"}},
                    .body = body},
                   [](const web::Response&) {});
    });
  };
  CHECK(has(refusal(R"({"main": "all"})"), "the share of \"main\" must be a number"));
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  CHECK(has(refusal("{\"main\": " + deep + "}"), "nested more than 8 deep"));
}

TEST_CASE("Newer parameters replace older ones, and a failed reload keeps the current ones") {
  std::int64_t updates = 1;
  std::string failure;
  std::string logged;
  PolicyServer server(
      {.token = "t",
       .versions = {{.name = "main",
                     .newer = [&](std::int64_t have) -> std::unique_ptr<ServedPolicy> {
                       if (!failure.empty())
                         throw std::runtime_error(failure);
                       return have == updates ? nullptr : summing(updates);
                     }}},
       .log = [&](const std::string& text) { logged = text; }});
  const Client act{server};
  CHECK(act(with({0, 0}))["updates"] == 1);
  server.reload();
  CHECK(logged.empty());
  updates = 7;
  server.reload();
  CHECK(act(with({0, 0}))["updates"] == 7);
  CHECK(has(logged, "now has 7 updates"));
  failure = "the checkpoint is damaged";
  server.reload();
  CHECK(has(logged, "the checkpoint is damaged"));
  CHECK(act(with({0, 0}))["updates"] == 7);
}

TEST_CASE("A refused or failed request leaves its session as it was") {
  PolicyServer server({.token = "t",
                       .versions = {version("main", 1, [] { return summing(1, 1, 1); }),
                                    version("candidate", 0, [] { return summing(2, 1, 1); })}});
  const Client act{server};
  const auto step = [&](const Json& observation, const Json& more, int status = 200) {
    Json body{{"observation", observation}, {"session", "a"}};
    body.update(more);
    return act(body, status);
  };
  const Json begin{{"first", true}};
  step({1, "x"}, begin, 400);
  CHECK(has(error_in(step({0, 0}, Json::object(), 400)), "there is no session \"a\""));
  CHECK(step({0.5, 0}, begin)["action"] == Json{5.0});
  CHECK(has(error_in(step({0, 0}, {{"version", "candidate"}}, 400)),
            "was begun by version \"main\""));
  step({1, "x"}, {{"first", true}, {"version", "candidate"}}, 400);
  step({3e38, 3e38}, {{"first", true}, {"version", "candidate"}}, 500);
  const Json next = step({0.25, 0}, {{"version", "main"}});
  CHECK(next["version"] == "main");
  CHECK(next["action"] == Json{7.5}); // with the memory of 0.5
  CHECK(step({0.25, 0}, {{"first", true}, {"version", "candidate"}})["updates"] == 2);
  CHECK(step({0.25, 0}, Json::object())["updates"] == 2);
}

TEST_CASE("The last request of an episode makes room for another session") {
  PolicyServer server({.token = "t",
                       .versions = {version("main", 1, [] { return summing(5, 1, 1); })},
                       .sessions = {.sessions = 1}});
  const Client act{server};
  const auto step = [&](const char* session, const char* flag, int status = 200) {
    return act({{"observation", {0, 0}}, {"session", session}, {flag, true}}, status);
  };
  step("a", "first");
  CHECK(has(error_in(step("b", "first", 503)), "end some with \"last\": true"));
  step("a", "last");
  CHECK(has(error_in(step("a", "last", 400)), "there is no session"));
  step("b", "first");
  web::Request bytes{.method = "POST",
                     .path = "/v1/act",
                     .query = {{"session", "b"}, {"last", "yes"}},
                     .headers = {{"content-type", "application/octet-stream"}},
                     .body = std::string(8, '\0')};
  CHECK(has(error_of([&] { server.act(bytes, [](const web::Response&) {}); }),
            "last is \"yes\" but must be 0 or 1"));
  bytes.query["last"] = "1";
  server.act(bytes, [](const web::Response& response) { CHECK(response.status == 200); });
  step("a", "first");
}

TEST_CASE("A request that arrives while another is computed is answered on the server's threads") {
  std::promise<std::thread::id> answered; // outlives the server's threads
  PolicyServer server({.token = "t", .versions = {version("main", 1, [] { return summing(); })}});
  const auto ask = [&](const web::HttpServer::Reply& reply) {
    server.act({.method = "POST", .path = "/v1/act", .body = with({0, 0}).dump()}, reply);
  };
  const auto second = [&](const web::Response&) { answered.set_value(std::this_thread::get_id()); };
  ask([&](const web::Response&) { ask(second); });
  auto thread = answered.get_future();
  REQUIRE(thread.wait_for(std::chrono::seconds(30)) == std::future_status::ready);
  CHECK(thread.get() != std::this_thread::get_id());
}

TEST_CASE("A mutated request is either answered or refused with std::invalid_argument") {
  PolicyServer server(
      {.token = "t", .versions = {version("main", 1, [] { return summing(5, 2, 1); })}});
  const std::string whole =
      R"({"observation": {"state": [0.1, 0.2]}, "session": "a", "first": true, "version": "main"})";
  env::Random random(3);
  int answered = 0;
  for (int i = 0; i < 3'000; ++i) {
    web::Request request{.method = "POST", .path = "/v1/act", .body = mutated(whole, random)};
    if (i % 3 == 0)
      request.headers["content-type"] = "application/octet-stream";
    try {
      server.act(request, [&](const web::Response& response) {
        answered += response.status == 200 ? 1 : 0;
      });
    } catch (const std::invalid_argument&) {
    }
  }
  CHECK(answered > 30);
}
