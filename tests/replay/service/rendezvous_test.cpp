#include "replay/service/rendezvous.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace troupe::replay {
namespace {

constexpr std::uint64_t kIds = 200'000;

std::vector<std::uint64_t> members(std::size_t count) {
  std::vector<std::uint64_t> made;
  for (std::size_t i = 0; i < count; ++i)
    made.push_back(member_hash("shard-" + std::to_string(i)));
  return made;
}

std::size_t home(std::uint64_t id, const std::vector<std::uint64_t>& of) {
  return home_of(id, of, [](std::size_t) { return true; }).value();
}

TEST_CASE("Ids are spread evenly over any number of shards") {
  for (const std::size_t count : {1U, 2U, 3U, 8U, 64U}) {
    const auto of = members(count);
    std::vector<double> got(count);
    for (std::uint64_t id = 0; id < kIds; ++id)
      ++got[home(id, of)];
    const double fair = static_cast<double>(kIds) / static_cast<double>(count);
    for (const double one : got)
      CHECK_LT(std::abs(one - fair), 5 * std::sqrt(fair)); // 5 sigma of independent choices
  }
}

TEST_CASE("A new shard takes its ids evenly from all others, and a removed shard returns them") {
  const auto nine = members(9);
  const std::vector<std::uint64_t> eight(nine.begin(), nine.end() - 1);
  double moved = 0;
  std::vector<double> from(8);
  for (std::uint64_t id = 0; id < kIds; ++id) {
    const std::size_t before = home(id, eight);
    const std::size_t after = home(id, nine);
    if (before == after)
      continue;
    REQUIRE_EQ(after, 8); // ids move only to the new member, and from it when it leaves
    ++moved;
    ++from[before];
  }
  const double fair = static_cast<double>(kIds) / 9;
  CHECK_LT(std::abs(moved - fair), 5 * std::sqrt(fair));
  for (const double one : from)
    CHECK_LT(std::abs(one - fair / 8), 5 * std::sqrt(fair / 8));
}

TEST_CASE("A temporarily excluded shard leaves its ids to the others and regains exactly those") {
  const auto of = members(5);
  for (std::uint64_t id = 0; id < 1000; ++id) {
    const std::size_t mine = home(id, of);
    const auto next = home_of(id, of, [&](std::size_t i) { return i != mine; });
    REQUIRE(next.has_value());
    std::vector<std::uint64_t> without = of;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(mine));
    CHECK_EQ(of[*next], without[home(id, without)]);
  }
  CHECK_FALSE(home_of(7, of, [](std::size_t) { return false; }).has_value());
}

TEST_CASE("An id's home depends only on names and is the same in every process") {
  // Published values: XXH3 of the empty string, and SplitMix64's first number for seed 0.
  CHECK_EQ(member_hash(""), 0x2d06800538d394c2ULL);
  CHECK_EQ(env::mix_bits(env::kSplitMixStep), 0xe220a8397b1dcdafULL);
  CHECK_EQ(rendezvous_score(0, 0), 0xe220a8397b1dcdafULL); // composed of just these two
  auto of = members(6);
  std::vector<std::uint64_t> homes;
  for (std::uint64_t id = 0; id < 1000; ++id)
    homes.push_back(of[home(id, of)]);
  std::reverse(of.begin(), of.end()); // the order of the members does not matter
  for (std::uint64_t id = 0; id < 1000; ++id)
    CHECK_EQ(of[home(id, of)], homes[id]);
}

} // namespace
} // namespace troupe::replay
