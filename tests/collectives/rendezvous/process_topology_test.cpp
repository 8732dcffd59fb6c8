#include <doctest/doctest.h>

#include <array>
#include <random>
#include <stdexcept>

#include "collectives/rendezvous/node_list.hpp"
#include "collectives/rendezvous/process_topology.hpp"
#include "tests/text.hpp"

namespace troupe::collectives {
namespace {

using Names = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

ProcessTopology place_of(const Variables& variables, const std::string& file = {},
                         const std::string& source = "auto") {
  return topology_from(
      environment_of(variables),
      [&](const std::string& path) {
        if (path != "hosts.txt")
          throw std::runtime_error("cannot read " + path);
        return file;
      },
      source);
}

std::string refusal(const Variables& variables, const std::string& file = {},
                    const std::string& source = "auto") {
  return error_of<std::invalid_argument>([&] { place_of(variables, file, source); });
}

bool says(const std::string& text, const Names& parts) {
  for (const auto& part : parts)
    if (text.find(part) == std::string::npos) {
      MESSAGE("\"", text, "\" does not say \"", part, "\"");
      return false;
    }
  return true;
}

const Variables kTorchrun{{"RANK", "5"},
                          {"WORLD_SIZE", "8"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "4"},
                          {"MASTER_ADDR", "10.0.0.1"},
                          {"MASTER_PORT", "29500"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"PMIX_NAMESPACE", "2814115841"}};
const Variables kSlurm{{"SLURM_PROCID", "4"},
                       {"SLURM_NTASKS", "5"},
                       {"SLURM_LOCALID", "0"},
                       {"SLURM_NODEID", "2"},
                       {"SLURM_NNODES", "3"},
                       {"SLURM_STEP_ID", "0"},
                       {"SLURM_JOB_ID", "4711"},
                       {"SLURM_TASKS_PER_NODE", "2(x2),1"},
                       {"SLURM_JOB_NODELIST", "n[1-2],m4"}};
const std::string kTfConfig = R"({"cluster": {"chief": ["10.0.0.1:2222"],
  "worker": ["10.0.0.1:2223", "10.0.0.2:2222"], "ps": ["10.0.0.3:2222", "10.0.0.3:2223"]},
  "task": {"type": "worker", "index": 1}})";

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}
Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

} // namespace

TEST_CASE("A Slurm node list is expanded in order and with its number width") {
  CHECK(expand_node_list("n[1-3,07],m4") == Names{"n1", "n2", "n3", "n07", "m4"});
  CHECK(expand_node_list("n[098-101]") == Names{"n098", "n099", "n100", "n101"});
  CHECK(expand_node_list("r[1-2]c[0-1]-ib") == Names{"r1c0-ib", "r1c1-ib", "r2c0-ib", "r2c1-ib"});
  CHECK(expand_node_list("host.example.org") == Names{"host.example.org"});
  CHECK(expand_task_counts("2(x3),1") == std::vector<int>{2, 2, 2, 1});
}

TEST_CASE("An invalid node list is refused with the reason") {
  const auto error = [](const char* list) {
    return error_of<std::invalid_argument>([&] { expand_node_list(list); });
  };
  CHECK(says(error("n[3-1]"), {"n[3-1]", "decrease"}));
  CHECK(says(error("n[1-"), {"character 5", "number"}));
  CHECK(says(error("n[1-2"), {"]"}));
  CHECK(says(error("n[0-999999999]"), {"more than 65536"}));
  CHECK(says(error("a[0-999]b[0-999]"), {"more than 65536"}));
  CHECK(says(error("a,,b"), {"between 1 and 253"}));
  CHECK(says(error("a b"), {"letters"}));
  CHECK(says(error("n[[1]]"), {"number"}));
  CHECK(says(error(""), {"1 byte"}));
  CHECK(says(error_of<std::invalid_argument>([] { expand_task_counts("2(x9999999),1"); }),
             {"more than"}));
  CHECK(says(error_of<std::invalid_argument>([] { expand_task_counts("2(3)"); }), {"(x3)"}));
}

TEST_CASE("A process without launcher variables runs alone on loopback") {
  const auto place = place_of({});
  CHECK(place.source == "single");
  CHECK(place.size == 1);
  CHECK(place.address == "127.0.0.1");
}

TEST_CASE("The variables of torchrun determine rank, host and rendezvous") {
  auto place = place_of(kTorchrun);
  CHECK(place.rank == 5);
  CHECK(place.local_rank == 1);
  CHECK(place.local_size == 4);
  CHECK(place.rendezvous_host == "10.0.0.1");
  CHECK(place.rendezvous_port == 29500);
  CHECK(place.address == ""); // unknown: rank 0 is on another host
  CHECK_FALSE(place.rendezvous_served);
  place = place_of(
      with(with(kTorchrun, "TROUPE_ADDRESS", "10.0.0.2"), "TORCHELASTIC_USE_AGENT_STORE", "True"));
  CHECK(place.address == "10.0.0.2");
  CHECK(place.rendezvous_served);
  CHECK(place.attempt == 0);
  CHECK(place_of(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "2")).attempt == 2);
  place = place_of(
      {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "1234"}});
  CHECK(place.local_rank == 1);
  CHECK(place.local_size == 2);
  CHECK(place.address == "localhost");
  place = place_of({{"RANK", "1"},
                    {"WORLD_SIZE", "4"},
                    {"LOCAL_RANK", "1"},
                    {"LOCAL_WORLD_SIZE", "4"},
                    {"MASTER_ADDR", "10.0.0.1"},
                    {"MASTER_PORT", "29500"}});
  CHECK(place.rendezvous_host == "10.0.0.1");
  CHECK(place.address == "127.0.0.1"); // all four are local, out of others' reach
  place = place_of(with(kTorchrun, "TROUPE_RENDEZVOUS", "/proc/1/fd/7")); // overrides the others
  CHECK(place.rendezvous_file == "/proc/1/fd/7");
  CHECK(place.address == "127.0.0.1");
}

TEST_CASE("Keys and the trusted-network setting combine with any launcher") {
  const auto place =
      place_of(with(with(kTorchrun, "TROUPE_KEYS", "/k"), "TROUPE_TRUSTED_NETWORK", "1"));
  CHECK(place.keys == "/k");
  CHECK(place.trusted_network);
  CHECK_FALSE(place_of(with(kTorchrun, "TROUPE_TRUSTED_NETWORK", "0")).trusted_network);
  CHECK_THROWS_WITH_AS(place_of(with(kTorchrun, "TROUPE_TRUSTED_NETWORK", "yes")),
                       doctest::Contains("TROUPE_TRUSTED_NETWORK"), std::invalid_argument);
}

TEST_CASE("TF_CONFIG numbers the chief first and includes the parameter servers") {
  auto place = place_of({{"TF_CONFIG", kTfConfig}});
  CHECK(place.rank == 2);
  CHECK(place.size == 3);
  CHECK(place.local_size == 1);
  CHECK(place.address == "10.0.0.2");
  CHECK(place.rendezvous_host == "10.0.0.1");
  CHECK(place.rendezvous_port == 2222);
  CHECK(place.cluster["ps"].size() == 2);
  auto ps = kTfConfig;
  ps.replace(ps.find("\"worker\", \"index\""), 8, "\"ps\"");
  place = place_of({{"TF_CONFIG", ps}});
  CHECK(place.role == "ps");
  CHECK(place.rank == 1);
  CHECK(place.size == 2);
  CHECK(place.local_rank == 1);
  CHECK(place.address == "10.0.0.3");
  CHECK(place.rendezvous_host == "10.0.0.1");
}

TEST_CASE("Open MPI on one host uses loopback and a port derived from its job") {
  const auto place = place_of(kOpenMpi);
  CHECK(place.rank == 3);
  CHECK(place.rendezvous_host == "127.0.0.1");
  CHECK(place.rendezvous_port >= 20'000);
  CHECK(place.rendezvous_port < 30'000);
  CHECK(place.rendezvous_port
        == place_of(with(kOpenMpi, "OMPI_COMM_WORLD_RANK", "0")).rendezvous_port);
  const auto two = place_of(with(with(with(with(kOpenMpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
                                           "OMPI_COMM_WORLD_LOCAL_RANK", "1"),
                                      "MASTER_ADDR", "10.0.0.1"),
                                 "MASTER_PORT", "1234"));
  CHECK(two.rendezvous_host == "10.0.0.1");
  CHECK(two.address == "");
}

TEST_CASE("The variables of MPICH are also understood") {
  const auto place = place_of(
      {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}});
  CHECK(place.source == "mpich");
  CHECK(place.rank == 1);
  CHECK(place.rendezvous_host == "");
}

TEST_CASE("A Slurm step determines nodes, uneven task counts and a port derived from its job") {
  const auto place = place_of(kSlurm);
  CHECK(place.source == "slurm");
  CHECK(place.rank == 4);
  CHECK(place.size == 5);
  CHECK(place.local_size == 1);
  CHECK(place.address == "m4");
  CHECK(place.rendezvous_host == "n1");
  CHECK(place.rendezvous_port != place_of(with(kSlurm, "SLURM_JOB_ID", "4712")).rendezvous_port);
}

TEST_CASE("A Slurm batch script runs alone, and a launcher inside a step takes precedence") {
  CHECK(place_of(without(kSlurm, "SLURM_STEP_ID")).source == "single");
  CHECK(place_of(with(kSlurm, "SLURM_STEP_ID", "4294967291")).source == "single");
  auto both = kSlurm;
  both.insert(kOpenMpi.begin(), kOpenMpi.end());
  CHECK(place_of(both).source == "open_mpi");
  CHECK(place_of(both, {}, "slurm").rank == 4);
}

TEST_CASE("A host file numbers its slots consecutively") {
  const std::string file = "# two machines\n10.0.0.1:29500 slots=2\n\n10.0.0.2 slots=3 # new\n";
  const auto place = place_of({{"TROUPE_HOSTS", "hosts.txt"}, {"TROUPE_RANK", "3"}}, file);
  CHECK(place.size == 5);
  CHECK(place.local_rank == 1);
  CHECK(place.local_size == 3);
  CHECK(place.address == "10.0.0.2");
  CHECK(place.rendezvous_host == "10.0.0.1");
  CHECK(place.rendezvous_port == 29500);
}

TEST_CASE("Incomplete launcher variables are refused, and the error names the missing one") {
  const auto half = [](const Variables& variables, const char* missing) {
    return says(refusal(without(variables, missing)), {missing, "not set", "set"});
  };
  CHECK(half(kTorchrun, "RANK"));
  CHECK(half(kTorchrun, "WORLD_SIZE"));
  CHECK(half(kTorchrun, "MASTER_ADDR"));
  CHECK(half(kTorchrun, "MASTER_PORT"));
  CHECK(half(kTorchrun, "LOCAL_RANK"));
  CHECK(half(kOpenMpi, "OMPI_COMM_WORLD_SIZE"));
  CHECK(half(kSlurm, "SLURM_NTASKS"));
  CHECK(half(kSlurm, "SLURM_NODEID"));
  CHECK(says(refusal({{"TROUPE_RANK", "0"}}), {"TROUPE_HOSTS is not set"}));
}

TEST_CASE("Contradictions and values out of range are refused with key and value") {
  CHECK(says(refusal(with(kTorchrun, "RANK", "8")), {"RANK is \"8\"", "[0, 7]", "correct it"}));
  CHECK(says(refusal(with(kTorchrun, "WORLD_SIZE", "8x")), {"WORLD_SIZE is \"8x\""}));
  CHECK(says(refusal(with(kTorchrun, "MASTER_PORT", "0")), {"MASTER_PORT is \"0\"", "65535"}));
  CHECK(says(refusal(with(kTorchrun, "MASTER_ADDR", "a b")), {"MASTER_ADDR is \"a b\""}));
  CHECK(says(refusal(with(kSlurm, "SLURM_NNODES", "4")), {"SLURM_NNODES", "has 3 nodes"}));
  CHECK(says(refusal(with(kSlurm, "SLURM_LOCALID", "1")), {"no room", "node 2"}));
  CHECK(says(refusal(with(kSlurm, "SLURM_JOB_NODELIST", "n[1-")), {"SLURM_JOB_NODELIST"}));
  auto both = kTorchrun;
  both.insert(kOpenMpi.begin(), kOpenMpi.end());
  CHECK(says(refusal(both), {"torchrun says rank 5 of 8", "open_mpi says rank 3 of 4", "unset"}));
  CHECK(place_of(both, {}, "open_mpi").rank == 3);
  CHECK(says(refusal({}, {}, "slurm"), {"\"slurm\" has set none"}));
  CHECK(says(refusal({}, {}, "pbs"), {"no source \"pbs\"", "choose"}));
  const auto hosts = [](const std::string& file) {
    return refusal({{"TROUPE_HOSTS", "hosts.txt"}, {"TROUPE_RANK", "0"}}, file);
  };
  CHECK(says(hosts("a slots=2\n"), {"TROUPE_HOSTS", "port"}));
  CHECK(says(hosts("a:1 slots=0\n"), {"line 1", "slots"}));
  CHECK(says(hosts("a:1 slots=2 x\n"), {"line 1", "slots"}));
  CHECK(says(hosts("a:1\na\n"), {"line 2", "twice"}));
  CHECK(says(hosts("a:1\nb:2\n"), {"line 2", "only the first"}));
  CHECK(says(hosts("#\n"), {"no host"}));
  CHECK(says(refusal({{"TROUPE_HOSTS", "none.txt"}, {"TROUPE_RANK", "0"}}), {"none.txt"}));
}

TEST_CASE("A contradictory TF_CONFIG is refused, and the error names the key") {
  const auto wrong = [](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    return refusal({{"TF_CONFIG", text}});
  };
  CHECK(says(wrong(kTfConfig, "\"index\": 1", "\"index\": 2"), {"task.index: 2", "[0, 2)"}));
  CHECK(says(wrong(kTfConfig, "\"index\": 1", "\"index\": -1"), {"task.index: -1"}));
  CHECK(says(wrong(kTfConfig, "\"index\": 1", "\"index\": \"1\""), {"whole number"}));
  CHECK(
      says(wrong(kTfConfig, "\"type\": \"worker\"", "\"type\": \"boss\""), {"task.type", "boss"}));
  CHECK(says(wrong(kTfConfig, "10.0.0.1:2223", "10.0.0.1:2222"), {"listed twice"}));
  CHECK(says(wrong(kTfConfig, "10.0.0.1:2223", "10.0.0.1:99999"), {"cluster.worker", "65535"}));
  CHECK(says(wrong(kTfConfig, "10.0.0.1:2223", "10.0.0.1"), {"host:port"}));
  CHECK(says(wrong(kTfConfig, "\"ps\"", "\"gpu\""), {"cluster.gpu"}));
  CHECK(says(refusal({{"TF_CONFIG", "{"}}), {"not a JSON"}));
  CHECK(says(refusal({{"TF_CONFIG", "[]"}}), {"not a JSON object"}));
}

TEST_CASE("No values of launcher variables yield an impossible topology") {
  std::mt19937 random(11);
  const Names values{"",         "-1",    "0",          "1",     "3",
                     "7",        "65536", "2147483648", "1e3",   " 4",
                     "4 ",       "0x2",   "n[1-3]",     "n[1-",  "2(x3),1",
                     "10.0.0.1", "::1",   "{}",         "a:b:c", "99999999999999999999"};
  int taken = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto variables = std::array{kTorchrun, kOpenMpi, kSlurm}[random() % 3];
    for (auto left = 1 + random() % 3; left > 0; --left) {
      const auto chosen =
          std::next(variables.begin(), static_cast<std::ptrdiff_t>(random() % variables.size()));
      if (random() % 4 == 0 && variables.size() > 1)
        variables.erase(chosen);
      else
        chosen->second = values[random() % values.size()];
    }
    try {
      const auto place = place_of(variables);
      ++taken;
      const bool possible = place.rank >= 0 && place.rank < place.size && place.local_rank >= 0
                            && place.local_rank < place.local_size && place.local_size <= place.size
                            && place.rendezvous_port >= 0 && place.rendezvous_port <= 65535;
      if (!possible)
        for (const auto& [name, value] : variables)
          MESSAGE(name, "=\"", value, "\"");
      REQUIRE(possible);
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  CHECK(taken > 100);
  CHECK(refused > 100);
}

TEST_CASE("The parsers of launcher descriptions either accept or refuse any input") {
  constexpr int kRounds = 20'000;
  std::mt19937 random(7);
  const Names seeds{"n[1-3,07],m4", "2(x3),1", kTfConfig, "10.0.0.1:29500 slots=2\n10.0.0.2\n"};
  const std::string letters = "[]{}(),:-x\"\\0129 \n\xff";
  int taken = 0, refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    auto text = seeds[random() % seeds.size()];
    for (auto left = 1 + random() % 4; left > 0 && !text.empty(); --left) {
      const auto at = random() % text.size();
      switch (random() % 4) {
      case 0:
        text[at] = letters[random() % letters.size()];
        break;
      case 1:
        text.erase(at, 1 + random() % 5);
        break;
      case 2:
        text.insert(at, 1, letters[random() % letters.size()]);
        break;
      default:
        text.insert(at, text.substr(random() % text.size(), random() % 12));
      }
    }
    const auto attempt = [&](auto parse) {
      try {
        parse(text);
        ++taken;
      } catch (const std::invalid_argument& error) {
        ++refused;
        CHECK(std::string(error.what()).size() < 1000);
      }
    };
    attempt([](const std::string& bytes) {
      const auto names = expand_node_list(bytes);
      CHECK(names.size() <= kMostNodes);
    });
    attempt([](const std::string& bytes) {
      const auto counts = expand_task_counts(bytes);
      CHECK(counts.size() <= kMostNodes);
    });
    attempt([](const std::string& bytes) {
      const auto config = parse_tf_config(bytes);
      CHECK(config.index >= 0);
      if (config.role != "evaluator")
        CHECK(static_cast<std::size_t>(config.index) < config.cluster.at(config.role).size());
    });
    attempt([](const std::string& bytes) {
      const auto hosts = parse_host_file(bytes);
      CHECK_FALSE(hosts.empty());
    });
  }
  CHECK(taken > 100);
  CHECK(refused > 100);
}

} // namespace troupe::collectives
