/* streams.h: channels over the tree: waves out of packets from below, filters, and windows that hold fast senders.
 *
 * On every link a stream may have `window` bytes under way. What a process consumes it gives back as credit, and it
 * consumes only what it can hand on: so a slow process holds its sources, one stream never holds another, and memory
 * is bounded by streams × links × window (and one packet more on each).
 */
#ifndef OVERLAY_STREAMS_H
#define OVERLAY_STREAMS_H

#include "filter.h"
#include "network.h"

typedef struct {
  Neighbour *neighbour; /* NULL: of the front-end upwards */
  Queue queue;          /* received and not consumed */
  int64_t credit;       /* bytes that may still be sent; a packet may overdraw it */
  uint32_t owed;        /* consumed, and not given back yet */
  bool gone;
} Link;

struct OverlayStream {
  OverlayNetwork *network;
  OverlayStream *next, *next_timed, *next_readable; /* of the same bucket; of those that time out; of the readable */
  uint32_t id;
  OverlayStreamOptions options;
  OverlayComm members;
  Filter filter;
  void *state;
  Link up;     /* its queue: what came from the parent */
  Link *links; /* to children with back-ends of it */
  int nlinks, turn;
  int *of_child;        /* link by child; -1: none */
  int waiting, empty;   /* links with packets; living links without */
  OverlayPacket **wave; /* room for one of each link */
  Queue out;            /* what the filter gave: to be sent up, or for the front-end's tool */
  double deadline;      /* of a wave; 0: none has begun */
  bool readable, drained; /* drained: and the parent was told so */
  int ended;     /* 0, or what receiving and sending return: OVERLAY_CLOSED, OVERLAY_LOST, OVERLAY_FAILED */
  bool told;     /* overlay_recv_any() has */
  char *failure; /* what overlay_error() says then */
};

OverlayStream *stream_of(const OverlayNetwork *network, uint32_t id);
OverlayStream *stream_new(OverlayNetwork *network, uint32_t id, const OverlayStreamOptions *options,
                          const uint32_t *ranges, uint32_t pairs);
void stream_free(OverlayStream *stream);
void streams_free(OverlayNetwork *network);

void stream_received(Neighbour *from, OverlayPacket *packet); /* data; takes the reference */
void stream_advance(OverlayStream *stream);                   /* does what can be done: waves up, packets down */
bool stream_can_send(const OverlayStream *stream);
void stream_send_down(OverlayStream *stream, OverlayPacket *packet); /* takes the reference */
void stream_send_up(OverlayStream *stream, OverlayPacket *packet);
OverlayPacket *stream_take(OverlayStream *stream);                        /* for the tool; NULL: nothing there */
bool stream_reaches(const OverlayStream *stream, const Neighbour *child); /* living back-ends of its own behind it */
void streams_without(OverlayNetwork *network, Neighbour *child);
double streams_deadline(const OverlayNetwork *network);            /* the next one of a wave; 0: none */
void streams_timed(OverlayNetwork *network);                       /* waves whose time has come */
void stream_end(OverlayStream *stream, int code, const char *why); /* here, and below */
bool stream_has_sources(const OverlayStream *stream);              /* something may still come */

void on_open(Neighbour *from, OverlayPacket *packet);
void on_shut(Neighbour *from, OverlayPacket *packet);
void on_credit(Neighbour *from, OverlayPacket *packet);
void on_stream_failed(Neighbour *from, OverlayPacket *packet);
void on_drained(Neighbour *from, OverlayPacket *packet);

#endif
