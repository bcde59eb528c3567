# SPDX-License-Identifier: MIT
#
# How drivers are compiled and linked, in one place: softndk_add_driver(), and the flags that
# softndk-cc and the pkg-config file give, too. A part of the build of softndk and of the installed
# package; it needs the target softndk::softndk, and softndk_cc, the path of softndk-cc.

cmake_policy(VERSION 3.20) # DEPFILE; within this file and the function, whatever the project has

# -fms-extensions -fshort-wchar: what the sources of drivers rely on. The warnings that are off are
# on by default and speak of what is right under Windows: 'tags', functions that are named as the C
# library's (wait, logf), #pragma alloc_text. Pointers that do not fit are a warning of Windows'
# compiler, and an error of newer ones here.
set(softndk_driver_compile_options
    -fms-extensions
    -fshort-wchar
    -Wno-multichar
    -Wno-unknown-pragmas
    -Wno-builtin-declaration-mismatch
    -Wno-error=incompatible-pointer-types
    -Wno-error=int-conversion)
# clang's alone: gcc is silent about an unknown -Wno-, until it has something else to say.
set(softndk_driver_clang_options
    -Wno-unknown-warning-option
    -Wno-microsoft
    -Wno-incompatible-library-redeclaration)
# -Bsymbolic: a driver's own wait() is meant when it calls wait(), whatever the process has.
set(softndk_driver_link_options -Wl,-Bsymbolic)

# For the function, which may be called where the variables of this file are not seen.
foreach(variable softndk_driver_compile_options softndk_driver_clang_options
        softndk_driver_link_options softndk_cc)
    set_property(GLOBAL PROPERTY ${variable} "${${variable}}")
endforeach()

# softndk_driver_headers(<name>): before <name> is compiled, headers that lead to those which its files
# include in other letter case. Made again when a file or a directory that was read has changed.
function(softndk_driver_headers name)
    get_property(softndk_cc GLOBAL PROPERTY softndk_cc)
    set(map "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/case")
    set(directories "$<TARGET_PROPERTY:${name},INCLUDE_DIRECTORIES>")
    add_custom_command(OUTPUT "${map}.stamp"
        COMMAND "${softndk_cc}" --case-map "${map}" --depfile "${map}.d"
            --depfile-target "${map}.stamp"
            "$<$<BOOL:${directories}>:-I$<JOIN:${directories},;-I>>"
            "$<FILTER:$<TARGET_PROPERTY:${name},SOURCES>,INCLUDE,[.][cC]>"
        COMMAND "${CMAKE_COMMAND}" -E touch "${map}.stamp"
        DEPENDS "${softndk_cc}" DEPFILE "${map}.d"
        WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
        COMMENT "Looking for headers of ${name} in other letter case"
        VERBATIM COMMAND_EXPAND_LISTS)
    add_custom_target(${name}_headers DEPENDS "${map}.stamp")
    add_dependencies(${name} ${name}_headers)
    target_compile_options(${name} PRIVATE "SHELL:-iquote \"${map}/quoted/1/2/3/4\""
        "SHELL:-I \"${map}/angled/1/2/3/4\"")
endfunction()

# softndk_add_driver(<name> <source>...)
#
# A driver <name>.so for softndk-run, from C and C++ sources, against the headers and the library.
# Its standards are C11 and C++17 with the compiler's extensions, unless CMAKE_C_STANDARD or
# CMAKE_CXX_STANDARD says otherwise. Names that nobody defines are errors of the link, but for
# sanitizers with clang, whose runtime is there only when the driver is loaded. Headers, the driver's
# own and the kit's, are found in any letter case and with backslashes, as softndk-cc finds them.
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
    get_property(compile_options GLOBAL PROPERTY softndk_driver_compile_options)
    get_property(clang_options GLOBAL PROPERTY softndk_driver_clang_options)
    get_property(link_options GLOBAL PROPERTY softndk_driver_link_options)
    target_compile_options(${name} PRIVATE ${compile_options}
        "$<$<COMPILE_LANG_AND_ID:C,Clang,AppleClang>:${clang_options}>"
        "$<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:${clang_options}>")
    target_link_options(${name} PRIVATE ${link_options})
    target_link_libraries(${name} PRIVATE softndk::softndk)
    softndk_driver_headers(${name})

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
