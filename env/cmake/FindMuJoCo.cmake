# MuJoCo 3.17 from its Python wheel or release archive along CMAKE_PREFIX_PATH: target MuJoCo::mujoco.
# The component "models" is the control suite's (dm_control/suite/*.xml), variable MuJoCo_SUITE_DIR, and Gym's
# (gymnasium/envs/mujoco/assets/*.xml), variable MuJoCo_GYM_DIR. MuJoCo_BUILT_WITH: a folder to look in after all others.
include(FindPackageHandleStandardArgs)
find_path(MuJoCo_INCLUDE_DIR mujoco/mujoco.h PATHS ${MuJoCo_BUILT_WITH} PATH_SUFFIXES mujoco/include include)
find_file(MuJoCo_LIBRARY libmujoco.so.3.17.0 PATHS ${MuJoCo_BUILT_WITH} PATH_SUFFIXES mujoco lib mujoco/lib)
set(_required MuJoCo_LIBRARY MuJoCo_INCLUDE_DIR)
if("models" IN_LIST MuJoCo_FIND_COMPONENTS)
  find_path(MuJoCo_SUITE_DIR cheetah.xml PATH_SUFFIXES dm_control/suite suite)
  find_path(MuJoCo_GYM_DIR half_cheetah.xml PATH_SUFFIXES gymnasium/envs/mujoco/assets assets)
  list(APPEND _required MuJoCo_SUITE_DIR MuJoCo_GYM_DIR)
endif()
if(MuJoCo_INCLUDE_DIR)
  file(STRINGS "${MuJoCo_INCLUDE_DIR}/mujoco/mujoco.h" _line REGEX "define mjVERSION_HEADER")
  string(REGEX MATCH "[0-9]+$" _number "${_line}")
  if(_number GREATER 1000000)
    math(EXPR _major "${_number} / 1000000")
    math(EXPR _minor "${_number} / 1000 % 1000")
    math(EXPR _patch "${_number} % 1000")
  else()
    math(EXPR _major "${_number} / 100")
    math(EXPR _minor "${_number} / 10 % 10")
    math(EXPR _patch "${_number} % 10")
  endif()
  set(MuJoCo_VERSION "${_major}.${_minor}.${_patch}")
endif()
find_package_handle_standard_args(MuJoCo REQUIRED_VARS ${_required} VERSION_VAR MuJoCo_VERSION
  REASON_FAILURE_MESSAGE "run experiments/packaging/install_dependencies.sh, or name a folder that holds mujoco/, dm_control/ and gymnasium/ with -DCMAKE_PREFIX_PATH=<folder>")
if(MuJoCo_FOUND AND NOT TARGET MuJoCo::mujoco)
  add_library(MuJoCo::mujoco SHARED IMPORTED GLOBAL)
  set_target_properties(MuJoCo::mujoco PROPERTIES
    IMPORTED_LOCATION "${MuJoCo_LIBRARY}" IMPORTED_SONAME libmujoco.so.3.17.0
    INTERFACE_INCLUDE_DIRECTORIES "${MuJoCo_INCLUDE_DIR}")
endif()
