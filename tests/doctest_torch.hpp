#pragma once
// c10 defines CHECK and LOG; included after doctest it silently turns CHECK into an abort that
// counts as no assertion. Every test that sees LibTorch includes this header instead of doctest's,
// before anything else.
#include <torch/types.h>
#undef CHECK
#undef LOG
#include <doctest/doctest.h>
