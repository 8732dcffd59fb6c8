// The traffic between the ranks of a group, as a relay between them sees it.
#include "tests/doctest_torch.hpp"

#include <future>

#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "collectives/rendezvous/over_store.hpp"
#include "tests/collectives/recording_relay.hpp"
#include "tests/text.hpp"

namespace troupe::collectives {
namespace {

using namespace std::chrono_literals;

const CommunicatorOptions kTrafficOptions{.timeout = 20s, .connect_timeout = 20s};
constexpr const char* kPattern = "the parameters are 0123456789 and nobody else's ";

/// An address that other hosts can reach.
constexpr const char* kEverywhere = "0.0.0.0";

CommunicatorOptions with(GroupTrust trust) {
  auto options = kTrafficOptions;
  options.trust = std::move(trust);
  return options;
}

/// A store that gives the ranks the ports of relays in place of each other's.
class RelayingStore : public c10d::HashStore {
public:
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    std::string text(value.begin(), value.end());
    if (key.find("troupe/control/") != std::string::npos) {
      const std::lock_guard lock(mutex_);
      const auto space = text.find(' ');
      relays_.push_back(std::make_unique<RecordingRelay>(std::atoi(text.c_str() + space)));
      text = text.substr(0, space + 1) + std::to_string(relays_.back()->port());
    }
    HashStore::set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
  }

  std::string recorded() const {
    std::string all;
    for (const auto& relay : relays_)
      all += relay->recorded();
    return all;
  }

private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<RecordingRelay>> relays_;
};

at::Tensor patterned(std::int64_t bytes) {
  auto tensor = at::empty({bytes}, at::kByte);
  const std::string pattern = kPattern;
  for (std::int64_t i = 0; i < bytes; ++i)
    tensor.mutable_data_ptr<std::uint8_t>()[i] =
        static_cast<std::uint8_t>(pattern[static_cast<std::size_t>(i) % pattern.size()]);
  return tensor;
}

/// Two ranks exchange patterns of this size in several ways. Returns the error of each, or "".
std::vector<std::string> exchange(const c10::intrusive_ptr<c10d::Store>& store, std::int64_t bytes,
                                  const std::vector<CommunicatorOptions>& options,
                                  const std::string& host = "127.0.0.1") {
  const auto rank = [&](int number) -> std::string {
    try {
      const auto communicator =
          tcp_over_store(host)(store, number, 2, options[static_cast<std::size_t>(number)]);
      const auto expected = patterned(bytes);
      const auto gathered = communicator->all_gather(expected);
      auto sent = number == 0 ? expected.clone() : at::empty({bytes}, at::kByte);
      communicator->broadcast(sent, 0);
      auto most = expected.clone();
      communicator->all_reduce(most, ReduceOp::max);
      const bool fine = gathered[0].equal(expected) && gathered[1].equal(expected)
                        && sent.equal(expected) && most.equal(expected);
      return fine ? "" : "other bytes have arrived";
    } catch (const std::exception& error) {
      return error.what();
    }
  };
  auto other = std::async(std::launch::async, rank, 1);
  auto first = rank(0);
  return {first, other.get()};
}

} // namespace

TEST_CASE("A relay between the ranks cannot read parameters in small or large tensors") {
  for (const std::int64_t bytes : {1000, 1'000'000}) {
    const auto store = c10::make_intrusive<RelayingStore>();
    CHECK(exchange(store, bytes, {with({.secret = "a"}), with({.secret = "a"})}, kEverywhere)
          == std::vector<std::string>(2));
    const auto seen = store->recorded();
    CHECK(seen.size() > static_cast<std::size_t>(3 * bytes)); // the data passed through the relays
    CHECK_FALSE(has(seen, std::string(kPattern).substr(0, 12)));
  }
}

TEST_CASE("On a trusted network, a relay can read large tensors but not small ones") {
  for (const std::int64_t bytes : {1000, 1'000'000}) {
    const auto store = c10::make_intrusive<RelayingStore>();
    const auto trusting = with({.trusted_network = true});
    CHECK(exchange(store, bytes, {trusting, trusting}, kEverywhere) == std::vector<std::string>(2));
    CHECK(has(store->recorded(), std::string(kPattern).substr(0, 12)) == (bytes > 1000));
  }
}

TEST_CASE("Ranks beyond loopback must share a secret or a private store") {
  const auto meet = [&](const GroupTrust& one, const GroupTrust& two) {
    return exchange(c10::make_intrusive<c10d::HashStore>(), 1000, {with(one), with(two)},
                    kEverywhere);
  };
  CHECK(meet({.secret = "a"}, {.secret = "a"}) == std::vector<std::string>(2));
  CHECK(meet({.private_store = true}, {.private_store = true}) == std::vector<std::string>(2));
  CHECK(has(meet({.private_store = true}, {.trusted_network = true})[0],
            "rank 1 does not encrypt, rank 0 does; set TROUPE_TRUSTED_NETWORK"));
  for (const auto& error : meet({}, {}))
    CHECK(has(error, "TROUPE_KEYS"));
}

TEST_CASE("A rank with another secret is reported on both sides") {
  auto one = kTrafficOptions, two = kTrafficOptions;
  one.trust.secret = "a";
  two.trust.secret = "b";
  one.connect_timeout = 500ms; // how long it waits for the right one
  const auto errors = exchange(c10::make_intrusive<c10d::HashStore>(), 1000, {one, two});
  CHECK(has(errors[0], "turned away without the group's key: 1"));
  CHECK(has(errors[1], "another key than rank 1"));
}

} // namespace troupe::collectives
