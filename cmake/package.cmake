# SPDX-License-Identifier: LicenseRef-Undeclared
# The files of the .deb besides the program, and its settings for CPack. `cmake --preset package -D
# SITEMAPD_PACKAGE_MAINTAINER="Name <mail>"`, then `cmake --build --preset package --target package`;
# tests/package/run does it in Debian 12 and 13.
option(SITEMAPD_PACKAGE "Make a package" OFF)
set(SITEMAPD_PACKAGE_MAINTAINER "" CACHE STRING
  "Contact for the package, Name <mail>; empty: from DEBFULLNAME and DEBEMAIL")

# Every setting in it is a comment, so that an upgrade may change a default and asks only those who changed
# something.
install(FILES config/sitemapd.conf DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/sitemapd)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/logrotate/sitemapd
  DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/logrotate.d)
file(GLOB units ${PROJECT_SOURCE_DIR}/deploy/systemd/*.service ${PROJECT_SOURCE_DIR}/deploy/systemd/*.socket)
install(FILES ${units} DESTINATION lib/systemd/system)
# The documents lie as they do in the source, with what they refer to, so that their links hold. A
# component, for the test of that; a package takes all of them. (tests/documents_test.py)
file(GLOB documents ${PROJECT_SOURCE_DIR}/docs/*.md ${PROJECT_SOURCE_DIR}/docs/*.svg ${PROJECT_SOURCE_DIR}/docs/*.png)
install(FILES README.md CHANGELOG.md ARCHITECTURE.md STYLE.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
install(FILES ${documents} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT documents)
install(FILES config/sitemapd.conf DESTINATION ${CMAKE_INSTALL_DOCDIR}/config COMPONENT documents)
install(DIRECTORY deploy/buckets deploy/crawlers deploy/proxies deploy/prometheus deploy/grafana deploy/logrotate
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/deploy USE_SOURCE_PERMISSIONS COMPONENT documents)

if(NOT SITEMAPD_PACKAGE)
  return()
endif()

set(maintainer "${SITEMAPD_PACKAGE_MAINTAINER}")
if(NOT maintainer AND NOT "$ENV{DEBEMAIL}" STREQUAL "")
  set(maintainer "$ENV{DEBEMAIL}")
  if(NOT maintainer MATCHES "<")
    set(maintainer "$ENV{DEBFULLNAME} <${maintainer}>")
  endif()
endif()
if(NOT maintainer MATCHES "^[^<>,\n]*[^<>, \n] <[^<>@ \n]+@[^<>@ \n]+>$")
  message(FATAL_ERROR "A package needs somebody who is asked about it, as Name <mail>, not \"${maintainer}\":\n"
    "  cmake --preset package -D SITEMAPD_PACKAGE_MAINTAINER=\"Your Name <you@example.com>\"")
endif()

if(NOT EXISTS ${PROJECT_SOURCE_DIR}/LICENSE)
  message(WARNING "No licence is declared (deploy/release/licence does it): the package says that nobody but its owner may pass it on")
endif()
set(copyright ${PROJECT_BINARY_DIR}/package/copyright)
add_custom_command(OUTPUT ${copyright}
  COMMAND ${CMAKE_COMMAND} -E env EMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}
    sh -c "\"$@\" >\"$0\"" ${copyright} ${PROJECT_SOURCE_DIR}/deploy/debian/copyright $<TARGET_FILE:sitemapd> "${maintainer}"
  DEPENDS sitemapd deploy/debian/copyright deploy/lib/linked
  VERBATIM)
add_custom_target(package_copyright ALL DEPENDS ${copyright})
install(FILES ${copyright} DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sitemapd)
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_DEB_COMPONENT_INSTALL OFF)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Sitemap index server")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_SET_DESTDIR ON) # /etc is outside of the prefix
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# Packages of one version for two releases of Debian have two names, and the newer release's is the newer package.
file(STRINGS /etc/os-release debian REGEX "^VERSION_ID=")
string(REGEX REPLACE "[^0-9.]" "" debian "${debian}")
set(CPACK_DEBIAN_PACKAGE_RELEASE "1+deb${debian}")
set(CPACK_DEBIAN_PACKAGE_SECTION web)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
  "Keeps a catalogue of a site's sitemap files and serves crawlers a sitemap
index of them that is always valid, always fresh, and costs almost nothing to
fetch again: gzip ready in memory, strong ETags, robots.txt, a REST API and a
command line, folders that are watched.")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser, procps") # the unit reloads by kill
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates") # what doctor and --server trust
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${PROJECT_SOURCE_DIR}/deploy/debian/postinst
  ${PROJECT_SOURCE_DIR}/deploy/debian/prerm
  ${PROJECT_SOURCE_DIR}/deploy/debian/postrm
  ${PROJECT_SOURCE_DIR}/deploy/debian/conffiles)
include(CPack)
