/* frames.h: packets and filters of the overlay network for C++, which does not read their own headers. */
#ifndef COMMODEL_MRNET_FRAMES_H
#define COMMODEL_MRNET_FRAMES_H

#ifdef __cplusplus
extern "C" {
#endif
#include "overlay.h"

enum { FIRST_TAG = 100 }; /* lower tags are MRNet's own, also for packets of filters */

size_t frame_bytes(const OverlayPacket *packet);
/* A copy that free() ends. */
void *frame_copy(const OverlayPacket *packet);
/* The packet of a copied frame; NULL if it is malformed. */
OverlayPacket *packet_of_frame(const void *bytes, size_t count);
/* The same values as they come from one back-end. */
OverlayPacket *packet_from(OverlayPacket *packet, int backend);

/* Runs a filter on a wave of one stream; `emit` gets what comes of it. The state is made by the first call. */
typedef void Emit(void *target, const OverlayPacket *packet);
int reduce_wave(void **state, const char *filter, OverlayPacket **in, int count, Emit *emit, void *target);
#ifdef __cplusplus
}
#endif
#endif
