// Environments linked into a test program, registered by the same line as in a plug-in.
#include "tests/env/fake_environment.hpp"

#include "env/plugin/plugin.hpp"

namespace {
using troupe::env::Counting;
using troupe::env::make_own;
} // namespace

TROUPE_ENVIRONMENTS({"my_counting", "Counts.", make_own<Counting>});
