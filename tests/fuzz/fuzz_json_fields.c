/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The small objects of the API (sites, indexes): what is read has the types that were asked for,
 * and what is refused says why, in text that a reply may hold. */
#include "tests/fuzz/require.h"

#include "server/base/str.h"
#include "server/input/json_fields.h"

static void require_filled(const struct json_field *f)
{
    if (!f->present) {
        REQUIRE(!f->required);
        return;
    }
    switch (f->type) {
    case JSON_FIELD_TEXT:
        REQUIRE(f->text != NULL && utf8_is_valid(f->text, strlen(f->text)));
        break;
    case JSON_FIELD_TEXTS:
        for (size_t i = 0; f->texts[i] != NULL; i++)
            REQUIRE(utf8_is_valid(f->texts[i], strlen(f->texts[i])));
        break;
    case JSON_FIELD_NUMBER:
    case JSON_FIELD_SECONDS:
        REQUIRE(f->number <= f->max);
        break;
    case JSON_FIELD_BOOL:
        break;
    case JSON_FIELD_SWITCH:
    case JSON_FIELD_OPTION:
        REQUIRE(f->text == NULL || !f->off);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_field fields[] = {
        {.name = "origin", .type = JSON_FIELD_TEXT, .required = size % 2 == 0},
        {.name = "cross_hosts", .type = JSON_FIELD_TEXTS},
        {.name = "max_indexes", .type = JSON_FIELD_NUMBER, .max = 500},
        {.name = "interval", .type = JSON_FIELD_SECONDS, .max = 3600},
        {.name = "robots", .type = JSON_FIELD_SWITCH},
        {.name = "frozen", .type = JSON_FIELD_BOOL},
        {.name = "prefix", .type = JSON_FIELD_OPTION},
    };
    size_t count = sizeof fields / sizeof fields[0];
    struct json_fields_error error = {"", ""};
    struct json_fields *object = NULL;
    enum json_fields_status status =
        json_fields_read((const char *)data, size, fields, count, &object, &error);

    REQUIRE((status == JSON_FIELDS_OK) == (object != NULL));
    if (status == JSON_FIELDS_OK) {
        for (size_t i = 0; i < count; i++)
            require_filled(&fields[i]);
    } else {
        REQUIRE(strlen(error.field) < sizeof error.field);
        REQUIRE(strlen(error.detail) < sizeof error.detail);
        REQUIRE(utf8_is_valid(error.field, strlen(error.field)));
    }
    json_fields_free(object);
    return 0;
}
