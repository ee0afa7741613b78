# SPDX-License-Identifier: LicenseRef-Undeclared
# Cross-builds for arm64 with Debian's crossbuild-essential-arm64 and the :arm64 packages of the libraries:
# cmake --preset package --toolchain cmake/arm64.cmake. deploy/release/build does it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# What the build runs of its own: the manual and the completions come from the program's tables.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
