/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A file with two sites and three indexes, and a handle on it. */
#pragma once

#include "tests/unit/db/read/read_handle.h"

#define S1 "https://www.example.com"

/* Site 1 with indexes 1 and 2, site 2 with index 3. */
static inline void open_all(struct fixture *f, struct catalogue *c)
{
    fixture_open(f);
    fixture_site(f->db, 1, S1);
    fixture_site(f->db, 2, "http://two.example:8080");
    fixture_index(f->db, 1, 1, "/sitemap_index.xml");
    fixture_index(f->db, 2, 1, "/shop/i.xml");
    fixture_index(f->db, 3, 2, "/i.xml");
    handle_open(c, f);
}

static inline void close_all(struct fixture *f, struct catalogue *c)
{
    handle_close(c);
    fixture_close(f);
}
