#pragma once
// c10 defines CHECK. Included after doctest, it silently replaces doctest's CHECK with one that
// aborts and counts no assertion. Every test that includes LibTorch must include this header first,
// instead of doctest's.
#include <torch/types.h>
#undef CHECK
#include <doctest/doctest.h>
