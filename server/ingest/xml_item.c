#include "server/ingest/xml_item.h"

void xml_item_begin(struct xml_item *item, uint64_t line)
{
    item->line = line;
    item->locs = item->lastmods = 0;
    item->loc_markup = item->lastmod_markup = false;
    xml_text_init(&item->loc, item->loc_data, sizeof item->loc_data);
    xml_text_init(&item->lastmod, item->lastmod_data, sizeof item->lastmod_data);
    xml_text_init(&item->direct, item->direct_data, sizeof item->direct_data);
}

/* The loc, or what is wrong with it. */
static void read_loc(const struct xml_item *item, struct raw_entry *raw)
{
    bool padded;
    raw->loc_len = xml_text_end(&item->loc, &padded);
    raw->loc = raw->loc_len > 0 ? item->loc.data : NULL;
    if (padded && raw->loc)
        raw->remarks |= RULE_BIT(RULE_LOC_PADDED);
    if (item->locs > 1) {
        /* Which one was meant is anyone's guess. */
        raw->loc_fault = RULE_LOC_MALFORMED;
        raw->loc_why = "there is more than one loc in this sitemap element";
    } else if (item->loc_markup) {
        raw->loc_fault = RULE_LOC_MALFORMED;
        raw->loc_why = "there is an element within the loc";
    } else if (item->loc.overflow) {
        raw->loc_fault = RULE_LOC_TOO_LONG;
    } else if (!raw->loc) {
        raw->loc_fault = RULE_LOC_MISSING;
        raw->loc_len = xml_text_end(&item->direct, &padded);
        if (raw->loc_len > 0) {
            raw->loc = item->direct.data;
            raw->loc_why = "there is no loc; the text stands directly in the sitemap element";
        }
    }
}

bool xml_item_read(const struct xml_item *item, struct raw_entry *raw)
{
    bool padded;
    *raw = (struct raw_entry){.position = POSITION_NONE, .line = item->line};
    read_loc(item, raw);
    raw->lastmod = item->lastmod.data;
    raw->lastmod_len = xml_text_end(&item->lastmod, &padded);
    if (item->lastmods > 1)
        raw->lastmod_why = "stands beside another lastmod";
    else if (item->lastmod_markup)
        raw->lastmod_why = "has an element within";
    else if (item->lastmod.overflow)
        raw->lastmod_why = rule_code_sentence(RULE_LASTMOD_INVALID);
    if (raw->lastmod_len > 0 || raw->lastmod_why) /* <lastmod/> is as good as none */
        raw->lastmod_state = FIELD_SET;
    return raw->loc_fault == RULE_OK && item->direct.end > 0;
}
