# What the .deb has beside the program, and CPack's settings for it. `cmake --preset package -D
# SITEMAPD_PACKAGE_MAINTAINER="Name <mail>"`, then `cmake --build --preset package --target package`;
# tests/package/run does it in Debian 12 and 13.
option(SITEMAPD_PACKAGE "Make a package" OFF)
set(SITEMAPD_PACKAGE_MAINTAINER "" CACHE STRING
  "Who is asked about the package, as Name <mail>; empty: as DEBFULLNAME and DEBEMAIL say")
set(SITEMAPD_PACKAGE_LICENCE "" CACHE STRING
  "The licence that the owner has given, as its SPDX identifier; empty: none is declared")

# Every setting in it is a comment, so that an upgrade may change a default and asks only those who changed
# something.
install(FILES config/sitemapd.conf DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/sitemapd)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/logrotate/sitemapd
  DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/logrotate.d)
file(GLOB units ${PROJECT_SOURCE_DIR}/deploy/systemd/*.service ${PROJECT_SOURCE_DIR}/deploy/systemd/*.socket)
install(FILES ${units} DESTINATION lib/systemd/system)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/debian/static-user.conf DESTINATION lib/systemd/system/sitemapd.service.d)
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

# LICENSE or COPYING at the top goes with it whole, once the owner has put one there.
file(GLOB licence_files LICEN[CS]E* COPYING*)
install(FILES ${licence_files} DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(SITEMAPD_PACKAGE_LICENCE)
  set(licence "Licence: ${SITEMAPD_PACKAGE_LICENCE}")
else()
  set(licence "Licence: none is declared. All rights are the owner's; ask before you pass this package on.")
  message(WARNING "SITEMAPD_PACKAGE_LICENCE is not set: the package says that no licence is declared, "
    "so nobody but its owner may pass it on")
endif()
file(WRITE ${PROJECT_BINARY_DIR}/package/copyright "sitemapd\n${licence}\nPackage made by: ${maintainer}\n")
install(FILES ${PROJECT_BINARY_DIR}/package/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})

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
