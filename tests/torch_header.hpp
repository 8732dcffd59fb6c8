#pragma once
// The precompiled header of tests that include tensors.
#include "collectives/backends/torch_header.hpp"
#include "tests/doctest_torch.hpp"
