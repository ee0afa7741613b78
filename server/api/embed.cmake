# Turns a file into a C array: cmake -DINPUT=… -DOUTPUT=… -DVERSION=… -P embed.cmake
# The version is put in, so that the document names the build that it describes.
cmake_minimum_required(VERSION 3.25)
file(READ "${INPUT}" text)
string(REPLACE "{version}" "${VERSION}" text "${text}")
file(WRITE "${OUTPUT}.in" "${text}")
file(READ "${OUTPUT}.in" hex HEX)
file(REMOVE "${OUTPUT}.in")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes
       "${bytes}")
file(WRITE "${OUTPUT}"
     "#include \"server/api/handlers.h\"\n\n"
     "const unsigned char openapi_document[] = {\n${bytes}\n};\n"
     "const size_t openapi_document_len = sizeof openapi_document;\n")
