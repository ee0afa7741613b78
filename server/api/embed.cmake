# SPDX-License-Identifier: LicenseRef-Undeclared
# Turns files into a C table, struct embedded_file NAME_files[] (handlers.h):
# cmake -DNAME=… -DINPUTS=FILE,FILE… -DOUTPUT=… -DVERSION=… -P embed.cmake
# The version is put in, so that a document names the build that it describes.
cmake_minimum_required(VERSION 3.25)
string(REPLACE "," ";" inputs "${INPUTS}")
set(arrays "")
set(rows "")
set(number 0)
foreach(input IN LISTS inputs)
  get_filename_component(file "${input}" NAME)
  file(READ "${input}" text)
  string(REPLACE "{version}" "${VERSION}" text "${text}")
  string(SHA256 hash "${text}")
  string(SUBSTRING "${hash}" 0 32 hash)
  file(WRITE "${OUTPUT}.in" "${text}")
  file(READ "${OUTPUT}.in" hex HEX)
  file(REMOVE "${OUTPUT}.in")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
         bytes "${bytes}")
  string(APPEND arrays "static const unsigned char file_${number}[] = {\n${bytes}\n};\n")
  string(APPEND rows "    {\"${file}\", file_${number}, sizeof file_${number}, \"\\\"${hash}\\\"\"},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}"
     "#include \"server/api/handlers/handlers.h\"\n\n${arrays}\n"
     "const struct embedded_file ${NAME}_files[] = {\n${rows}};\n"
     "const size_t ${NAME}_files_count = ${number};\n")
