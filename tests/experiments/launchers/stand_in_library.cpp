// A library that exists only in this build, so that a host must be given it.
extern "C" int stand_in_answer();
int stand_in_answer() {
  return 42;
}
