#include "actors/roles/policy_turns.hpp"

#include <doctest/doctest.h>

using troupe::actors::PolicyTurns;

TEST_CASE("Environments play whole sequences, then wait for the parameters learned from them") {
  PolicyTurns turns(10, 8, 4); // 8 sequences of 10 steps over 4 environments: two each
  CHECK(turns.waits(0));       // until the first parameters arrive
  turns.published();
  CHECK(turns.begins(0));
  CHECK_FALSE(turns.begins(1)); // the first sequences have already begun
  CHECK_FALSE(turns.waits(19));
  CHECK(turns.waits(20));
  turns.published();
  CHECK_FALSE(turns.waits(20));
  CHECK(turns.begins(20));
  turns.published(); // early, during the sequences: the next ones begin without waiting
  CHECK(turns.begins(40));
  CHECK(turns.waits(60));
}

TEST_CASE("Environments that do not divide a batch play more sequences than it needs") {
  PolicyTurns turns(10, 8, 3); // three sequences each
  turns.published();
  CHECK(turns.begins(0));
  CHECK_FALSE(turns.waits(29));
  CHECK(turns.waits(30));
}

TEST_CASE("Waiting environments continue when others leave, and play the missing sequences") {
  PolicyTurns turns(10, 8, 8);
  turns.published();
  CHECK(turns.begins(0));
  CHECK(turns.waits(10));
  turns.set_lanes(4);
  CHECK_FALSE(turns.waits(10));
  CHECK(turns.begins(10));
  CHECK_FALSE(turns.waits(29));
  CHECK(turns.waits(30));
}

TEST_CASE("After a resumption, environments finish the sequences that they had begun") {
  PolicyTurns before(10, 8, 4);
  before.published();
  CHECK(before.begins(0));
  PolicyTurns turns(10, 8, 4);
  turns.restore(before.saved());
  turns.published(); // the parameters of the checkpoint
  CHECK_FALSE(turns.begins(15));
  CHECK_FALSE(turns.waits(19));
  CHECK(turns.waits(20));
  turns.published();
  CHECK(turns.begins(20));

  PolicyTurns at_end(10, 8, 4);
  at_end.restore(before.saved());
  at_end.published(); // of all updates on the sequences
  CHECK_FALSE(at_end.waits(20));
  CHECK(at_end.begins(20));

  PolicyTurns fewer(10, 8, 2); // whose sequences would be too few
  fewer.restore(before.saved());
  fewer.published();
  CHECK(fewer.begins(15));
  CHECK(fewer.waits(55));
}

TEST_CASE("Environments of agents that do not require the newest policy never wait") {
  PolicyTurns turns(0, 8, 4);
  CHECK_FALSE(turns.waits(0));
  CHECK_FALSE(turns.begins(0));
  CHECK_FALSE(turns.waits(1000));
}
