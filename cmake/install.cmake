# SPDX-License-Identifier: MIT
#
# What `make install` and `make deb` take, and where it goes. Nothing that is installed knows its
# prefix but for the profiles' last resort: an installation can be moved as a whole.

include(CMakePackageConfigHelpers)

file(RELATIVE_PATH softndk_pc_to_prefix
    "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" softndk_pc_to_prefix "${softndk_pc_to_prefix}")
set(softndk_pc_private_libs "${CMAKE_THREAD_LIBS_INIT}")
if(SOFTNDK_HAVE_ISAL)
    string(APPEND softndk_pc_private_libs " -lisal")
endif()
string(STRIP "${softndk_pc_private_libs}" softndk_pc_private_libs)
configure_file(softndk.pc.in softndk.pc @ONLY)

# ---- The library, its headers, the programs ------------------------------------------------------

# Each kind keeps its directory: the Windows names must not land in /usr/include itself.
foreach(kind ndk nt softndk)
    install(DIRECTORY "include/${kind}/"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/softndk/${kind}"
        FILES_MATCHING PATTERN "*.h")
    list(APPEND softndk_installed_includes "${CMAKE_INSTALL_INCLUDEDIR}/softndk/${kind}")
endforeach()
install(DIRECTORY "${softndk_spellings_dir}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/softndk")
list(APPEND softndk_installed_includes "${CMAKE_INSTALL_INCLUDEDIR}/softndk/case")

install(TARGETS softndk EXPORT softndk-targets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    INCLUDES DESTINATION ${softndk_installed_includes})
install(TARGETS softndk_core ${softndk_tools} ndkconform
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES ${softndk_profiles} DESTINATION "${CMAKE_INSTALL_DATADIR}/softndk/profiles")
install(FILES "${CMAKE_BINARY_DIR}/softndk.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# The compiler for drivers, once more, finding what it needs from where it stands.
file(RELATIVE_PATH softndk_bin_to_include
    "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}/softndk")
set(softndk_cc_include "\"$here/${softndk_bin_to_include}\"")
set(softndk_cc_case "\"$include/case\"")
set(softndk_cc_lib "\"$here/${softndk_bin_to_lib}\"")
configure_file(tools/softndk-cc.in installed/softndk-cc @ONLY)
install(PROGRAMS "${CMAKE_BINARY_DIR}/installed/softndk-cc"
    DESTINATION "${CMAKE_INSTALL_BINDIR}")

# ---- For CMake -----------------------------------------------------------------------------------

set(softndk_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/softndk")
install(EXPORT softndk-targets NAMESPACE softndk:: DESTINATION "${softndk_cmake_dir}")
configure_package_config_file(cmake/softndk-config.cmake.in
    "${CMAKE_BINARY_DIR}/softndk-config.cmake" INSTALL_DESTINATION "${softndk_cmake_dir}"
    NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/softndk-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/softndk-config.cmake"
    "${CMAKE_BINARY_DIR}/softndk-config-version.cmake" cmake/softndk-driver.cmake
    DESTINATION "${softndk_cmake_dir}")

# ---- Documents -----------------------------------------------------------------------------------

file(GLOB softndk_documents CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/docs/*.md")
install(FILES README.md CHANGELOG.md LICENSE ${softndk_documents}
    DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY examples DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# docs/man/<name>.<section>.scd, made where scdoc is.
find_program(SCDOC scdoc)
mark_as_advanced(SCDOC)
file(GLOB softndk_man_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/docs/man/*.scd")
if(SCDOC)
    set(softndk_man_pages "")
    foreach(file IN LISTS softndk_man_sources)
        get_filename_component(name "${file}" NAME)
        string(REGEX REPLACE "\\.scd$" "" name "${name}")
        string(REGEX REPLACE "^.*\\." "" section "${name}")
        set(page "${CMAKE_BINARY_DIR}/share/man/man${section}/${name}")
        add_custom_command(OUTPUT "${page}"
            COMMAND "${CMAKE_COMMAND}" -E make_directory
                "${CMAKE_BINARY_DIR}/share/man/man${section}"
            COMMAND "${SCDOC}" < "${file}" > "${page}.new"
            COMMAND "${CMAKE_COMMAND}" -E rename "${page}.new" "${page}"
            DEPENDS "${file}" VERBATIM)
        list(APPEND softndk_man_pages "${page}")
        install(FILES "${page}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
    endforeach()
    add_custom_target(man ALL DEPENDS ${softndk_man_pages})
    add_dependencies(programs man)
else()
    message(STATUS "Manual pages: not built, scdoc not found")
endif()

# ---- Packages: make deb --------------------------------------------------------------------------

# One package: whoever runs drivers compiles them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME softndk)
set(CPACK_PACKAGE_VENDOR softndk)
set(CPACK_PACKAGE_CONTACT "the softndk developers <softndk@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE "${CMAKE_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES OFF)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gcc | clang, binutils")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gdb, pkg-config, cmake")
# Dependencies by what the programs need, where the tools for that are; else the C library alone.
find_program(SOFTNDK_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(SOFTNDK_SHLIBDEPS)
if(SOFTNDK_SHLIBDEPS)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_BINARY_DIR}/lib")
else()
    set(CPACK_DEBIAN_PACKAGE_DEPENDS libc6)
endif()
include(CPack)
