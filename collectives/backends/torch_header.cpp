// Compiles the shared precompiled header; see torch_header.hpp.
