/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* lastmod: what is stored is stored the same again, and is an XSD date wherever it renders. */
#include "tests/fuzz/require.h"

#include "server/rules/lastmod.h"

#define NOW_2026 1767225600

static void require_shape(const struct lastmod *m)
{
    size_t len = strlen(m->text);

    REQUIRE(len == 4 || len == 7 || len == 10 || (len >= 20 && len <= LASTMOD_MAX_CHARS));
    REQUIRE(m->renders == (len >= 10) && m->renders == lastmod_renders(m->text));
    REQUIRE(len < 20 || (m->text[10] == 'T' && m->text[16] == ':'));
    for (size_t i = 0; i < len; i++)
        REQUIRE(strchr("0123456789-:+.TZ", m->text[i]) != NULL);
}

static void require_idempotent(const struct lastmod *m, rule_set remarks)
{
    struct lastmod again;
    rule_set remarks_again = 0;

    REQUIRE(lastmod_parse(m->text, strlen(m->text), INT64_MAX, &again, &remarks_again) == RULE_OK);
    REQUIRE(strcmp(again.text, m->text) == 0 && again.unix_seconds == m->unix_seconds);
    REQUIRE(remarks_again == remarks && lastmod_remarks(m->text) == remarks);
}

/* The instant survives being written in UTC, but for the offset that leads into year 0 or 10000. */
static void require_instant(const struct lastmod *m)
{
    struct lastmod again;
    char utc[21];

    if (m->unix_seconds < -62135596800 || m->unix_seconds > 253402300799)
        return;
    lastmod_format_utc(m->unix_seconds, utc);
    REQUIRE(lastmod_parse(utc, strlen(utc), INT64_MAX, &again, NULL) == RULE_OK);
    REQUIRE(again.unix_seconds == m->unix_seconds && strcmp(again.text, utc) == 0);
}

/* Only the zone is missing: with one it is a date. */
static void require_zone_missing(const char *text, size_t len)
{
    char *zoned = copy_text((const uint8_t *)text, len);
    struct lastmod m;

    zoned[len] = 'Z';
    REQUIRE(lastmod_parse(zoned, len + 1, INT64_MAX, &m, NULL) == RULE_OK);
    free(zoned);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct lastmod m, now;
    rule_set remarks = 0;
    enum rule_code code = lastmod_parse(text, size, INT64_MAX, &m, &remarks);
    enum rule_code code_now = lastmod_parse(text, size, NOW_2026, &now, NULL);

    REQUIRE(code != RULE_LASTMOD_FUTURE);
    if (code == RULE_LASTMOD_NO_ZONE)
        require_zone_missing(text, size);
    if (code != RULE_OK) {
        REQUIRE(code_now == code && remarks == 0);
        return 0;
    }
    REQUIRE((code_now == RULE_LASTMOD_FUTURE) ==
            (m.unix_seconds > NOW_2026 + LASTMOD_FUTURE_SECONDS));
    require_shape(&m);
    require_idempotent(&m, remarks);
    require_instant(&m);
    return 0;
}
