#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// The content of a safetensors file: named tensors, and its "__metadata__" strings.
struct Safetensors {
  TensorMap tensors;
  std::map<std::string, std::string> metadata;
};

/// Writes float64, float32, bfloat16, int64 and uint8 tensors of any device in the safetensors
/// format. It writes a new file beside `path`, flushes it to the disk and renames it, so that the
/// old file remains if anything fails. Throws std::runtime_error naming the path and the reason (a
/// full disk, no permission), and std::invalid_argument naming a tensor of another type.
void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Reads all tensors into separate memory on the CPU. Treats the file as untrusted: checks the
/// header length, JSON, types, shapes and offsets (in bounds, without overlap or gap). Throws
/// std::runtime_error naming the file, the tensor and the rule.
Safetensors read_safetensors(const std::filesystem::path& path);

} // namespace troupe::learner
