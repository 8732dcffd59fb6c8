#include <doctest/doctest.h>

#include "env/remote/leases.hpp"

using namespace std::chrono_literals;
using troupe::env::remote::Leases;

TEST_CASE("Environments are lent, returned and lent again, lowest numbers first") {
  Leases leases(4, 100ms);
  const Leases::Time now{};
  CHECK(leases.take(1, 3, now).environments == std::vector<std::size_t>{0, 1, 2});
  CHECK(leases.take(2, 2, now).environments.empty()); // too few
  CHECK(leases.take(1, 1, now).environments.empty()); // already has some
  CHECK(leases.take(2, 0, now).environments.empty());
  CHECK(leases.take(2, 1, now).environments == std::vector<std::size_t>{3});
  leases.give_back(1);
  leases.give_back(7); // unknown peer
  CHECK(leases.free() == 3);
  CHECK(leases.take(3, 2, now).environments == std::vector<std::size_t>{0, 1});
}

TEST_CASE("A silent session loses its environments only when another session needs them") {
  Leases leases(4, 100ms);
  const Leases::Time start{};
  leases.take(1, 2, start);
  leases.take(2, 1, start);
  CHECK(leases.seen(2, start + 90ms));
  CHECK_FALSE(leases.seen(5, start));
  CHECK(leases.take(3, 1, start + 150ms).forgotten.empty()); // one was still free
  const auto taken = leases.take(4, 2, start + 150ms);
  CHECK(taken.forgotten == std::vector<std::uint64_t>{1});
  CHECK(taken.environments == std::vector<std::size_t>{0, 1});
  CHECK_FALSE(leases.seen(1, start + 150ms));
  CHECK(leases.seen(2, start + 150ms));
  CHECK(leases.sessions() == 3);
}

TEST_CASE("A session that is silent for exactly the patience keeps its environments") {
  Leases leases(1, 100ms);
  const Leases::Time start{};
  leases.take(1, 1, start);
  CHECK(leases.take(2, 1, start + 100ms).environments.empty());
  CHECK(leases.take(2, 1, start + 101ms).environments.size() == 1);
}

TEST_CASE("A silent session keeps its environments if they would not suffice for another session") {
  Leases leases(4, 100ms);
  const Leases::Time start{};
  leases.take(1, 1, start);
  leases.take(2, 2, start);
  CHECK(leases.seen(2, start + 150ms));
  const auto taken = leases.take(3, 3, start + 150ms);
  CHECK(taken.environments.empty());
  CHECK(taken.forgotten.empty());
  CHECK(leases.seen(1, start + 150ms));
}
