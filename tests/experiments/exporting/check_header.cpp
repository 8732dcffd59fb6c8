// Checks what an exported header guarantees, without any of our libraries. export_checks.py
// compiles this file with -DPOLICY=<namespace> and -Wl,--wrap=malloc. Exit code 0: all checks pass.
#include "policy.hpp"

#include <cstdio>
#include <cstring>
#include <type_traits>

extern "C" {
void* __real_malloc(std::size_t size);
static long mallocs = 0;
void* __wrap_malloc(std::size_t size) {
  ++mallocs;
  return __real_malloc(size);
}
}

namespace {

using Policy = POLICY::Policy;
using Frame = Policy::Frame;

int failures = 0;
void check(bool holds, const char* what) {
  if (!holds) {
    std::printf("not true: %s\n", what);
    ++failures;
  }
}

Policy one, other;
Frame frames[Policy::kHistory * Policy::kFrameSize];
float vectors[Policy::kVectorSize + 1];
float action[Policy::kActionSize], again[Policy::kActionSize];

void fill(int seed) {
  for (int i = 0; i < Policy::kHistory * Policy::kFrameSize; ++i)
    frames[i] = static_cast<Frame>((i * 37 + seed * 11) % 5);
}

bool same() {
  return std::memcmp(action, again, sizeof action) == 0;
}

void check_steps() {
  fill(1);
  // At the beginning of an episode the first frame is repeated.
  for (int i = Policy::kFrameSize; i < Policy::kHistory * Policy::kFrameSize; ++i)
    frames[i] = frames[i - Policy::kFrameSize];
  check(one.step(frames, vectors, action), "a step acts");
  check(other.act(frames, vectors, again), "a whole observation acts");
  check(same(), "a step repeats the first frame");
  Frame newest[Policy::kFrameSize];
  for (int i = 0; i < Policy::kFrameSize; ++i)
    newest[i] = static_cast<Frame>((i * 13) % 4);
  std::memcpy(frames + (Policy::kHistory - 1) * Policy::kFrameSize, newest, sizeof newest);
  one.step(newest, vectors, action);
  other.act(frames, vectors, again);
  check(same(), "a step shifts the history");
  one.reset();
  other.reset();
  fill(2);
  one.act(frames, vectors, action);
  other.act(frames, vectors, again);
  check(same(), "reset() forgets the episode");
}

void check_not_finite() {
  if (!std::is_same<Frame, float>::value)
    return;
  std::memcpy(again, action, sizeof action);
  const Frame kept = frames[0];
  auto* bytes = reinterpret_cast<unsigned char*>(frames);
  for (std::size_t i = 0; i < sizeof(Frame); ++i)
    bytes[i] = 0xff; // NaN
  check(!one.act(frames, vectors, action), "NaN is refused");
  check(!one.step(frames, vectors, action), "NaN is refused by a step");
  check(same(), "a refused observation leaves the action alone");
  frames[0] = kept;
}

void check_contracts() {
  char message[200] = "";
  troupe_policy::Contract machine = POLICY::kContract;
  check(check_contract(POLICY::kContract, machine, message, sizeof message),
        "a contract is its own");
  troupe_policy::Element actions[Policy::kActionSize];
  std::memcpy(actions, machine.action, sizeof actions);
  actions[Policy::kActionSize - 1].name = "left_gripper";
  machine.action = actions;
  check(!check_contract(POLICY::kContract, machine, message, sizeof message),
        "another action is refused");
  check(std::strstr(message, "left_gripper") != nullptr, "it is named");
  check(std::strstr(message, POLICY::kAction[Policy::kActionSize - 1].name) != nullptr,
        "and so is what it should be");
  machine = POLICY::kContract;
  machine.control_period_seconds *= 2;
  check(!check_contract(POLICY::kContract, machine, message, sizeof message),
        "another period is refused");
  check(std::strstr(message, "control period") != nullptr, "the period is named");
  machine = POLICY::kContract;
  machine.history += 1;
  check(!check_contract(POLICY::kContract, machine, message, sizeof message),
        "another history is refused");
  machine = POLICY::kContract;
  machine.observation_size -= 1;
  check(!check_contract(POLICY::kContract, machine, nullptr, 0), "fewer observations are refused");
}

} // namespace

int main() {
  const long before = mallocs;
  check_steps();
  check_not_finite();
  check(mallocs == before, "nothing is allocated");
  check_contracts();
  return failures;
}
