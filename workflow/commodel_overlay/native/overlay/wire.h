/* wire.h: a connection to a neighbour in the tree: it receives frames, and sends queued packets. */
#ifndef OVERLAY_WIRE_H
#define OVERLAY_WIRE_H

#include "authentic.h"
#include "loop.h"
#include "packet.h"

#include <stdbool.h>

enum { TOKEN_BYTES = KEY_BYTES, WIRE_VERSION = 5 };

/* The first bytes on a connection to a parent, by which a process identifies itself. */
typedef struct {
  char magic[8];
  uint32_t version, order; /* order: that of all these numbers, by its own bytes */
  unsigned char token[TOKEN_BYTES];
  uint32_t node, process; /* process: its number on its host */
} Hello;
/* With the parent's nonce: a MAC in place of the token. */
Hello hello_of(const unsigned char token[static TOKEN_BYTES], uint32_t node, const unsigned char *nonce);
uint32_t hello_number(const Hello *hello, uint32_t number); /* one of its numbers, in this host's byte order */
/* Returns the reason why the process is refused; NULL: it is accepted. */
const char *hello_refused(const Hello *hello, const unsigned char token[static TOKEN_BYTES], const unsigned char *nonce);
int nonce_new(unsigned char nonce[static NONCE_BYTES]);
/* Returns the keys of the connection that began with these. NULL: no memory. */
Authentic *hello_keys(const Hello *hello, const unsigned char token[static TOKEN_BYTES], const unsigned char *nonce,
                      bool is_parent);
int token_new(unsigned char token[static TOKEN_BYTES]);

typedef struct {
  OverlayPacket **items;
  uint32_t head, count, capacity;
  size_t bytes;
} Queue;
int queue_push(Queue *queue, OverlayPacket *packet); /* takes the caller's reference, also if it fails */
OverlayPacket *queue_pop(Queue *queue);              /* NULL if it is empty */
void queue_clear(Queue *queue);

typedef struct Peer Peer;
struct Peer {
  Watch watch; /* first: a Peer is a Watch */
  Loop *loop;
  void (*received)(Peer *peer, OverlayPacket *packet); /* takes over the reference of the packet */
  void (*lost)(Peer *peer, const char *reason);         /* called once, after the socket was closed */
  Block *block;                                        /* receive buffer: [start, end) is a partial frame */
  size_t start, end;
  Queue queue; /* to be sent; `sent` bytes of the first packet already are */
  size_t sent;
  Authentic *authentic; /* NULL: packets have no tags */
  int silent_checks;     /* checks for silence since the last received packet */
  bool sent_since_check; /* a packet was sent since the last check for silence */
};
void peer_open(Peer *peer, Loop *loop, int socket);
void peer_send(Peer *peer, OverlayPacket *packet); /* takes the reference; to a lost peer it sends nothing */
void peer_flush(Peer *peer);
bool peer_receive(Peer *peer, int flags); /* flags of recv(). False: nothing was received in time */
void peer_lose(Peer *peer, const char *reason);
void peer_close(Peer *peer); /* without calling `lost` */
bool peer_is_up(const Peer *peer);

#endif
