# SPDX-License-Identifier: MIT
#
# How drivers are compiled and linked, in one place: softndk_add_driver(), and the flags that
# softndk-cc and the pkg-config file give, too. A part of the build of softndk and of the installed
# package; it needs the target softndk::softndk.

# -fms-extensions -fshort-wchar: what the sources of drivers rely on. The warnings that are off are
# on by default and speak of what is right under Windows: 'tags', functions that are named as the C
# library's (wait, logf), #pragma alloc_text. Pointers that do not fit are a warning of Windows'
# compiler, and an error of newer ones here.
set(softndk_driver_compile_options
    -fms-extensions
    -fshort-wchar
    -Wno-multichar
    -Wno-unknown-pragmas
    -Wno-unknown-warning-option
    -Wno-microsoft
    -Wno-builtin-declaration-mismatch
    -Wno-incompatible-library-redeclaration
    -Wno-error=incompatible-pointer-types
    -Wno-error=int-conversion)
# -Bsymbolic: a driver's own wait() is meant when it calls wait(), whatever the process has.
set(softndk_driver_link_options -Wl,-Bsymbolic)

# softndk_add_driver(<name> <source>...)
#
# A driver <name>.so for softndk-run, from C and C++ sources, against the headers and the library.
# Its standards are C11 and C++17 with the compiler's extensions, unless CMAKE_C_STANDARD or
# CMAKE_CXX_STANDARD says otherwise. Names that nobody defines are errors of the link, but for
# sanitizers with clang, whose runtime is there only when the driver is loaded.
function(softndk_add_driver name)
    if(ARGC LESS 2)
        message(FATAL_ERROR "softndk_add_driver(${name}): no sources")
    endif()
    add_library(${name} MODULE ${ARGN})
    set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so"
        POSITION_INDEPENDENT_CODE ON)
    foreach(language C CXX)
        set_target_properties(${name} PROPERTIES ${language}_EXTENSIONS ON)
    endforeach()
    if(NOT CMAKE_C_STANDARD)
        set_target_properties(${name} PROPERTIES C_STANDARD 11)
    endif()
    if(NOT CMAKE_CXX_STANDARD)
        set_target_properties(${name} PROPERTIES CXX_STANDARD 17)
    endif()
    target_compile_options(${name} PRIVATE ${softndk_driver_compile_options})
    target_link_options(${name} PRIVATE ${softndk_driver_link_options})
    target_link_libraries(${name} PRIVATE softndk::softndk)

    set(compiler "${CMAKE_C_COMPILER}")
    set(id "${CMAKE_C_COMPILER_ID}")
    if(NOT compiler)
        set(compiler "${CMAKE_CXX_COMPILER}")
        set(id "${CMAKE_CXX_COMPILER_ID}")
    endif()
    string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
    string(CONCAT flags "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS} ${CMAKE_C_FLAGS_${type}} "
        "${CMAKE_CXX_FLAGS_${type}}")
    if(NOT id MATCHES "Clang" OR NOT "${flags} ${softndk_driver_sanitized}" MATCHES "-fsanitize=")
        target_link_options(${name} PRIVATE LINKER:-z,defs)
    elseif(flags MATCHES "-fsanitize=")
        # The runtime as a library of its own, which softndk-run finds and loads first.
        execute_process(COMMAND ${compiler} -print-resource-dir
            OUTPUT_VARIABLE resources OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
        target_link_options(${name} PRIVATE -shared-libsan
            "LINKER:-rpath,${resources}/lib/linux")
    endif()
endfunction()
