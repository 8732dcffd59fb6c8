#include "env/text/hexadecimal.hpp"
#include "env/wire/sharing.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>

namespace troupe::env::wire {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;
const SharedMemory kSmall{
    .bytes_per_peer = kBytes, .least_frame_bytes = 64, .max_peers = 4, .max_peer_bytes = kBytes};
const Deadline kBegin{};

Control decoded(const std::optional<std::string>& text) {
  REQUIRE(text);
  const auto control = decode_control(std::as_bytes(std::span(*text)));
  REQUIRE(control);
  return *control;
}

/// Two sockets whose control messages the test moves by hand, over a real connection.
struct Two {
  explicit Two(const SharedMemory& options = kSmall)
      : dealer(options, false), router(options, true) {
    const auto hello = decoded(dealer.greeting(kBegin + std::chrono::hours(1)));
    CHECK_FALSE(dealer.answer(decoded(router.answer(hello, "peer")), ""));
    for (int i = 0; i < 3; ++i) {
      router.pump();
      dealer.pump();
    }
    REQUIRE_EQ(dealer.counters().links, 1);
    REQUIRE_EQ(router.counters().links, 1);
  }
  Sharing dealer;
  Sharing router;
};

std::vector<Frame> frames_of(std::initializer_list<std::size_t> sizes) {
  std::vector<Frame> frames;
  for (const std::size_t size : sizes) {
    frames.emplace_back(size);
    std::memset(frames.back().bytes().data(), static_cast<int>(size % 251), size);
  }
  return frames;
}

/// A peer that sends descriptors of its choice.
struct Stranger {
  explicit Stranger(Sharing& router)
      : offer(decoded(router.answer({.kind = Control::Kind::hello, .token = make_token()}, "x"))),
        connection(connect_to(offer.address)) {
    REQUIRE(connection);
  }
  void join(Join join, std::vector<int> files) {
    join.token = offer.token;
    REQUIRE(send_packet(connection, std::as_bytes(std::span(&join, 1)), files));
  }
  Control offer;
  Descriptor connection;
};

Descriptor memory(std::size_t bytes, int seals) {
  Descriptor file(::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE_EQ(::ftruncate(file.number(), static_cast<off_t>(bytes)), 0);
  REQUIRE_EQ(::fcntl(file.number(), F_ADD_SEALS, seals), 0);
  return file;
}

constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

TEST_CASE("Memory that is not sealed or not of the announced size is refused") {
  Sharing router(kSmall, true);
  const Descriptor good = memory(kBytes, kSealed);
  const Descriptor ledger = memory(sizeof(Ledger), kSealed);
  const Descriptor can_shrink = memory(kBytes, F_SEAL_GROW | F_SEAL_SEAL);
  const Descriptor can_grow = memory(kBytes, F_SEAL_SHRINK | F_SEAL_SEAL);
  const Descriptor can_seal = memory(kBytes, F_SEAL_SHRINK | F_SEAL_GROW);
  const Descriptor short_ledger = memory(sizeof(Ledger) - 8, kSealed);
  const Descriptor device(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  std::int64_t refused = 0;
  const auto attempt = [&](std::uint64_t bytes, std::vector<int> files) {
    Stranger stranger(router);
    stranger.join({.bytes = bytes}, std::move(files));
    for (int i = 0; i < 2; ++i)
      router.pump();
    CHECK_EQ(router.counters().refused, ++refused);
    CHECK_EQ(router.counters().links, 0);
    Packet packet; // and the router closes the connection
    CHECK(receive_packet(stranger.connection, sizeof(Join), packet) == Arrival::end);
  };
  attempt(kBytes, {can_shrink.number(), ledger.number()});
  attempt(kBytes, {can_grow.number(), ledger.number()});
  attempt(kBytes, {can_seal.number(), ledger.number()});
  attempt(kBytes, {device.number(), ledger.number()});
  attempt(kBytes, {good.number(), short_ledger.number()});
  attempt(kBytes, {good.number(), device.number()});
  attempt(kBytes, {good.number()});
  attempt(kBytes, {});
  attempt(kBytes + 4096, {good.number(), ledger.number()}); // beyond max_peer_bytes
  attempt(kBytes - 4096, {good.number(), ledger.number()});
  attempt(0, {good.number(), ledger.number()});
}

TEST_CASE("Packets that are invalid, of another version or without an offer end their connection") {
  Sharing router(kSmall, true);
  const Descriptor good = memory(kBytes, kSealed);
  const Descriptor ledger = memory(sizeof(Ledger), kSealed);
  const std::vector<int> files{good.number(), ledger.number()};
  Stranger version(router);
  version.join({.version = kSharingVersion + 1, .bytes = kBytes}, files);
  Stranger magic(router);
  magic.join({.magic = 1, .bytes = kBytes}, files);
  Stranger garbage(router);
  const std::array<std::byte, 100> noise{};
  REQUIRE(send_packet(garbage.connection, noise, {}));
  Stranger guess(router);
  guess.offer.token = make_token();
  guess.join({.bytes = kBytes}, files);
  { const Stranger gone(router); }
  for (int i = 0; i < 3; ++i)
    router.pump();
  CHECK_EQ(router.counters().refused, 5);
  CHECK_EQ(router.counters().links, 0);
  // The router still serves others.
  Stranger good_one(router);
  good_one.join({.bytes = kBytes}, files);
  for (int i = 0; i < 2; ++i)
    router.pump();
  Packet packet;
  CHECK(receive_packet(good_one.connection, sizeof(Join), packet) == Arrival::packet);
  CHECK_EQ(packet.descriptors.size(), 2);
}

TEST_CASE(
    "A message with a reference beyond the memory is dropped, and valid messages still arrive") {
  Two two;
  std::vector<Frame> sent = frames_of({1000, 10, 2000});
  const Control good = decoded(two.dealer.move_out("", sent));
  REQUIRE_EQ(good.references.size(), 2);
  REQUIRE_EQ(sent.size(), 1);
  std::int64_t lost = 0;
  const auto refuses = [&](const Control& control) {
    std::vector<Frame> frames;
    frames.emplace_back(std::size_t{10});
    CHECK_FALSE(two.router.move_in(control, "peer", frames));
    CHECK_EQ(two.router.counters().lost, ++lost);
  };
  const auto altered = [&](auto change) {
    Control control = good;
    change(control.references[1]);
    refuses(control);
  };
  altered([](Reference& r) { r.offset = kBytes / kOffsetUnit + 1; });
  altered([](Reference& r) { r.offset = 0xffffffff; });
  altered([](Reference& r) { r.size = kBytes; });
  altered([](Reference& r) { r.size = 0xffffffff; });
  altered([](Reference& r) { r.slot = kSlots; });
  altered([](Reference& r) { r.slot = 0xffff; });
  altered([](Reference& r) { r.place = 3; }); // there is no frame that could be at place 2
  Control foreign = good;
  foreign.token = make_token();
  refuses(foreign);
  CHECK(two.router.move_in(good, "peer", sent));
  REQUIRE_EQ(sent.size(), 3);
  CHECK_EQ(sent[0].size(), 1000);
  CHECK_EQ(sent[1].size(), 10);
  CHECK(std::as_const(sent[2]).bytes()[1999] == std::byte{2000 % 251});
}

TEST_CASE("A receiver that releases no frames gets later frames in messages") {
  Two two;
  std::vector<std::vector<Frame>> kept;
  for (int i = 0; i < 20; ++i) {
    std::vector<Frame> frames = frames_of({100'000});
    const std::string control = two.router.move_out("peer", frames);
    if (frames.empty()) {
      REQUIRE(two.dealer.move_in(decoded(control), "", frames));
      kept.push_back(std::move(frames));
    }
  }
  CHECK_EQ(kept.size(), 10); // of 100 kB in 1 MiB
  CHECK_EQ(two.router.counters().full, 10);
  kept.clear();
  std::vector<Frame> frames = frames_of({100'000});
  CHECK_FALSE(two.router.move_out("peer", frames).empty());
  CHECK(frames.empty());
}

TEST_CASE("Messages that never arrive do not use up the memory") {
  Two two;
  for (int i = 0; i < 12; ++i) { // all of them are lost
    std::vector<Frame> frames = frames_of({100'000});
    two.router.move_out("peer", frames);
  }
  REQUIRE_EQ(two.router.counters().full, 2);
  std::vector<Frame> frames = frames_of({100'000});
  const std::string control = two.router.move_out("peer", frames); // arrives with an inline frame
  REQUIRE_EQ(frames.size(), 1);
  REQUIRE(two.dealer.move_in(decoded(control), "", frames));
  CHECK_EQ(frames.size(), 1);
  std::vector<Frame> next = frames_of({100'000});
  two.router.move_out("peer", next);
  CHECK(next.empty());
}

TEST_CASE("A dealer that reconnects is recognised by its token") {
  Two two;
  std::vector<Frame> frames = frames_of({1000});
  const Control control = decoded(two.dealer.move_out("", frames));
  REQUIRE(two.router.move_in(control, "other address", frames));
  std::vector<Frame> answer = frames_of({1000});
  CHECK(two.router.move_out("peer", answer).empty());
  CHECK_FALSE(two.router.move_out("other address", answer).empty());
}

TEST_CASE("When one side ends, the other ends the link, and a dealer greets again") {
  Two two;
  { const Sharing gone = std::move(two.dealer); }
  two.router.pump();
  CHECK_EQ(two.router.counters().links, 0);
  std::vector<Frame> frames = frames_of({1000});
  CHECK(two.router.move_out("peer", frames).empty());
  CHECK_EQ(frames.size(), 1);
  Two other;
  { const Sharing gone = std::move(other.router); }
  other.dealer.pump();
  CHECK_EQ(other.dealer.counters().links, 0);
  CHECK(other.dealer.greeting(kBegin + std::chrono::hours(2)));
}

TEST_CASE("A dealer greets less and less often while no router answers") {
  Sharing dealer(kSmall, false);
  int greetings = 0;
  for (int second = 0; second < 1000; ++second)
    greetings += dealer.greeting(kBegin + std::chrono::seconds(second)) ? 1 : 0;
  CHECK_GE(greetings, 10);
  CHECK_LE(greetings, 25);
}

TEST_CASE("A dealer connects only to an address that a Troupe router may offer") {
  const std::string other = "other-" + hexadecimal(make_token());
  const Descriptor listener = listen_at(other);
  REQUIRE(listener);
  Sharing dealer(kSmall, false);
  const auto hello = decoded(dealer.greeting(kBegin + std::chrono::hours(1)));
  for (const std::string& name : {other, std::string("troupe-nobody-has-this")})
    dealer.answer({.kind = Control::Kind::offer, .token = hello.token, .address = name}, "");
  dealer.answer({.kind = Control::Kind::offer, .token = make_token(), .address = "troupe-x"}, "");
  CHECK_EQ(dealer.counters().refused, 1); // the dealer has no such block
  CHECK_EQ(dealer.counters().links, 0);
  CHECK_FALSE(accept_from(listener));
}

TEST_CASE("A router that ends every link at once is greeted at most once a second") {
  Sharing dealer(kSmall, false);
  int greetings = 0;
  for (int i = 0; i < 400; ++i) { // 25 ms each
    const auto hello = dealer.greeting(kBegin + std::chrono::milliseconds(3'600'000 + 25 * i));
    if (!hello)
      continue;
    ++greetings;
    {
      Sharing router(kSmall, true);
      dealer.answer(decoded(router.answer(decoded(hello), "peer")), "");
      for (int turn = 0; turn < 3; ++turn) {
        router.pump();
        dealer.pump();
      }
      CHECK_EQ(dealer.counters().links, 1);
    }
    dealer.pump();
    CHECK_EQ(dealer.counters().links, 0);
  }
  CHECK_GE(greetings, 5);
  CHECK_LE(greetings, 10);
}

TEST_CASE("Options of shared memory that are out of range are refused, and the error names them") {
  CHECK_THROWS_WITH_AS(Sharing({.bytes_per_peer = 1}, true),
                       doctest::Contains("bytes_per_peer is 1 but must be"), std::invalid_argument);
  CHECK_THROWS_AS(Sharing({.least_frame_bytes = 0}, true), std::invalid_argument);
  CHECK_THROWS_AS(Sharing({.max_peers = 0}, true), std::invalid_argument);
}

} // namespace
} // namespace troupe::env::wire
