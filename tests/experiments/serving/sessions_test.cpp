#include "tests/doctest_torch.hpp"

#include <chrono>
#include <vector>

#include "experiments/serving/sessions.hpp"

using namespace troupe::experiments::serving;
using Taken = Sessions::Taken;

TEST_CASE("Sessions are limited, expire when idle, and serve one request at a time") {
  Sessions::Clock::time_point now{};
  Sessions sessions({.sessions = 2, .idle = std::chrono::seconds(10)}, [&] { return now; });
  Session session;
  CHECK(sessions.take("a", false, session) == Taken::unknown);
  CHECK(sessions.take("a", true, session) == Taken::ok);
  CHECK(sessions.take("a", true, session) == Taken::busy);
  session.state = {1};
  sessions.put_back("a", session);
  CHECK(sessions.take("a", false, session) == Taken::ok);
  CHECK(session.state == std::vector<float>{1});
  CHECK(sessions.take("b", true, session) == Taken::ok);
  sessions.put_back("b", {});
  CHECK(sessions.take("c", true, session) == Taken::full);
  now += std::chrono::seconds(11);
  CHECK(sessions.size() == 1);                                 // b is not counted any more
  CHECK(sessions.take("b", false, session) == Taken::unknown); // it was idle for too long
  CHECK(sessions.take("c", true, session) == Taken::ok);
  CHECK(sessions.size() == 2); // a is in use and stays, however long
}

TEST_CASE("A session that was used again expires after those that were not") {
  Sessions::Clock::time_point now{};
  Sessions sessions({.sessions = 9, .idle = std::chrono::seconds(10)}, [&] { return now; });
  Session session;
  for (const char* name : {"a", "b", "c"}) {
    CHECK(sessions.take(name, true, session) == Taken::ok);
    sessions.put_back(name, {});
  }
  now += std::chrono::seconds(8);
  CHECK(sessions.take("a", false, session) == Taken::ok);
  sessions.put_back("a", {});
  now += std::chrono::seconds(8);
  CHECK(sessions.size() == 1);
  CHECK(sessions.take("a", false, session) == Taken::ok);
}

TEST_CASE("An undone session is as before, and an ended one is forgotten") {
  Sessions sessions(Sessions::Limits{.sessions = 1});
  Session session;
  CHECK(sessions.take("a", true, session) == Taken::ok);
  sessions.undo("a");
  CHECK(sessions.size() == 0);
  CHECK(sessions.take("a", true, session) == Taken::ok);
  sessions.put_back("a", {.version = "main", .state = {1}, .history = {}});
  CHECK(sessions.take("a", true, session) == Taken::ok);
  CHECK(session.state.empty());
  sessions.undo("a");
  CHECK(sessions.take("a", false, session) == Taken::ok);
  CHECK(session.version == "main");
  sessions.end("a");
  CHECK(sessions.take("b", true, session) == Taken::ok);
}
