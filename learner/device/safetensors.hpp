#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// What a safetensors file holds: tensors by name, and its "__metadata__" strings.
struct Safetensors {
  TensorMap tensors;
  std::map<std::string, std::string> metadata;
};

/// Writes float64, float32, bfloat16, int64 and uint8 tensors of any device in the safetensors
/// format: to a file beside `path`, to the disk, then renamed, so that the old file stays when
/// anything fails. Throws std::runtime_error naming path and reason (a full disk, no permission),
/// std::invalid_argument naming a tensor of another type.
void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Reads all tensors, on the CPU, in separate memory. Treats the file as untrusted: checks header
/// length, JSON, types, shapes and offsets (in bounds, without overlap or gap). Throws
/// std::runtime_error naming the file, the tensor and the rule.
Safetensors read_safetensors(const std::filesystem::path& path);

} // namespace troupe::learner
