#include "server/doctor/robots_txt.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* One line, its key and value trimmed; a comment is cut off. */
struct line {
    const char *key, *value;
    size_t key_len, value_len;
};

static size_t trimmed(const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL)
        len--;
    return len;
}

/* Reads the line at `*at` and moves behind it. False at the end. */
static bool next_line(const char **at, struct line *out)
{
    const char *text = *at, *colon;
    size_t len = strcspn(text, "\n"), used;

    if (*text == '\0')
        return false;
    *at = text + len + (text[len] == '\n');
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark, as editors leave it */
        text += 3;
        len -= 3;
    }
    used = strcspn(text, "#\n");
    len = trimmed(text, used < len ? used : len);
    colon = memchr(text, ':', len);
    *out = (struct line){.key = text, .value = text};
    if (colon == NULL)
        return true;
    out->key += strspn(text, " \t");
    out->key_len = trimmed(out->key, colon > out->key ? (size_t)(colon - out->key) : 0);
    out->value = colon + 1;
    while (out->value < text + len && (*out->value == ' ' || *out->value == '\t'))
        out->value++;
    out->value_len = (size_t)(text + len - out->value);
    return true;
}

static bool has_key(const struct line *l, const char *key)
{
    return l->key_len == strlen(key) && strncasecmp(l->key, key, l->key_len) == 0;
}

bool robots_txt_matches(const char *pattern, size_t len, const char *path)
{
    bool to_end = len > 0 && pattern[len - 1] == '$';
    size_t p = 0, star = SIZE_MAX;
    const char *from = path, *s = path;

    if (to_end)
        len--;
    for (;;) {
        if (p < len && pattern[p] == '*') {
            star = ++p;
            from = s;
        } else if (p < len && *s != '\0' && pattern[p] == *s) {
            p++;
            s++;
        } else if (p == len && (!to_end || *s == '\0')) {
            return true;
        } else if (star != SIZE_MAX && *from != '\0') {
            p = star;
            s = ++from;
        } else {
            return false;
        }
    }
}

/* What the groups of one agent say of a path. */
struct verdict {
    bool named; /* there is a group of the agent */
    bool allowed;
    size_t longest; /* of the rule that decided */
};

static void weigh(struct verdict *v, const struct line *l, const char *path)
{
    bool allow = has_key(l, "allow");

    if ((!allow && !has_key(l, "disallow")) || l->value_len == 0 ||
        !robots_txt_matches(l->value, l->value_len, path))
        return;
    if (l->value_len > v->longest || (l->value_len == v->longest && allow)) {
        v->longest = l->value_len;
        v->allowed = allow;
    }
}

static struct verdict judge(const char *text, const char *agent, const char *path)
{
    struct verdict v = {.allowed = true};
    bool naming = false, mine = false;
    struct line l;

    while (next_line(&text, &l)) {
        if (has_key(&l, "user-agent")) {
            if (!naming)
                mine = false;
            naming = true;
            if (l.value_len == strlen(agent) && strncasecmp(l.value, agent, l.value_len) == 0)
                mine = v.named = true;
        } else if (has_key(&l, "allow") || has_key(&l, "disallow")) {
            naming = false;
            if (mine)
                weigh(&v, &l, path);
        }
    }
    return v;
}

bool robots_txt_allows(const char *text, const char *agent, const char *path)
{
    struct verdict v = judge(text, agent, path);

    return v.named ? v.allowed : judge(text, "*", path).allowed;
}

size_t robots_txt_next_sitemap(const char **at, const char **value)
{
    struct line l;

    while (next_line(at, &l))
        if (has_key(&l, "sitemap") && l.value_len > 0) {
            *value = l.value;
            return l.value_len;
        }
    return 0;
}
