#pragma once

namespace troupe::experiments {

/// The texts of files in exporting/runtime/ at the time the program was built.
extern const char* const kPolicyRuntime; // policy_numbers.hpp and policy_runtime.hpp
extern const char* const kParityProgram; // parity.in
extern const char* const kPolicyCMake; // project.in; %NAME% stands for the target, %TOLERANCE% for
                                       // the difference that its test allows

} // namespace troupe::experiments
