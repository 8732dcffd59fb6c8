#pragma once
// c10 defines CHECK; included after doctest it silently turns doctest's into an abort that
// counts as no assertion. Every test that sees LibTorch includes this header instead of doctest's,
// before anything else.
#include <torch/types.h>
#undef CHECK
#include <doctest/doctest.h>
