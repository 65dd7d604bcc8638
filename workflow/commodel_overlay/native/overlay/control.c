/* control.c: the control packets: the format, the permitted senders and the handler of each. */
#include "errors.h"
#include "streams.h"

#include <stdio.h>

static void on_ping(Neighbour *from, OverlayPacket *packet) { (void)from, (void)packet; }

typedef enum { DOWN = 1, UP = 2 } Direction;
static const struct {
  const char *format;
  Direction direction;
  void (*handle)(Neighbour *from, OverlayPacket *packet);
} table[DATA] = {
    [CONFIG] = {"%ud %ud %ud %d %ad %as %as %as %s %s %lf %ud %d %d %as", DOWN, on_config},
    [WELCOME] = {"%ud %ud %d %lf %ud %as", DOWN, on_welcome},
    [ADDRESS] = {"%ud %s", DOWN | UP, on_address},
    [TREE_UP] = {"", UP, on_tree_up},
    [READY] = {"", UP, on_ready},
    [FAILED] = {"%s", UP, on_failed},
    [OPEN] = {"%as %d %lf %aud", DOWN, on_open},
    [ARGUMENT] = {"%s", DOWN, on_argument},
    [STATE] = {NULL, UP, on_state},
    [SHUT] = {"%d %s", DOWN, on_shut},
    [COUNT] = {"", DOWN, on_count},
    [COUNTED] = {"%ud %d %auld %alf", UP, on_counted},
    [COUNTED_ALL] = {"", UP, on_counted_all},
    [CREDIT] = {"%ud %uld", DOWN | UP, on_credit},
    [LOST] = {"%aud %s", UP, on_lost},
    [STREAM_FAILED] = {"%s", UP, on_stream_failed},
    [DRAINED] = {"", UP, on_drained},
    [PING] = {"", DOWN | UP, on_ping},
    [SHUTDOWN] = {"", DOWN, on_shutdown},
    [PROBE] = {"%ud", DOWN, on_probe},
    [ECHO] = {"%ud %lf", UP, on_echo},
    [SKEW] = {"%ud", DOWN, on_skew},
    [SKEWS] = {"%alf", UP, on_skews},
    [REJOIN] = {"%aud %auld %aud", UP, on_rejoin},
    [RESUME] = {"%aud", DOWN, on_resume},
    [ADOPTED] = {"", DOWN, on_adopted},
    [REATTACHED] = {"%ud %ud %aud %lf", UP, on_reattached},
};

void control_received(Peer *peer, OverlayPacket *packet)
{
  Neighbour *from = (Neighbour *)peer;
  unsigned kind = packet->frame->kind;
  if (kind == DATA) return stream_received(from, packet);
  Direction direction = from->index < 0 ? DOWN : UP;
  const char *format = kind > DATA ? NULL : table[kind].format;
  if (kind > DATA || !(table[kind].direction & direction) || (format && !format_same(overlay_format(packet), format))) {
    char why[160];
    snprintf(why, sizeof why, "it sent a packet of kind %u with '%.60s', which is not for here", kind,
             overlay_format(packet));
    peer_lose(peer, why);
  } else {
    table[kind].handle(from, packet);
  }
  overlay_release(packet);
}
