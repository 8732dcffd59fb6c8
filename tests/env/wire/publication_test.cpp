#include "env/wire/publication.hpp"

#include <numeric>

#include <doctest/doctest.h>

namespace troupe::env::wire {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<float> values(std::size_t size, float first) {
  std::vector<float> made(size);
  std::iota(made.begin(), made.end(), first);
  return made;
}

/// What the subscriber gets while the publisher repeats itself, because subscribing takes a moment.
std::optional<Received> next(Publisher& publisher, Subscriber& subscriber) {
  for (int i = 0; i < 2000; ++i) {
    publisher.repeat();
    if (auto got = subscriber.wait(Clock::now() + milliseconds(10)))
      return got;
  }
  return std::nullopt;
}

TEST_CASE("A subscriber gets the latest version once, whatever its size") {
  Context context;
  Publisher publisher(context, "tcp://127.0.0.1:*");
  Subscriber subscriber(context, publisher.endpoint(), 300000);
  publisher.repeat();
  CHECK_FALSE(subscriber.poll());
  std::uint64_t version = 0;
  for (const std::size_t size : {0U, 1U, 2U, 7U, 100U, 5000U, 300000U}) {
    CAPTURE(size);
    const auto sent = values(size, static_cast<float>(size));
    publisher.publish(++version, sent);
    const auto got = next(publisher, subscriber);
    REQUIRE(got);
    CHECK_EQ(got->version, version);
    CHECK(std::equal(got->values.begin(), got->values.end(), sent.begin(), sent.end()));
    publisher.repeat();
    CHECK_FALSE(subscriber.wait(Clock::now() + milliseconds(20)));
  }
  CHECK_EQ(subscriber.garbage(), 0);
}

TEST_CASE("Every subscriber gets every version it waits for") {
  Context context;
  Publisher publisher(context, "tcp://127.0.0.1:*");
  std::vector<std::unique_ptr<Subscriber>> subscribers;
  for (int i = 0; i < 4; ++i)
    subscribers.push_back(std::make_unique<Subscriber>(context, publisher.endpoint(), 5000));
  for (std::uint64_t version = 1; version <= 20; ++version) {
    const auto sent = values(5000, static_cast<float>(version));
    publisher.publish(version, sent);
    for (const auto& subscriber : subscribers) {
      const auto got = next(publisher, *subscriber);
      REQUIRE(got);
      CHECK_EQ(got->version, version);
      CHECK(std::equal(got->values.begin(), got->values.end(), sent.begin(), sent.end()));
    }
  }
  for (const auto& subscriber : subscribers)
    CHECK_EQ(subscriber->garbage(), 0);
}

TEST_CASE("A subscriber that was busy skips versions and gets the newest") {
  Context context;
  Publisher publisher(context, "tcp://127.0.0.1:*");
  Subscriber subscriber(context, publisher.endpoint(), 1000);
  publisher.publish(1, values(1000, 0));
  REQUIRE(next(publisher, subscriber));
  for (std::uint64_t version = 2; version <= 500; ++version)
    publisher.publish(version, values(1000, static_cast<float>(version)));
  int received = 0;
  std::uint64_t newest = 0;
  while (newest < 500) {
    const auto got = next(publisher, subscriber);
    REQUIRE(got);
    CHECK_GT(got->version, newest);
    newest = got->version;
    ++received;
  }
  CHECK_LT(received, 499);
}

TEST_CASE("A subscriber may start before the publisher and outlive it") {
  Context context;
  std::string endpoint;
  {
    Context there; // stands for another process: destroying it frees the port
    Publisher first(there, "tcp://127.0.0.1:*");
    endpoint = first.endpoint();
  }
  Subscriber subscriber(context, endpoint, 10);
  CHECK_FALSE(subscriber.wait(Clock::now() + milliseconds(20)));
  for (const std::uint64_t version : {7U, 8U}) {
    Context there;
    Publisher publisher(there, endpoint);
    publisher.publish(version, values(10, 0));
    const auto got = next(publisher, subscriber);
    REQUIRE(got);
    CHECK_EQ(got->version, version);
  }
}

TEST_CASE("Messages that are not publications are counted and dropped") {
  Context context;
  Socket foreign(context, SocketType::publisher);
  Subscriber subscriber(context, foreign.bind("tcp://127.0.0.1:*"), 100);
  for (int i = 0; i < 2000 && subscriber.garbage() == 0; ++i) {
    for (const std::size_t size : {0U, 3U, 24U, 100U}) {
      Message message;
      message.frames.emplace_back(size);
      for (std::byte& b : message.frames[0].bytes())
        b = std::byte{7};
      foreign.send(std::move(message), Clock::now());
    }
    CHECK_FALSE(subscriber.wait(Clock::now() + milliseconds(10)));
  }
  CHECK_GT(subscriber.garbage(), 0);
}

} // namespace
} // namespace troupe::env::wire
