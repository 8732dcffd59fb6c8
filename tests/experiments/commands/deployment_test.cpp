#include "tests/doctest_torch.hpp"

#include "experiments/commands/running/deployment.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments::commands;

TEST_CASE("Others reach a head that listens at all addresses by the name of its host") {
  for (const char* all : {"0.0.0.0", "::"}) {
    CHECK(reachable_address(all, "node7") == "node7");
    CHECK(reachable_address(all) == host_name());
  }
  for (const char* one : {"10.0.0.1", "127.0.0.1", "node8"})
    CHECK(reachable_address(one, "node7") == one);
}

TEST_CASE("The address of a head is a name or an IPv4 address with a port") {
  for (const char* host : {"10.0.0.1", "node-8.example.org"}) {
    const Endpoint head = parse_endpoint(std::string(host) + ":4242", "--head");
    CHECK(head.host == host);
    CHECK(head.port == 4242);
  }
  for (const char* wrong :
       {"", "h", ":1", "h:", "h:0", "h:65536", "h:1x", "[::1]:4242", "::1:4242"}) {
    CAPTURE(wrong);
    const std::string problem = error_of([&] { parse_endpoint(wrong, "--head"); });
    CHECK(has(problem, "--head is \"" + std::string(wrong) + "\"; it must be HOST:PORT with"));
  }
}

TEST_CASE("The address of this host towards itself is on the loopback interface") {
  CHECK(address_towards("127.0.0.1") == "127.0.0.1");
  CHECK(has(error_of([] { address_towards("::1"); }), "an IPv4 address that this host can reach"));
}
