# SPDX-License-Identifier: MIT
#
# The programs of `make bench`: bench/floor, plain sockets, and bench/fabric, the same work on
# libfabric, which is left out where that is not installed. Into build/bin/bench; not installed.

file(GLOB softndk_floor_files CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/bench/common/*.c"
    "${CMAKE_SOURCE_DIR}/bench/floor/*.c")
add_executable(floor ${softndk_floor_files})
set_target_properties(floor PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/bench")
# From the library it takes the CRC of src/iwarp, so that both compute it the same way.
target_compile_definitions(floor PRIVATE _GNU_SOURCE)
target_include_directories(floor PRIVATE "${CMAKE_SOURCE_DIR}/bench")
target_link_libraries(floor PRIVATE softndk_flags softndk_core)

if(NOT SOFTNDK_SANITIZE AND NOT SOFTNDK_FUZZ)
    softndk_find_library(FABRIC libfabric rdma/fabric.h fabric)
endif()
file(GLOB softndk_fabric_files CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/bench/common/*.c"
    "${CMAKE_SOURCE_DIR}/bench/fabric/*.c")
if(FABRIC_FOUND)
    add_executable(fabric ${softndk_fabric_files})
    set_target_properties(fabric PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/bench")
    target_compile_definitions(fabric PRIVATE _GNU_SOURCE)
    target_include_directories(fabric PRIVATE "${CMAKE_SOURCE_DIR}/bench")
    target_include_directories(fabric SYSTEM PRIVATE ${FABRIC_INCLUDE_DIRS})
    target_link_libraries(fabric PRIVATE softndk_flags ${FABRIC_LINK})
endif()
