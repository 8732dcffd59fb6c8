#include "replay/service/shard_host.hpp"

#include <condition_variable>

#include <doctest/doctest.h>

#include "env/wire/socket.hpp"
#include "replay/service/shard_client.hpp"
#include "replay/service/stall_watch.hpp"
#include "replay/service/wire_format.hpp"
#include "tests/replay/service/service_tests.hpp"
#include "tests/replay/writers/episodes.hpp"

namespace troupe::replay {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE(
    "A stall is reported after a period without progress and again after each further period") {
  const auto at = [](int ms) { return StallWatch::Time(milliseconds(ms)); };
  StallWatch watch(milliseconds(30));
  CHECK_FALSE(watch.look(false, 0, at(0)));
  CHECK_EQ(watch.due(), StallWatch::Time::max()); // nothing is waiting
  CHECK_FALSE(watch.look(true, 0, at(100)));
  CHECK_EQ(watch.due(), at(130));
  CHECK_FALSE(watch.look(true, 0, at(129)));
  CHECK(watch.look(true, 0, at(130)));
  CHECK_FALSE(watch.look(true, 0, at(159)));
  CHECK_FALSE(watch.look(true, 5, at(160))); // progress
  CHECK_FALSE(watch.look(true, 5, at(189)));
  CHECK(watch.look(true, 5, at(190)));
  CHECK_FALSE(watch.look(false, 5, at(200))); // nothing is waiting any more
  CHECK_FALSE(watch.look(true, 5, at(300)));
  CHECK_FALSE(watch.look(true, 5, at(329)));
  CHECK(watch.look(true, 5, at(330)));
}

TEST_CASE("A stalled host logs which requests wait and for what") {
  const TransitionSpec spec = pixel_spec(1, 1);
  std::mutex mutex;
  std::condition_variable told;
  std::vector<std::string> log;
  env::wire::Context context;
  ShardHost host(context, {.limiter = {.minimum_items = 1000}}, spec, 4,
                 {.report_after = milliseconds(10), .log = [&](const std::string& text) {
                    const std::scoped_lock lock(mutex);
                    log.push_back(text);
                    told.notify_one();
                  }});
  ShardClient client(context, host.endpoint(), spec, {.ping_interval = seconds(20)});
  Batch batch(spec, 4);
  CHECK_EQ(client.sample(4, batch.view(), 0, Clock::now() + milliseconds(40)), std::nullopt);
  std::unique_lock lock(mutex);
  REQUIRE(told.wait_until(lock, soon(), [&] { return !log.empty(); }));
  CHECK_NE(log[0].find("no progress for"), std::string::npos);
  CHECK_NE(log[0].find("1 samples of 4 wait"), std::string::npos);
  CHECK_NE(log[0].find("0 of minimum_items 1000"), std::string::npos);
}

TEST_CASE(
    "An owner uses the table between requests, and requests that it allows are answered at once") {
  const TransitionSpec spec = pixel_spec(1, 1);
  env::wire::Context context;
  Source source(spec);
  // The table is restored before the port opens, so no client sees it empty.
  ShardHost host(context, {.limiter = {.minimum_items = 1000}}, spec, 4,
                 {.restore = [&](std::size_t, Table& table) { table.insert(*source.next(5)); }});
  ShardClient client(context, host.endpoint(), spec, {.ping_interval = seconds(20)});
  CHECK_GE(client.stats(soon()).items, 5);
  CHECK_EQ(client.stats(soon()).sampling_weight, 0); // nothing may be sampled yet
  Batch batch(spec, 4);
  CHECK_EQ(client.sample(4, batch.view(), 0, Clock::now() + milliseconds(60)), std::nullopt);
  client.stats(soon()); // answered after the request for a sample has arrived
  CHECK_NE(host.shard().report().why_waiting.find("samples of 4 wait"), std::string::npos);
  host.with_table([](Table& table) { table.set_limiter({.minimum_items = 2}); });
  CHECK_EQ(host.shard().report().why_waiting, "");
  CHECK_EQ(host.stats().sampled, 4);
  CHECK_EQ(client.stats(soon()).sampling_weight, static_cast<double>(host.stats().items));
  REQUIRE_EQ(client.sample(4, batch.view(), 0, soon()), 4);
  for (std::size_t row = 0; row < 4; ++row)
    source.player.check_row(batch, row);
  CHECK_THROWS_WITH_AS(host.shard().set_limiter({.minimum_items = -1}),
                       doctest::Contains("minimum_items is -1"), std::invalid_argument);
}

TEST_CASE("A sample that replaces an open one withdraws it") {
  const TransitionSpec spec = pixel_spec(1, 1);
  env::wire::Context context;
  ShardHost host(context, {.limiter = {.minimum_items = 5}}, spec, 4);
  ShardClient client(context, host.endpoint(), spec);
  Source source(spec);
  Batch batch(spec, 8);
  CHECK_EQ(client.sample(8, batch.view(), 0, Clock::now()), std::nullopt);
  CHECK_EQ(client.sample(4, batch.view(), 0, Clock::now()), std::nullopt);
  client.stats(soon()); // the server has read both requests
  CHECK_EQ(host.shard().report().waiting_samples, 1);
  REQUIRE(client.insert(source.next(5), soon()));
  REQUIRE_EQ(client.sample(4, batch.view(), 0, soon()), 4);
  CHECK_EQ(client.stats(soon()).sampled, 4);
}

// A peer that never pings requests 64 items, then a client 8. The lease of the first ends first.
TEST_CASE("A waiting sample whose client sends nothing about it is dropped") {
  const TransitionSpec spec = pixel_spec(1, 1);
  env::wire::Context context;
  ShardHost host(context, {.limiter = {.minimum_items = 5}}, spec, 4,
                 {.server = {.sample_lease = milliseconds(100)}});
  env::wire::Socket deaf(context, env::wire::SocketType::dealer);
  deaf.connect(host.endpoint());
  wire::Envelope sample = envelope(fingerprint(spec));
  sample.mutable_sample()->set_request(1);
  sample.mutable_sample()->set_count(64);
  wire::Envelope stats = envelope(fingerprint(spec));
  stats.mutable_stats()->set_request(2);
  for (const wire::Envelope& head : {sample, stats})
    REQUIRE(deaf.send({.peer = {}, .header = head.SerializeAsString(), .frames = {}}, soon()));
  REQUIRE(deaf.wait(soon())); // the server has read both
  ShardClient client(context, host.endpoint(), spec, {.ping_interval = milliseconds(5)});
  client.request_sample(8);
  client.stats(soon());
  while (host.shard().report().waiting_samples > 1) {
    client.poll();
    client.wait(Clock::now() + milliseconds(5));
  }
  Source source(spec);
  host.with_table([&](Table& table) { table.insert(*source.next(5)); });
  Batch batch(spec, 8);
  REQUIRE_EQ(client.sample(8, batch.view(), 0, soon()), 8);
  CHECK_EQ(host.stats().sampled, 8);
}

// A client that hears something at all times would have no other reason for a ping.
TEST_CASE("A waiting sample of a client that asks other questions all the time is kept") {
  const TransitionSpec spec = pixel_spec(1, 1);
  env::wire::Context context;
  ShardHost host(context, {.limiter = {.minimum_items = 5}}, spec, 4,
                 {.server = {.sample_lease = milliseconds(200)}});
  ShardClient client(context, host.endpoint(), spec, {.ping_interval = milliseconds(5)});
  client.request_sample(8);
  client.stats(soon());
  env::wire::Socket deaf(context, env::wire::SocketType::dealer);
  deaf.connect(host.endpoint());
  wire::Envelope sample = envelope(fingerprint(spec));
  sample.mutable_sample()->set_request(1);
  sample.mutable_sample()->set_count(64);
  REQUIRE(deaf.send({.peer = {}, .header = sample.SerializeAsString(), .frames = {}}, soon()));
  while (host.shard().report().waiting_samples < 2)
    client.stats(soon());
  while (host.shard().report().waiting_samples == 2)
    client.stats(soon());
  Source source(spec);
  host.with_table([&](Table& table) { table.insert(*source.next(5)); });
  Batch batch(spec, 8);
  REQUIRE_EQ(client.sample(8, batch.view(), 0, soon()), 8);
  CHECK_EQ(host.stats().sampled, 8); // not the 64 of the other peer, whose lease ended later
}

TEST_CASE(
    "A new writer with an id that was used before is refused, and a repeated insertion is not") {
  const TransitionSpec spec = pixel_spec(1, 1);
  for (const bool restored : {false, true}) { // true: the table knows the writer, the port does not
    CAPTURE(restored);
    env::wire::Context context;
    Source former(spec);
    const InsertionPtr first = former.next(3);
    ShardHost host(context, kFree, spec, 4, {.restore = [&](std::size_t, Table& into) {
                     if (restored)
                       into.insert(*first);
                   }});
    if (!restored) {
      ShardClient before(context, host.endpoint(), spec);
      REQUIRE(before.insert(first, soon()));
      REQUIRE(before.flush(soon()));
    }
    ShardClient client(context, host.endpoint(), spec);
    Source again(spec); // with the id of `former`
    REQUIRE(client.insert(again.next(1), soon()));
    CHECK_THROWS_WITH_AS(client.flush(soon()),
                         doctest::Contains("writer 1 has inserted into this table before"),
                         std::runtime_error);
    CHECK_EQ(host.counters().garbage, 1);
    client.move(host.endpoint()); // sends it again, complete
    CHECK(client.flush(soon()));
    CHECK_EQ(host.counters().garbage, 1);
    CHECK_EQ(host.stats().inserted, std::ssize(first->items));
  }
}

TEST_CASE("A stopped shard refuses waiting and new requests") {
  const TransitionSpec spec = pixel_spec(1, 1);
  Source source(spec);
  HostedShard shard({.config = {.limiter = {.minimum_items = 1000}}, .signature = spec, .seed = 4});
  std::vector<std::string> refused;
  const WaitOptions wait{.refused = [&](const std::string& why) { refused.push_back(why); }};
  const auto answer = [](const std::vector<Item>&) { FAIL("a sample of a shard without items"); };
  shard.sample(4, answer, wait);
  CHECK(refused.empty());
  shard.stop();
  CHECK_EQ(refused.size(), 1);
  shard.sample(4, answer, wait);
  CHECK_EQ(refused.back(), "the shard has stopped");
  CHECK_FALSE(shard.insert(source.next(5), [] { FAIL("an insertion into a stopped shard"); }));
  CHECK_EQ(shard.report().stats.items, 0);
}

} // namespace
} // namespace troupe::replay
