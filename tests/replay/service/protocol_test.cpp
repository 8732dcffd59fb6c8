#include <cstring>
#include <string>

#include <doctest/doctest.h>

#include "env/wire/socket.hpp"
#include "replay/replay.pb.h"
#include "replay/service/shard_host.hpp"
#include "tests/replay/service/service_tests.hpp"

// A client written only from replay/service/PROTOCOL.md: bytes and Protobuf messages, without our
// code.
namespace troupe::replay {
namespace {

using env::wire::Frame;
using env::wire::Message;
using env::wire::Socket;

const Signature kStored{.columns = {{"pixels", env::ElementType::uint8, {2, 3}},
                                    {"reward", env::ElementType::float32, {}}},
                        .items = "pairs"};
// XXH3 of "pixels uint8 [2, 3], reward float32 []; pairs".
constexpr std::uint64_t kFingerprint = 0x2278db37377753dcU;
constexpr std::size_t kRowBytes = 16; // 6 bytes, 2 of padding, 4, padded

template <typename T>
void put(std::vector<std::byte>& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

template <typename T>
T get(const Frame& frame, std::size_t at) {
  T value;
  REQUIRE_LE(at + sizeof value, frame.size());
  std::memcpy(&value, frame.bytes().data() + at, sizeof value);
  return value;
}

class ByHand {
public:
  ByHand(env::wire::Context& context, const std::string& endpoint)
      : socket_(context, env::wire::SocketType::dealer) {
    socket_.connect(endpoint);
  }

  wire::Envelope ask(wire::Envelope head, std::vector<Frame> frames = {}) {
    head.set_protocol(6);
    head.set_signature(signature);
    REQUIRE(socket_.send(
        {.peer = {}, .header = head.SerializeAsString(), .frames = std::move(frames)}, soon()));
    REQUIRE(socket_.wait(soon()));
    REQUIRE(socket_.try_receive(answer) == Socket::Received::message);
    wire::Envelope got;
    REQUIRE(got.ParseFromString(answer.header));
    return got;
  }

  std::uint64_t signature = 0;
  Message answer;

private:
  Socket socket_;
};

wire::Envelope pairs(std::vector<Frame>& frames, bool complete) {
  wire::Envelope head;
  wire::Insert& insert = *head.mutable_insert();
  insert.set_writer(77);
  insert.set_sequence(1);
  insert.set_capacity(4);
  insert.set_complete(complete);
  insert.add_chunks(0);
  std::vector<std::byte> items;
  for (std::uint32_t i = 0; i < 5; ++i) { // pairs of rows; the fourth is in both chunks
    const std::uint32_t begin = i < 4 ? i : 1;
    for (const std::uint32_t field : {0U, begin, 2U, 1U, 0U})
      put(items, field);
  }
  frames.emplace_back(std::span<const std::byte>(items));
  for (std::uint64_t chunk = 0; chunk < 2; ++chunk) {
    wire::Rows& rows = *insert.add_rows();
    rows.set_chunk(chunk);
    rows.set_first(0);
    rows.set_count(4);
    rows.set_flags(std::string(4, '\0'));
    std::vector<std::byte> bytes;
    for (std::uint8_t row = 0; row < 4; ++row) {
      for (std::uint8_t k = 0; k < 8; ++k)
        put(bytes, static_cast<std::uint8_t>(k < 6 ? 10 * (4 * chunk + row) + k : 0));
      put(bytes, static_cast<float>(4 * chunk + row));
      bytes.resize((row + 1U) * kRowBytes);
    }
    frames.emplace_back(std::span<const std::byte>(bytes));
  }
  return head;
}

TEST_CASE("The protocol's page suffices to write, sample and update priorities") {
  env::wire::Context context;
  const ShardHost host(context,
                       {.sampler = {.kind = SelectorKind::prioritized},
                        .limiter = {.kind = RateLimiterKind::minimum_size, .minimum_items = 1}},
                       kStored, 1);
  ByHand client(context, host.endpoint());
  wire::Envelope info;
  info.mutable_info()->set_request(1);
  const wire::Envelope told = client.ask(info);
  REQUIRE(told.has_info_reply());
  CHECK_EQ(told.info_reply().signature().columns(0).name(), "pixels");
  client.signature = kFingerprint;
  CHECK_EQ(told.info_reply().fingerprint(), client.signature);

  std::vector<Frame> frames;
  const wire::Envelope insert = pairs(frames, false);
  const wire::Envelope accepted = client.ask(insert, std::move(frames));
  REQUIRE(accepted.has_accepted());
  CHECK_EQ(accepted.accepted().sequences(0), 1);
  std::vector<Frame> again;
  const wire::Envelope twice = pairs(again, true);
  CHECK(client.ask(twice, std::move(again)).has_accepted());
  CHECK_EQ(host.stats().inserted, 5);

  wire::Envelope ping;
  ping.mutable_ping()->set_ping(2);
  for (const std::uint64_t sequence : {1, 2}) {
    ping.mutable_ping()->add_writers(77);
    ping.mutable_ping()->add_sequences(sequence);
  }
  CHECK_EQ(client.ask(ping).pong().states(), std::string("\2\0", 2));

  wire::Envelope sample;
  sample.mutable_sample()->set_request(3);
  sample.mutable_sample()->set_count(8);
  const wire::Envelope part = client.ask(sample);
  REQUIRE(part.has_sample_part());
  REQUIRE_EQ(part.sample_part().count(), 8);
  CHECK_EQ(part.sample_part().table_items(), 5);
  REQUIRE_EQ(client.answer.frames.size(), 3);
  const std::vector<Frame>& got = client.answer.frames;
  REQUIRE_EQ(got[0].size(), 8 * 40);
  REQUIRE_EQ(got[1].size(), 8 * 2 * 6);
  REQUIRE_EQ(got[2].size(), 8 * 2 * 4);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK_LT(get<std::uint64_t>(got[0], i * 40), 5);
    CHECK_EQ(get<double>(got[0], i * 40 + 8), 1);
    CHECK_EQ(get<double>(got[0], i * 40 + 16), doctest::Approx(0.2));
    CHECK_EQ(get<std::uint32_t>(got[0], i * 40 + 24), 2);
    CHECK_EQ(get<std::uint32_t>(got[0], i * 40 + 28), 1);
    const auto step = get<float>(got[2], i * 8);
    CHECK_EQ(get<float>(got[2], i * 8 + 4), step + 1);
    for (std::size_t k = 0; k < 12; ++k)
      CHECK_EQ(static_cast<float>(get<std::uint8_t>(got[1], i * 12 + k)),
               10 * (step + static_cast<float>(k / 6)) + static_cast<float>(k % 6));
  }
  wire::Envelope update;
  update.mutable_update()->set_request(4);
  update.mutable_update()->add_keys(2);
  update.mutable_update()->add_priorities(9);
  CHECK_EQ(client.ask(update).done().request(), 4);
  client.signature = 5;
  CHECK_NE(client.ask(update).refused().reason().find("the server stores pixels uint8 [2, 3]"),
           std::string::npos);
}

TEST_CASE("A server requests missing rows as the protocol's page describes") {
  env::wire::Context context;
  const ShardHost host(context, {.limiter = {.kind = RateLimiterKind::minimum_size}}, kStored, 1);
  ByHand client(context, host.endpoint());
  client.signature = kFingerprint;
  std::vector<Frame> frames;
  wire::Envelope insert = pairs(frames, false);
  insert.mutable_insert()->clear_rows();
  frames.resize(1);
  const wire::Envelope missing = client.ask(insert, std::move(frames));
  REQUIRE(missing.has_missing());
  CHECK_EQ(missing.missing().sequence(), 1);
  std::vector<Frame> all;
  const wire::Envelope complete = pairs(all, true);
  CHECK(client.ask(complete, std::move(all)).has_accepted());
  CHECK_EQ(host.stats().inserted, 5);
}

} // namespace
} // namespace troupe::replay
