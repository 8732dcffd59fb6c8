// A shared library that is not a plug-in.
extern "C" int troupe_nothing() {
  return 0;
}
