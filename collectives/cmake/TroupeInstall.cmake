# Installs troupe::learner and troupe::collectives, and what they need of env/, with headers and a package file (component
# "libraries"): a user's project needs LibTorch, ZeroMQ, Protobuf and nlohmann's JSON, and no other part of Troupe.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/Troupe)
install(TARGETS troupe_collectives troupe_learner troupe_learner_protocol troupe_wire EXPORT TroupeTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries)
install(EXPORT TroupeTargets NAMESPACE troupe:: DESTINATION ${_package} COMPONENT libraries)
foreach(_folder IN ITEMS collectives learner env/wire)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${_folder} DESTINATION include/troupe/${_folder}/.. COMPONENT libraries
    FILES_MATCHING PATTERN "*.hpp" PATTERN workloads EXCLUDE PATTERN data EXCLUDE PATTERN transparent EXCLUDE PATTERN gloo_declarations EXCLUDE)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/env/split_mix.hpp ${PROJECT_SOURCE_DIR}/env/whole_file.hpp
  DESTINATION include/troupe/env COMPONENT libraries)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/FindLibTorch.cmake ${CMAKE_CURRENT_LIST_DIR}/TroupeConfig.cmake
  DESTINATION ${_package} COMPONENT libraries)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TroupeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TroupeConfigVersion.cmake DESTINATION ${_package} COMPONENT libraries)
foreach(_module IN ITEMS troupe_nccl troupe_mpi troupe_cuda_graph) # loaded when they are asked for
  if(TARGET ${_module})
    install(TARGETS ${_module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries)
  endif()
endforeach()
