# SPDX-License-Identifier: LicenseRef-Undeclared
# Sets SITEMAPD_COMMIT to the first 12 digits of the commit of this source; "" if that is unknown.
# In the source of a release, git archive has written it to deploy/release/commit; in a clone, git reports it.
file(STRINGS ${CMAKE_SOURCE_DIR}/deploy/release/commit SITEMAPD_COMMIT LIMIT_COUNT 1)
if(SITEMAPD_COMMIT MATCHES "Format")
  execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} rev-parse HEAD OUTPUT_VARIABLE SITEMAPD_COMMIT
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  # Configured again after each commit or checkout.
  execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} rev-parse --path-format=absolute --git-path logs/HEAD
    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(head AND EXISTS "${head}")
    set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${head}")
  endif()
endif()
if(SITEMAPD_COMMIT MATCHES "^[0-9a-f]+$")
  string(SUBSTRING ${SITEMAPD_COMMIT} 0 12 SITEMAPD_COMMIT)
else()
  set(SITEMAPD_COMMIT "")
endif()
