# LibTorch as imported targets of our own: LibTorch::cpu and, with a CUDA toolkit, LibTorch::cuda.
# Looks along CMAKE_PREFIX_PATH for a Python wheel's site-packages (torch/lib/libtorch_cpu.so beside nvidia/) or an unpacked
# LibTorch archive (lib/libtorch_cpu.so). The wheel's own find_package(Torch) demands a CUDA toolkit and fails under C++20.
include(FindPackageHandleStandardArgs)
# LibTorch_BUILT_WITH: a folder to look in after all others.
find_library(LibTorch_CPU_LIBRARY libtorch_cpu.so PATHS ${LibTorch_BUILT_WITH} PATH_SUFFIXES torch/lib lib)
if(LibTorch_CPU_LIBRARY)
  get_filename_component(_lib "${LibTorch_CPU_LIBRARY}" DIRECTORY)
  get_filename_component(LibTorch_ROOT "${_lib}" DIRECTORY)
  get_filename_component(_site "${LibTorch_ROOT}" DIRECTORY)
  set(LibTorch_VERSION)
  foreach(_header IN ITEMS torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT LibTorch_VERSION AND EXISTS "${LibTorch_ROOT}/include/${_header}")
      file(STRINGS "${LibTorch_ROOT}/include/${_header}" _lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
      string(REGEX REPLACE "[^0-9;]" "" _numbers "${_lines}")
      list(JOIN _numbers "." LibTorch_VERSION)
    endif()
  endforeach()
endif()
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_ROOT VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "run experiments/packaging/install_dependencies.sh, or name a LibTorch 2.11 with -DCMAKE_PREFIX_PATH=<site-packages or libtorch folder>")
if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  # The wheel's include/ holds protobuf 3.13 and pybind11, which would shadow the system's: a farm of links without them.
  set(_farm "${PROJECT_BINARY_DIR}/torch_include")
  file(MAKE_DIRECTORY "${_farm}")
  file(GLOB _entries RELATIVE "${LibTorch_ROOT}/include" "${LibTorch_ROOT}/include/*")
  foreach(_entry IN LISTS _entries)
    if(NOT _entry MATCHES "^(google|pybind11|fmt|zmq.*)$")
      file(CREATE_LINK "${LibTorch_ROOT}/include/${_entry}" "${_farm}/${_entry}" SYMBOLIC)
    endif()
  endforeach()
  add_library(LibTorch::c10 SHARED IMPORTED GLOBAL)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION "${_lib}/libc10.so" IMPORTED_SONAME libc10.so)
  add_library(LibTorch::cpu SHARED IMPORTED GLOBAL)
  set_target_properties(LibTorch::cpu PROPERTIES
    IMPORTED_LOCATION "${LibTorch_CPU_LIBRARY}" IMPORTED_SONAME libtorch_cpu.so
    INTERFACE_INCLUDE_DIRECTORIES "${_farm};${_farm}/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO;USE_RPC;USE_TENSORPIPE"
    INTERFACE_LINK_LIBRARIES LibTorch::c10)
  # Its own OpenMP, so that a program's threads and LibTorch's are one pool: a wheel brings it along.
  file(GLOB _gomp "${_lib}/libgomp*.so*")
  if(_gomp)
    list(GET _gomp 0 _gomp)
    add_library(LibTorch::gomp SHARED IMPORTED GLOBAL)
    set_target_properties(LibTorch::gomp PROPERTIES IMPORTED_LOCATION "${_gomp}")
  endif()
  # GNU ld looks for what libtorch_cpu itself needs (cudart, cupti) along -rpath-link.
  file(GLOB _nvidia LIST_DIRECTORIES true "${_site}/nvidia/*/lib")
  foreach(_dir IN LISTS _nvidia ITEMS ${_lib})
    set_property(TARGET LibTorch::cpu APPEND PROPERTY INTERFACE_LINK_OPTIONS "LINKER:-rpath-link,${_dir}")
  endforeach()
  if(EXISTS "${_lib}/libtorch_cuda.so")
    add_library(LibTorch::c10_cuda SHARED IMPORTED GLOBAL)
    set_target_properties(LibTorch::c10_cuda PROPERTIES
      IMPORTED_LOCATION "${_lib}/libc10_cuda.so" IMPORTED_SONAME libc10_cuda.so)
    add_library(LibTorch::torch_cuda SHARED IMPORTED GLOBAL)
    set_target_properties(LibTorch::torch_cuda PROPERTIES
      IMPORTED_LOCATION "${_lib}/libtorch_cuda.so" IMPORTED_SONAME libtorch_cuda.so)
  endif()
endif()
