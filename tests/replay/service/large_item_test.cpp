#include <cstring>

#include <sys/resource.h>

#include <doctest/doctest.h>

#include "replay/service/shard_client.hpp"
#include "replay/service/shard_host.hpp"
#include "replay/writers/writer.hpp"

namespace troupe::replay {
namespace {

using Clock = std::chrono::steady_clock;

Deadline soon() {
  return Clock::now() + std::chrono::seconds(60);
}

constexpr std::int64_t kFloats = std::int64_t{12} << 20; // 48 MiB a row
const TableConfig kFree{.limiter = {.kind = RateLimiterKind::minimum_size}};
const Signature kLarge{.columns = {{"state", env::ElementType::float32, {kFloats}}},
                       .items = "windows of large states"};

constexpr std::size_t kRowBytes = kFloats * sizeof(float);

std::vector<float> row_of(std::size_t number) {
  return std::vector<float>(kFloats, static_cast<float>(number));
}

/// One item of `rows` rows; every element of a row is the row's number.
InsertionPtr one_item(std::int64_t rows) {
  Writer writer(kLarge, 1, {.chunk_rows = 1, .reach = rows});
  for (std::int64_t row = 0; row < rows; ++row) {
    std::memcpy(writer.next(0).data(), row_of(static_cast<std::size_t>(row)).data(), kRowBytes);
    writer.append();
  }
  writer.add_item(0, rows);
  return writer.take();
}

TEST_CASE("An item above the limit is refused by its client or otherwise by the server") {
  env::wire::Context context;
  ShardHost host(context, kFree, kLarge, 1);
  ShardClient client(context, host.endpoint(), kLarge);
  const InsertionPtr item = one_item(2);
  CHECK_THROWS_WITH_AS(client.insert(item, soon()),
                       doctest::Contains("an item's column state has 100663296 bytes, "
                                         "max_frame_bytes is 67108864"),
                       std::invalid_argument);
  CHECK_EQ(client.in_flight(), 0);
  ShardClient bold(context, host.endpoint(), kLarge, {.max_frame_bytes = std::size_t{1} << 30});
  REQUIRE(bold.insert(item, soon()));
  CHECK_THROWS_WITH_AS(bold.flush(soon()), doctest::Contains("max_frame_bytes is 67108864"),
                       std::runtime_error);
  CHECK_EQ(host.stats().items, 0);
}

TEST_CASE("An item of a gigabyte is inserted and sampled if the limits allow it") {
  constexpr std::size_t kLimit = std::size_t{1} << 30;
  constexpr std::int64_t kRows = 20; // 1.007e9 bytes
  env::wire::Context context;
  ShardHost host(context, kFree, kLarge, 1, {.server = {.max_frame_bytes = kLimit}});
  ShardClient client(context, host.endpoint(), kLarge,
                     {.shared_memory = {}, .max_frame_bytes = kLimit});
  REQUIRE(client.insert(one_item(kRows), soon()));
  REQUIRE(client.flush(soon()));
  CHECK_GT(host.stats().bytes, 1'000'000'000);
  const auto batch = client.sample(1, soon());
  REQUIRE(batch.has_value());
  REQUIRE_EQ(batch->parts.size(), 1);
  REQUIRE_EQ(batch->parts[0].items.size(), 1);
  const std::span<const std::byte> all = batch->parts[0].rows(0, 0);
  REQUIRE_EQ(std::ssize(all), kRows * kFloats * 4);
  for (std::size_t row = 0; row < kRows; ++row)
    CHECK_EQ(std::memcmp(&all[row * kRowBytes], row_of(row).data(), kRowBytes), 0);
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  CHECK_LT(used.ru_maxrss, 3L << 20); // KiB, of sender, server and receiver together
}

} // namespace
} // namespace troupe::replay
