#pragma once
// The shared precompiled header. It includes only what nearly every file that touches LibTorch
// needs (2 s per file instead of 7).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <torch/types.h>
