// A library that only this build has: a host must be given it.
extern "C" int stand_in_answer();
int stand_in_answer() {
  return 42;
}
