# SPDX-License-Identifier: LicenseRef-Undeclared
# One interface target carries every flag, so that no other file names one.
add_library(sitemapd_flags INTERFACE)
target_compile_features(sitemapd_flags INTERFACE c_std_17)
set(CMAKE_C_EXTENSIONS OFF)
# Assertions stay in every build but the release.
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELWITHDEBINFO "${CMAKE_C_FLAGS_RELWITHDEBINFO}")
target_include_directories(sitemapd_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(sitemapd_flags INTERFACE _GNU_SOURCE SITEMAPD_VERSION="${PROJECT_VERSION}")
target_compile_options(sitemapd_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wvla
  -fno-strict-aliasing -fstack-protector-strong -fno-omit-frame-pointer)
# Initialisers of unions must zero the bytes that they do not name (struct change); GCC 15 and later need this option.
include(CheckCCompilerFlag)
check_c_compiler_flag(-fzero-init-padding-bits=unions SITEMAPD_ZERO_UNIONS)
if(SITEMAPD_ZERO_UNIONS)
  target_compile_options(sitemapd_flags INTERFACE -fzero-init-padding-bits=unions)
endif()
if(SITEMAPD_WERROR)
  target_compile_options(sitemapd_flags INTERFACE -Werror)
endif()
if(SITEMAPD_SANITIZE)
  # Reports name functions and lines, which -g1 has; variables are a debugger's, of the plain build. More than -O1
  # makes the compiler take twice as long, and the tests no faster.
  string(REPLACE "-O2" "-O1" CMAKE_C_FLAGS_RELWITHDEBINFO "${CMAKE_C_FLAGS_RELWITHDEBINFO}")
  target_compile_options(sitemapd_flags INTERFACE -fsanitize=${SITEMAPD_SANITIZE} -fno-sanitize-recover=all -g1)
  target_link_options(sitemapd_flags INTERFACE -fsanitize=${SITEMAPD_SANITIZE})
endif()
if(SITEMAPD_FUZZ)
  target_compile_options(sitemapd_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(SITEMAPD_COVERAGE)
  target_compile_options(sitemapd_flags INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(sitemapd_flags INTERFACE --coverage)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_definitions(sitemapd_flags INTERFACE _FORTIFY_SOURCE=2)
  target_link_options(sitemapd_flags INTERFACE -Wl,-z,relro,-z,now)
  # A request passes a dozen small functions of several files: joined, a seventh of our own
  # instructions for a 304 is gone (docs/benchmarks.md).
  include(CheckIPOSupported)
  check_ipo_supported(RESULT SITEMAPD_IPO LANGUAGES C)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ${SITEMAPD_IPO})
endif()
