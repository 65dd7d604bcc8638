/* skew.h: see skew.c. */
#ifndef OVERLAY_SKEW_H
#define OVERLAY_SKEW_H

#include "network.h"

void skew_free(OverlayNetwork *network);

#endif
