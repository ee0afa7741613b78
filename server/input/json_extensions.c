/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads the extensions of a page URL from JSON into its fragment (rules/page/fragment.h), which
 * checks them. The first fault ends it. */
#include "server/input/json_extensions.h"

#include <stdio.h>
#include <string.h>

/* Records a fault, which is reported after the loc is checked; no further extension is read. */
static void fault(const struct json_page *f, enum rule_code code)
{
    f->raw->extension_fault = code;
}

static void wrong_type(const struct json_page *f, const char *field, const char *must)
{
    struct fragment *fragment = f->validated->fragment;
    enum rule_code code = fragment_fault(fragment, RULE_FIELD_TYPE, field);
    snprintf(fragment->why, sizeof fragment->why, "%s %s", fragment->field, must);
    fault(f, code);
}

static void read_images(const struct json_page *f, json_t *value)
{
    char field[48];
    if (!json_is_array(value) && !json_is_null(value))
        wrong_type(f, "images", "must be an array of URLs, or null");
    for (size_t i = 0; i < json_array_size(value) && f->raw->extension_fault == RULE_OK; i++) {
        const json_t *image = json_array_get(value, i);
        snprintf(field, sizeof field, "images[%zu]", i);
        if (!json_is_string(image))
            wrong_type(f, field, "must be a string: the URL of the image");
        else
            fault(f, fragment_add_image(f->validated->fragment, json_string_value(image),
                                        json_string_length(image)));
    }
}

static void read_alternates(const struct json_page *f, json_t *value)
{
    const char *language;
    json_t *url;
    char field[96];
    if (!json_is_object(value) && !json_is_null(value))
        wrong_type(f, "alternates", "must be an object of languages and URLs, or null");
    json_object_foreach(value, language, url)
    {
        if (f->raw->extension_fault != RULE_OK)
            return;
        snprintf(field, sizeof field, "alternates.%s", language);
        if (!json_is_string(url))
            wrong_type(f, field, "must be a string");
        else
            fault(f, fragment_add_alternate(f->validated->fragment, language, strlen(language),
                                            json_string_value(url), json_string_length(url)));
    }
}

static void read_news_members(const struct json_page *f, json_t *value, bool publication)
{
    static const struct {
        const char *name;
        bool of_publication;
        enum news_field field;
    } members[] = {{"name", true, NEWS_NAME},
                   {"language", true, NEWS_LANGUAGE},
                   {"publication_date", false, NEWS_DATE},
                   {"title", false, NEWS_TITLE}};
    const char *name;
    json_t *member;
    char field[96];
    json_object_foreach(value, name, member)
    {
        size_t i = 0, count = sizeof members / sizeof members[0];
        if (f->raw->extension_fault != RULE_OK)
            return;
        snprintf(field, sizeof field, "news.%s%s", publication ? "publication." : "", name);
        while (i < count &&
               (members[i].of_publication != publication || strcmp(members[i].name, name) != 0))
            i++;
        if (!publication && strcmp(name, "publication") == 0 && json_is_object(member))
            read_news_members(f, member, true);
        else if (i < count && json_is_string(member))
            fault(f,
                  fragment_add_news(f->validated->fragment, members[i].field,
                                    json_string_value(member), json_string_length(member), f->now));
        else if (i < count || strcmp(field, "news.publication") == 0)
            wrong_type(f, field, i < count ? "must be a string" : "must be an object");
        else
            fault(f, fragment_fault(f->validated->fragment, RULE_FIELD_UNKNOWN, field));
    }
}

static void read_news(const struct json_page *f, json_t *value)
{
    if (json_is_null(value))
        return;
    if (!json_is_object(value)) {
        wrong_type(f, "news", "must be an object, or null");
        return;
    }
    fragment_begin_news(f->validated->fragment);
    read_news_members(f, value, false);
}

static bool is_integral(double number)
{
    return number >= 0 && number < 1e15 && !(number > (double)(int64_t)number);
}

/* Converts the value of a video's field to the text of its XML element, in `text`. False: another
 * type. */
static bool video_text(const json_t *value, enum video_kind kind, struct str *text)
{
    str_clear(text);
    switch (kind) {
    case VIDEO_WHOLE:
    case VIDEO_DECIMAL:
        if (json_is_integer(value))
            str_append_format(text, "%lld", (long long)json_integer_value(value));
        else if (json_is_real(value))
            str_append_format(text, "%.6f", json_real_value(value));
        return json_is_number(value) && (kind == VIDEO_DECIMAL || json_is_integer(value) ||
                                         is_integral(json_real_value(value)));
    case VIDEO_YES_NO:
        str_append_text(text, json_is_true(value) ? "yes" : "no");
        return json_is_boolean(value);
    default:
        str_append(text, json_string_value(value), json_string_length(value));
        return json_is_string(value);
    }
}

static void add_video(const struct json_page *f, enum video_field field, const char *attribute,
                      const struct str *text)
{
    f->validated->failed = f->validated->failed || text->failed;
    fault(f,
          fragment_add_video(f->validated->fragment, field, attribute, str_text(text), text->len));
}

/* A string without a NUL. */
static bool is_whole_text(const json_t *value)
{
    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value);
}

/* {"allow": ["AT", "DE"]}, or deny. */
static bool read_video_relation(const struct json_page *f, enum video_field field, json_t *value,
                                struct str *text)
{
    const char *relation = json_object_iter_key(json_object_iter(value));
    json_t *words = json_object_iter_value(json_object_iter(value)), *word;
    size_t i;
    str_clear(text);
    if (json_object_size(value) != 1 || !json_is_array(words) || json_array_size(words) == 0)
        return false;
    json_array_foreach(words, i, word)
    {
        const char *given = json_string_value(word);
        if (!is_whole_text(word) || *given == '\0' || strpbrk(given, " ,\t\r\n") != NULL)
            return false;
        str_append_format(text, "%s%s", i > 0 ? " " : "", given);
    }
    add_video(f, field, relation, text);
    return true;
}

/* {"name": "…", "info": "https://…"} */
static bool read_video_uploader(const struct json_page *f, enum video_field field, json_t *value,
                                struct str *text)
{
    const json_t *info = json_object_get(value, "info");
    if (json_object_size(value) != (info != NULL ? 2 : 1) ||
        (info != NULL && !is_whole_text(info)) ||
        !video_text(json_object_get(value, "name"), VIDEO_NAME, text))
        return false;
    add_video(f, field, info != NULL ? json_string_value(info) : "", text);
    return true;
}

static bool read_video_texts(const struct json_page *f, enum video_field field, json_t *value,
                             struct str *text)
{
    json_t *one;
    size_t i;
    json_array_foreach(value, i, one)
    {
        if (!video_text(one, VIDEO_TEXT, text))
            return false;
        if (f->raw->extension_fault == RULE_OK)
            add_video(f, field, "", text);
    }
    return json_is_array(value);
}

static void read_video_field(const struct json_page *f, enum video_field field, json_t *value,
                             const char *name, struct str *text)
{
    static const char *const must[] = {
        [VIDEO_URL] = "must be a string",
        [VIDEO_TEXT] = "must be a string",
        [VIDEO_DATE] = "must be a string",
        [VIDEO_WHOLE] = "must be a whole number",
        [VIDEO_DECIMAL] = "must be a number",
        [VIDEO_YES_NO] = "must be true or false",
        [VIDEO_TEXTS] = "must be an array of strings",
        [VIDEO_RELATION] = "must be an object of one array of words, named allow or deny",
        [VIDEO_NAME] = "must be an object of a name and, optionally, the URL info",
    };
    enum video_kind kind = video_fields[field].kind;
    bool fits;
    if (kind == VIDEO_RELATION)
        fits = read_video_relation(f, field, value, text);
    else if (kind == VIDEO_NAME)
        fits = read_video_uploader(f, field, value, text);
    else if (kind == VIDEO_TEXTS)
        fits = read_video_texts(f, field, value, text);
    else if ((fits = video_text(value, kind, text)))
        add_video(f, field, "", text);
    if (!fits)
        wrong_type(f, name, must[kind]);
}

static void read_video(const struct json_page *f, size_t number, json_t *video)
{
    struct str text = STR_INIT;
    const char *name;
    json_t *value;
    char shown[96];
    fragment_begin_video(f->validated->fragment);
    json_object_foreach(video, name, value)
    {
        enum video_field field = video_field_named(name);
        snprintf(shown, sizeof shown, "videos[%zu].%.60s", number, name);
        if (f->raw->extension_fault != RULE_OK)
            break;
        if (field < VIDEO_FIELD_COUNT && !json_is_null(value))
            read_video_field(f, field, value, shown, &text);
        else if (field == VIDEO_FIELD_COUNT && video_field_is_obsolete(name))
            fragment_drop_video_field(f->validated->fragment);
        else if (field == VIDEO_FIELD_COUNT)
            fault(f, fragment_fault(f->validated->fragment, RULE_FIELD_UNKNOWN, shown));
    }
    str_done(&text);
    if (f->raw->extension_fault == RULE_OK)
        fault(f, fragment_end_video(f->validated->fragment));
}

static void read_videos(const struct json_page *f, json_t *value)
{
    char field[48];
    if (!json_is_array(value) && !json_is_null(value))
        wrong_type(f, "videos", "must be an array of objects, or null");
    for (size_t i = 0; i < json_array_size(value) && f->raw->extension_fault == RULE_OK; i++) {
        snprintf(field, sizeof field, "videos[%zu]", i);
        if (!json_is_object(json_array_get(value, i)))
            wrong_type(f, field, "must be an object");
        else
            read_video(f, i, json_array_get(value, i));
    }
}

bool json_extension_read(const struct json_page *f, const char *name, json_t *value)
{
    static const struct {
        const char *name;
        void (*read)(const struct json_page *f, json_t *value);
    } members[] = {{"alternates", read_alternates},
                   {"images", read_images},
                   {"news", read_news},
                   {"videos", read_videos}};
    if (strcmp(name, "changefreq") == 0 || strcmp(name, "priority") == 0) {
        f->raw->remarks |= RULE_BIT(RULE_HINT_DROPPED);
        return true;
    }
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (strcmp(members[i].name, name) == 0) {
            f->raw->has_extensions = true;
            if (f->raw->extension_fault == RULE_OK)
                members[i].read(f, value);
            return true;
        }
    return false;
}
