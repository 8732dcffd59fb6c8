# Installs every part that was configured, component "libraries": static libraries, headers, a CMake package (TroupeConfig.cmake.in) and pkg-config
# files. They may be moved together: no file names the folders of the source or the build, or where it was installed. Only the folders of MuJoCo,
# LibTorch and the models are named, as they were found. The program `troupe` with its experiments is the component "program".
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/Troupe)
file(RELATIVE_PATH TROUPE_PACKAGE_TO_PREFIX /${_package} /)
string(REGEX REPLACE "/$" "" TROUPE_PACKAGE_TO_PREFIX "${TROUPE_PACKAGE_TO_PREFIX}")

set(_targets)
foreach(_name IN ITEMS wire caster env remote_protocol replay replay_protocol objects collectives learner learner_protocol agents agents_protocol data
    workloads transparent_settings placer actors actors_protocol experiments_core experiments_protocol launchers cluster operating comparison web dashboard exporting play serving program)
  if(TARGET troupe_${_name})
    list(APPEND _targets troupe_${_name})
    set_property(TARGET troupe_${_name} APPEND PROPERTY INTERFACE_COMPILE_FEATURES $<INSTALL_INTERFACE:cxx_std_20>)
  endif()
endforeach()
install(TARGETS ${_targets} EXPORT TroupeTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries)
install(EXPORT TroupeTargets NAMESPACE troupe:: DESTINATION ${_package} COMPONENT libraries)
foreach(_module IN ITEMS troupe_nccl troupe_mpi troupe_cuda_graph troupe_video) # loaded when they are asked for
  if(TARGET ${_module})
    install(TARGETS ${_module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries)
  endif()
endforeach()

# What is no interface: other libraries' declarations, sources in the form of headers, parts of modules and of Python packages.
foreach(_folder IN LISTS TROUPE_COMPONENTS)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${_folder} DESTINATION include/troupe COMPONENT libraries FILES_MATCHING PATTERN "*.hpp"
    PATTERN bench EXCLUDE PATTERN examples EXCLUDE PATTERN python EXCLUDE PATTERN "*-inl.hpp" EXCLUDE
    PATTERN "*torch_header.hpp" EXCLUDE)
endforeach()
install(DIRECTORY ${PROJECT_BINARY_DIR}/generated/ DESTINATION include/troupe COMPONENT libraries FILES_MATCHING PATTERN "*.pb.h")

set(TROUPE_INSTALLED_COMPONENTS)
foreach(_component IN ITEMS caster env replay collectives learner agents data workloads actors)
  if(TARGET troupe_${_component})
    list(APPEND TROUPE_INSTALLED_COMPONENTS ${_component})
  endif()
endforeach()
if(TARGET troupe_program)
  list(APPEND TROUPE_INSTALLED_COMPONENTS experiments)
endif()
# Versions and folders of what must be the same again; found before, in the folders that own it.
list(PREPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/env/cmake ${PROJECT_SOURCE_DIR}/collectives/cmake ${PROJECT_SOURCE_DIR}/actors/cmake)
if(TARGET MuJoCo::mujoco)
  find_package(MuJoCo QUIET)
  cmake_path(GET MuJoCo_LIBRARY PARENT_PATH MuJoCo_LIBRARIES)
  cmake_path(GET MuJoCo_LIBRARIES PARENT_PATH MuJoCo_FOLDER)
endif()
if(TARGET LibTorch::cpu)
  find_package(LibTorch QUIET)
  cmake_path(GET LibTorch_CPU_LIBRARY PARENT_PATH LibTorch_LIBRARIES)
  cmake_path(GET LibTorch_LIBRARIES PARENT_PATH LibTorch_FOLDER)
endif()
if(TARGET CAF::core)
  find_package(CAF QUIET COMPONENTS core io)
endif()
list(REMOVE_AT CMAKE_MODULE_PATH 0 1 2)
configure_file(${CMAKE_CURRENT_LIST_DIR}/TroupeConfig.cmake.in ${PROJECT_BINARY_DIR}/package/TroupeConfig.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/TroupeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/troupe COMPONENT libraries)
install(FILES ${PROJECT_BINARY_DIR}/package/TroupeConfig.cmake ${PROJECT_BINARY_DIR}/package/TroupeConfigVersion.cmake
    ${PROJECT_SOURCE_DIR}/collectives/cmake/FindLibTorch.cmake ${PROJECT_SOURCE_DIR}/env/cmake/FindMuJoCo.cmake
    ${PROJECT_SOURCE_DIR}/actors/cmake/FindCAF.cmake
  DESTINATION ${_package} COMPONENT libraries)

# troupe_pkg_config(replay "…" REQUIRES libzstd LIBRARIES replay MORE -lm CFLAGS …): lib/pkgconfig/troupe-<name>.pc. The libraries are static, so
# whoever links one needs what it requires.
set(TROUPE_PKG_CONFIG_TO_PREFIX)
file(RELATIVE_PATH TROUPE_PKG_CONFIG_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TROUPE_PKG_CONFIG_TO_PREFIX "${TROUPE_PKG_CONFIG_TO_PREFIX}")
function(troupe_pkg_config name description)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "LIBRARIES;REQUIRES;MORE;CFLAGS;VARIABLES")
  list(TRANSFORM arg_LIBRARIES PREPEND "-ltroupe_")
  foreach(_part IN ITEMS LIBRARIES REQUIRES MORE CFLAGS)
    list(JOIN arg_${_part} " " ${_part})
  endforeach()
  list(JOIN arg_VARIABLES "\n" VARIABLES)
  set(_file ${PROJECT_BINARY_DIR}/package/troupe-${name}.pc)
  file(CONFIGURE OUTPUT ${_file} @ONLY CONTENT [[prefix=${pcfiledir}/@TROUPE_PKG_CONFIG_TO_PREFIX@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
@VARIABLES@

Name: troupe-@name@
Description: @description@
Version: @PROJECT_VERSION@
Requires: @REQUIRES@
Cflags: -std=c++20 -I${prefix}/include/troupe @CFLAGS@
Libs: -L${libdir} @LIBRARIES@ @MORE@
]])
  install(FILES ${_file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libraries)
endfunction()
if(TARGET troupe_wire)
  troupe_pkg_config(wire "The transport of Troupe" LIBRARIES wire REQUIRES libzmq)
endif()
if(TARGET troupe_env)
  troupe_pkg_config(caster "Pictures of MuJoCo scenes by a ray caster" LIBRARIES caster REQUIRES libhwy
    VARIABLES "mujoco_libraries=${MuJoCo_LIBRARIES}" "mujoco_include=${MuJoCo_INCLUDE_DIR}"
    MORE -L\${mujoco_libraries} -l:libmujoco.so.3.17.0 -Wl,-rpath,\${mujoco_libraries} -ldl CFLAGS -I\${mujoco_include})
  troupe_pkg_config(env "Environments and pools of them" LIBRARIES env remote_protocol REQUIRES troupe-caster troupe-wire libarchive protobuf MORE -ldl)
endif()
if(TARGET troupe_replay)
  troupe_pkg_config(replay "Experience replay: tables, shards, clients" LIBRARIES replay replay_protocol
    REQUIRES troupe-wire libzstd liblz4 libxxhash protobuf)
endif()
if(TARGET troupe_learner)
  set(_gomp -lgomp)
  if(TARGET LibTorch::gomp)
    get_target_property(_file LibTorch::gomp IMPORTED_LOCATION)
    cmake_path(GET _file FILENAME _file)
    set(_gomp -l:${_file})
  endif()
  # After the system's headers: a wheel's have other versions of some of them.
  troupe_pkg_config(collectives "Communicators between ranks" LIBRARIES collectives REQUIRES openssl
    VARIABLES "torch=${LibTorch_FOLDER}"
    MORE -Wl,-rpath,\${libdir} -L\${torch}/lib -ltorch_cpu -lc10 ${_gomp} -Wl,-rpath,\${torch}/lib -Wl,--allow-shlib-undefined -ldl
    CFLAGS -idirafter \${torch}/include -idirafter \${torch}/include/torch/csrc/api/include
      -DUSE_DISTRIBUTED -DUSE_C10D_GLOO -DUSE_RPC -DUSE_TENSORPIPE)
  troupe_pkg_config(learner "Replicas, strategies and parameter servers" LIBRARIES learner learner_protocol
    REQUIRES troupe-collectives troupe-wire protobuf)
  troupe_pkg_config(agents "Agents and their parts" LIBRARIES agents agents_protocol REQUIRES troupe-learner troupe-replay troupe-env)
  troupe_pkg_config(workloads "Classifiers and GANs" LIBRARIES workloads REQUIRES troupe-learner troupe-replay)
  troupe_pkg_config(data "Data sets and loaders" LIBRARIES data
    REQUIRES troupe-learner troupe-env troupe-replay libturbojpeg libarchive hdf5 netcdf libpng zlib)
endif()
if(TARGET troupe_actors)
  troupe_pkg_config(actors "The actors of a run" LIBRARIES actors actors_protocol placer objects
    REQUIRES troupe-agents libcurl libxml-2.0 MORE -lcaf_io -lcaf_core)
endif()
if(TARGET troupe_program)
  troupe_pkg_config(experiments "Experiments, and the program troupe as a library"
    LIBRARIES program cluster dashboard play serving web operating comparison exporting launchers experiments_core experiments_protocol transparent_settings
    REQUIRES troupe-actors troupe-data troupe-workloads libpng libturbojpeg yaml-cpp prometheus-cpp-core)
endif()
