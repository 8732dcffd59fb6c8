#include "experiments/config/config.hpp"

#include <doctest/doctest.h>

#include "env/random.hpp"
#include "tests/mutated.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;

namespace {

const std::string kBalance = "environment { task: \"cartpole_balance\" }\n";
const std::string kGreyBalance =
    "environment { task: \"cartpole_balance\" pixels { grey: true } }\n";

std::string complaint_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  return error_of([&] { parse_experiment(text, "bad.textproto", sets); });
}

struct Bad {
  std::string text;
  std::vector<std::string> parts; // of the message, in any order
};

const std::vector<Bad> kBadFiles = {
    // unknown keys: position of the key, full name, nearest
    {"shards: 2",
     {"bad.textproto:1:1: ", "shards is not a key", "replay.shards", "troupe list keys"}},
    {kBalance + "replay {\n  shard: 2\n}",
     {"bad.textproto:3:3: ", "replay.shard is not", "did you mean replay.shards"}},
    {kBalance + "replai { shards: 2 }",
     {"bad.textproto:2:1: ", "replai is not a key", "did you mean replay"}},
    {"environment { task: \"cartpole_balance\" pixels { hight: 64 } }",
     {"bad.textproto:1:49: ", "environment.pixels.hight is not", "environment.pixels.height"}},
    {kBalance + "d4pg { n_step: 3 }",
     {"bad.textproto:2:8: ", "d4pg.n_step is not", "replay.n_step"}},
    // wrong types
    {kBalance + "seed: \"one\"",
     {"bad.textproto:2:7: ", "seed is \"one\"", "a non-negative whole number"}},
    {kBalance + "seed: -1", {"bad.textproto:2:7: ", "seed is -1", "non-negative"}},
    {kBalance + "seed: 1.5", {"bad.textproto:2:7: ", "seed is 1.5", "a non-negative whole number"}},
    {kBalance + "deterministic: maybe",
     {"bad.textproto:2:16: ", "deterministic is maybe", "true or false"}},
    {kBalance + "replay { shards: 99999999999 }",
     {"2:18: ", "replay.shards is 99999999999", "from 1 to 64"}},
    {"environment { task: 5 }", {"1:21: ", "environment.task is 5", "a text in quotes"}},
    {"environment: 5", {"1:14: ", "lines read `key: value` or `block { … }`"}},
    // bad names of a choice
    {kBalance + "learner { backend: NCLL }",
     {"2:20: ", "learner.backend is NCLL", "AUTO, THREADS, TCP, NCCL and SHARED_MEMORY",
      "did you mean NCCL"}},
    {kBalance + "learner { backend: tcp }", {"learner.backend is tcp", "did you mean TCP"}},
    {kBalance + "learner { backend: GLOO }", {"learner.backend is GLOO", "TCP has replaced it"}},
    {kBalance + "d4pg { encoder: \"stride5\" }",
     {"2:8: ", "d4pg.encoder is \"stride5\"", "one of \"stride4\" and \"drq\"",
      "did you mean \"stride4\""}},
    // out of range
    {kBalance + "replay {\n shards: 0 }", {"3:2: ", "replay.shards is 0", "from 1 to 64"}},
    {kBalance + "replay { discount: 1.5 }", {"2:10: ", "replay.discount is 1.5", "from 0 to 1"}},
    {kBalance + "replay { discount: nan }", {"replay.discount is nan", "a finite number"}},
    {kBalance + "d4pg { value_maximum: inf }", {"d4pg.value_maximum is inf", "a finite number"}},
    {kBalance + "replay { samples_per_insert: 0 }", {"replay.samples_per_insert is 0", "above 0"}},
    {kBalance + "replay { sampler: \"priorized\" }",
     {"replay.sampler is \"priorized\"", "did you mean \"prioritized\""}},
    {kBalance + "replay { sampler: \"lifo\" }",
     {"replay.max_times_sampled is 0", "the same item until it is removed"}},
    {kBalance + "replay { max_times_sampled: 4 samples_per_insert: 8 }",
     {"replay.samples_per_insert is 8", "at most replay.max_times_sampled, 4"}},
    {kBalance + "d4pg { policy_layers: [256, 0] }", {"d4pg.policy_layers is 0", "from 1 to 65536"}},
    // syntax
    {kBalance + "seed: 1\nseed: 2", {"bad.textproto:3:1: ", "seed is given twice"}},
    {"environment { task: \"cartpole_balance\"",
     {"bad.textproto:1:", "the text ends inside the block environment; a } is missing"}},
    {"environment { task: \"cartpole_balance\" pixels {\n",
     {"bad.textproto:2:1: ", "inside the block environment.pixels; a } is missing"}},
    {"environment { task: \"cartpole_balance\"\nreplay { shards: 2 }",
     {"bad.textproto:2:1: ", "replay stands outside environment: is a } missing before it?"}},
    {kBalance + "replay { shards: 2 } }", {"2:22: ", "this } closes no block"}},
    {kBalance + "seed 5", {"2:6: ", "near seed", "lines read"}},
    {kBalance + "= 5", {"2:1: "}},
    {"environment { task: \"cartpole_balance }", {"bad.textproto:1:"}},
    // tasks
    {"", {"bad.textproto: ", "environment.task is missing", "troupe list environments"}},
    {"environment { task: \"cartpole_balanse\" }",
     {"1:15: ", "\"cartpole_balanse\"", "did you mean cartpole_balance"}},
    {"environment { task: \"\" }", {"environment.task is missing"}},
    {"environment { task: \"Hopper-v5\" options: \"frame_skip=2\"\n options: "
     "\"healthy_z_rang=1,2\" }",
     {"bad.textproto:2:2: ", "environment.options are refused: Hopper-v5: there is no option "
                             "'healthy_z_rang'; nearest: 'healthy_z_range'"}},
    {"environment { task: \"Hopper-v5\" options: [\"frame_skip=2\", \"skip=1\"] }",
     {"bad.textproto:1:33: ", "there is no option 'skip'"}},
    {"environment { task: \"CartPole-v1\" options: \"width=64\" }",
     {"bad.textproto:1:35: ", "pixel options set the size"}},
    {"environment { task: \"cartpole_balance\" options: \"length=2\" }",
     {"bad.textproto:1:40: ", "tasks of the control suite have no options"}},
    {"environment { task: \"Hopper-v5\" options: \"frame_skip=2\"\n options: \"skip\" }",
     {"bad.textproto:2:2: ", "environment.options has \"skip\"", "write key=value"}},
    // relations
    {kBalance + "d4pg { value_minimum: 5 value_maximum: 5 }",
     {"2:8: ", "d4pg.value_minimum is 5", "below d4pg.value_maximum, 5"}},
    {kBalance + "learner { replicas: 3 }",
     {"d4pg.batch_size is 256", "a multiple of learner.replicas, 3"}},
    {kBalance + "replay { capacity_items: 10 }",
     {"replay.minimum_items is 1000", "at most replay.capacity_items, 10"}},
    {kBalance + "stop { environment_steps: 500 }",
     {"replay.minimum_items is 1000", "at most 500", "nothing is ever learnt"}},
    {kBalance + "actors { random_steps: 2000000 }",
     {"actors.random_steps is 2000000", "at most 1000000"}},
    {kBalance + "d4pg { noise_end: 0.5 }",
     {"2:8: ", "d4pg.noise_end is 0.5", "at most d4pg.noise_start, 0.2"}},
    {kBalance + "replay { error_buffer: 8 }", {"replay.error_buffer is 8", "at least 256"}},
    {"environment { task: \"cartpole_balance\" pixels { height: 27 } }",
     {"environment.pixels.height is 27", "at least 28", "stride4"}},
    {"environment { task: \"cartpole_balance\" pixels { height: 32 width: 32 } } d4pg { "
     "shift_pixels: 32 }",
     {"d4pg.shift_pixels is 32", "smaller than the picture, 32 x 32"}},
    {kBalance + "sac { } td3 { }", {"2:9: ", "td3 is given together with sac", "one agent"}},
    {kGreyBalance + "sac { }", {"environment.pixels is given", "learns from states"}},
    {kBalance + "td3 { batch_size: 0 }", {"2:7: ", "td3.batch_size is 0", "from 1 to"}},
    {kBalance + "td3 { batch: 5 }", {"2:7: ", "td3.batch is not a key", "td3.batch_size"}},
    {kBalance + "sac { batch_size: 50 } learner { replicas: 3 }",
     {"sac.batch_size is 50", "a multiple of learner.replicas, 3"}},
    {kBalance + "learner { learning_rate { schedule: \"step\" } }",
     {"2:27: ", "learner.learning_rate.schedule is \"step\"", "\"linear\" and \"cosine\""}},
    {kBalance + "learner { learning_rate { schedule: \"linear\" updates: 5 warmup_updates: 9 } }",
     {"2:46: ", "learner.learning_rate.updates is 5", "warmup_updates, 9"}},
    {kBalance + "learner { learning_rate { updates: 5 } }",
     {"learner.learning_rate.updates is given", "is \"constant\""}},
    {kBalance + "learner { resets { period: 100 last_update: 99 } }",
     {"2:32: ", "learner.resets.last_update is 99", "at least learner.resets.period, 100"}},
    {kBalance + "learner { resets { period: 100 } strategy: \"parameter_server max_staleness=8\" }",
     {"2:20: ", "learner.resets.period is 100", "servers keep the parameters", "local_sgd"}},
    {kBalance + "learner { resets { what: \"layers\" } }", {"learner.resets.what is \"layers\""}},
    {kBalance + "td3 { noise_hold: 0 }", {"td3.noise_hold is 0", "from 1 to 10000"}},
    {kBalance + "td3 { noise_hold: 9 noise: \"parameters\" }",
     {"td3.noise_hold is 9", "td3.noise is \"parameters\"", "\"gaussian\""}},
    {kBalance + "ppo { learning_rate_updates: 5 }", {"ppo.learning_rate_updates is not a key"}},
    {kBalance + "supervision { heartbeat_seconds: 10 lost_seconds: 15 }",
     {"2:37: ", "supervision.lost_seconds is 15", "at least twice"}},
    {kBalance
         + "td3 { } recording { path: \"episodes\" }\n"
           "supervision { heartbeat_seconds: 10 lost_seconds: 15 }",
     {"3:37: ", "supervision.lost_seconds is 15", "at least twice"}},
    {"data { path: \"scenes\" } classifier { }\n"
     "supervision { heartbeat_seconds: 10 lost_seconds: 15 }",
     {"2:37: ", "supervision.lost_seconds is 15", "at least twice"}},
    {"data { path: \"scenes\" } classifier { }\ncheckpoint { store: \"bucket/runs\" }",
     {"2:14: ", "checkpoint.store is \"bucket/runs\"", "write s3://bucket/prefix"}},
    {kBalance + "name: \"../up\"", {"2:1: ", "name is \"../up\"", "becomes a folder"}},
};

const std::vector<std::pair<std::string, std::vector<std::string>>> kBadSets = {
    {"seed", {"--set seed: has no `=`"}},
    {"=5", {"--set =5: has no `=`"}},
    {"replay.shard=2", {"--set replay.shard=2: replay.shard is not a key", "replay.shards"}},
    {"shards=2", {"shards is not a key", "replay.shards"}},
    {"replay.shards.x=2", {"replay.shards.x is not a key"}},
    {"replay..shards=2", {"is not a key"}},
    {"replay.shards=two", {"replay.shards is two", "from 1 to 64"}},
    {"replay.shards=2 seed: 5", {"replay.shards is 2 seed: 5"}},
    {"replay.shards=0", {"--set replay.shards=0: replay.shards is 0", "from 1 to 64"}},
    {"d4pg.policy_layers=256,x", {"d4pg.policy_layers is x", "a whole number"}},
    {"d4pg.policy_layers=256,,256", {"d4pg.policy_layers is nothing"}},
    {"d4pg.policy_layers=[256 256]", {"d4pg.policy_layers is 256 256", "a whole number"}},
    {"environment.options=length=2",
     {"--set environment.options=length=2: environment.options are refused: 'length' is given to "
      "cartpole_balance"}},
    {"learner.backend=MPI",
     {"learner.backend is MPI", "AUTO, THREADS, TCP, NCCL and SHARED_MEMORY"}},
    {"environment.task=cheetah_rum",
     {"--set environment.task=cheetah_rum: ", "did you mean cheetah_run"}},
};

} // namespace

TEST_CASE(
    "An invalid experiment file is refused with the position, key, value, rule and nearest names") {
  for (const Bad& bad : kBadFiles) {
    CAPTURE(bad.text);
    const std::string text = complaint_of(bad.text);
    CAPTURE(text);
    CHECK_FALSE(text.empty());
    CHECK(text.find('\n') == std::string::npos);
    for (const std::string& part : bad.parts) {
      CAPTURE(part);
      CHECK(text.find(part) != std::string::npos);
    }
  }
}

TEST_CASE("An invalid --set is refused, and the error quotes it") {
  for (const auto& [assignment, parts] : kBadSets) {
    CAPTURE(assignment);
    const std::string text = complaint_of(kBalance, {assignment});
    CAPTURE(text);
    for (const std::string& part : parts) {
      CAPTURE(part);
      CHECK(text.find(part) != std::string::npos);
    }
  }
}

TEST_CASE("A mutated --set is either applied or refused with an error that names it") {
  env::Random random(12);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string assignment = mutated("d4pg.policy_layers=256,256", random);
    CAPTURE(assignment);
    try {
      parse_experiment(kBalance, "file.textproto", {assignment});
    } catch (const ConfigError& error) {
      CHECK(std::string(error.what()).starts_with("--set "));
      ++refused;
    }
  }
  CHECK(refused > 100);
}
