#include "db/catalogue.h"

const char *catalogue_status_word(enum catalogue_status status)
{
    switch (status) {
    case CATALOGUE_OK:
        return "ok";
    case CATALOGUE_REFUSED:
        return "refused";
    case CATALOGUE_NOT_FOUND:
        return "not-found";
    case CATALOGUE_CONFLICT:
        return "conflict";
    case CATALOGUE_FULL:
        return "full";
    case CATALOGUE_BUSY:
        return "busy";
    case CATALOGUE_UNAVAILABLE:
        return "unavailable";
    case CATALOGUE_NEWER:
        return "newer";
    case CATALOGUE_NO_SPACE:
        return "no-space";
    case CATALOGUE_CORRUPT:
        return "corrupt";
    case CATALOGUE_NO_MEMORY:
        return "no-memory";
    case CATALOGUE_SHARED_AWAY:
        return "shared-unavailable";
    case CATALOGUE_UPGRADE_PENDING:
        return "upgrade-pending";
    case CATALOGUE_DIVERGED:
        return "diverged";
    case CATALOGUE_OUTCOME_UNKNOWN:
        return "outcome-unknown";
    case CATALOGUE_CANCELLED:
        return "cancelled";
    }
    return "unknown";
}
