#include <doctest/doctest.h>

#include <thread>

#include "env/pool/doorbell.hpp"

using namespace troupe::env;

TEST_CASE("A sleeper that waits for several rings always wakes before its deadline") {
  constexpr int kRounds = 50'000;
  constexpr int kRings = 4; // per round; the sleeper waits for the last one
  constexpr std::chrono::seconds kFarAway{20};
  Doorbell bell;
  std::atomic<int> round = 0;
  std::atomic<int> work = 0;
  const std::jthread ringer([&] {
    for (int r = 1; r <= kRounds; ++r) {
      round.wait(r - 1);
      if (round < r)
        return;
      for (int i = 0; i < kRings; ++i) {
        work.fetch_add(1);
        bell.ring();
        for (int k = 0; k < r % 20; ++k)
          spin_pause();
      }
    }
  });
  bool late = false;
  for (int r = 1; r <= kRounds && !late; ++r) {
    const auto deadline = Doorbell::Clock::now() + kFarAway;
    work = 0;
    round = r;
    round.notify_one();
    while (work < kRings) {
      const std::uint32_t key = bell.announce();
      if (work >= kRings)
        bell.retract();
      else
        bell.sleep(key, deadline);
      late = late || Doorbell::Clock::now() >= deadline;
    }
  }
  CHECK_FALSE(late);
  if (late) {
    round = -1;
    round.notify_one();
  }
}

TEST_CASE("A ring reports whether it woke a sleeper") {
  Doorbell bell;
  CHECK_FALSE(bell.ring());
  bell.announce();
  CHECK(bell.ring());
  CHECK_FALSE(bell.ring()); // the sleeper is awake
  bell.announce();
  bell.retract();
  CHECK_FALSE(bell.ring());
}
