#pragma once

namespace troupe::experiments {

/// Texts of exporting/runtime/, as they were when the program was built.
extern const char* const kPolicyRuntime; // policy_runtime.hpp
extern const char* const kParityProgram; // parity.in
extern const char* const kPolicyCMake;   // project.in; %NAME% is the target

} // namespace troupe::experiments
