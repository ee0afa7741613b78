# SPDX-License-Identifier: LicenseRef-Undeclared
# Turns the commented schema into a C string, without its comments and in single spaces, so that a
# comment can be mended without changing what a catalogue's file holds:
# cmake -DINPUT=schema.sql -DOUTPUT=schema_sql.c -P embed_sql.cmake
cmake_minimum_required(VERSION 3.25)
file(READ "${INPUT}" sql)
string(REGEX REPLACE "--[^\n]*" "" sql "${sql}")
string(REGEX REPLACE "[ \n]+" " " sql "${sql}")
string(REPLACE "( " "(" sql "${sql}")
string(REPLACE " )" ")" sql "${sql}")
string(REPLACE "\"" "\\\"" sql "${sql}")
string(STRIP "${sql}" sql)
string(REPLACE "; " ";\"\n    \"" sql "${sql}")
file(WRITE "${OUTPUT}" "#include \"db/file/schema.h\"\n\nconst char schema_sql[] =\n    \"${sql}\";\n")
