#pragma once
// c10 defines CHECK. Included after doctest, it silently replaces doctest's CHECK with one that
// aborts and counts no assertion. Every test that includes LibTorch must include this header first,
// instead of doctest's.
#include <torch/types.h>
#ifndef TROUPE_DOCTEST_TORCH // a compiler cache may supply a precompiled header of another clone,
#define TROUPE_DOCTEST_TORCH // which `#pragma once` takes for another file
#undef CHECK
#include <doctest/doctest.h>
#endif
