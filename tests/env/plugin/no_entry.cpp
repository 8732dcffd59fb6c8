// A shared library that is no plug-in.
extern "C" int troupe_nothing() {
  return 0;
}
