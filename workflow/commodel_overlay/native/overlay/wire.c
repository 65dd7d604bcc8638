/* wire.c: split received bytes into packets without copying them, and send several queued packets in one system call. */
#include "wire.h"
#include "errors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { BLOCK_BYTES = 64 << 10, MIN_FREE_BYTES = 4 << 10, MAX_PIECES = 64 };

/* ---- queues ---- */
int queue_push(Queue *queue, OverlayPacket *packet)
{
  if (queue->count == queue->capacity) {
    uint32_t capacity = queue->capacity ? 2 * queue->capacity : 8;
    OverlayPacket **items = malloc(capacity * sizeof *items);
    if (!items) {
      overlay_release(packet);
      return overlay_fail("no memory for a queue of %u packets", capacity);
    }
    for (uint32_t i = 0; i < queue->count; i++) items[i] = queue->items[(queue->head + i) & (queue->capacity - 1)];
    free(queue->items);
    queue->items = items, queue->head = 0, queue->capacity = capacity;
  }
  queue->items[(queue->head + queue->count++) & (queue->capacity - 1)] = packet;
  queue->bytes += packet->frame->bytes;
  return OVERLAY_OK;
}

OverlayPacket *queue_pop(Queue *queue)
{
  if (!queue->count) return NULL;
  OverlayPacket *packet = queue->items[queue->head];
  queue->head = (queue->head + 1) & (queue->capacity - 1);
  queue->count--;
  queue->bytes -= packet->frame->bytes;
  return packet;
}

void queue_clear(Queue *queue)
{
  for (OverlayPacket *packet; (packet = queue_pop(queue));) overlay_release(packet);
  free(queue->items);
  *queue = (Queue){.items = NULL};
}

/* ---- receiving ---- */

static size_t tag_bytes(const Peer *peer) { return peer->authentic ? TAG_BYTES : 0; }

static bool is_authentic(const Peer *peer, const Frame *frame)
{
  unsigned char tag[TAG_BYTES];
  uint32_t bytes = frame_length(frame);
  tag_of(&peer->authentic->receive_key, peer->authentic->received++, frame, bytes, tag);
  if (same_bytes(tag, (const unsigned char *)frame + bytes, TAG_BYTES)) return true;
  overlay_fail("its authentication tag is wrong");
  return false;
}

/* Ensure free space in the block: for the rest of the partial frame, or for at least MIN_FREE_BYTES. If packets still
 * refer to the block, it remains as it is, and the partial frame is copied to a new block. */
static bool reserve_space(Peer *peer)
{
  size_t partial = peer->end - peer->start, needed = MIN_FREE_BYTES;
  if (partial >= sizeof(Frame)) {
    const Frame *frame = (const Frame *)(peer->block->bytes + peer->start);
    needed = frame_length(frame) + tag_bytes(peer) - partial;
  }
  if (peer->block && peer->block->references == 1 && !partial) peer->start = peer->end = 0;
  if (peer->block && peer->block->size - peer->end >= needed) return true;
  size_t size = partial + needed > BLOCK_BYTES ? partial + needed : BLOCK_BYTES;
  Block *block = block_new(size);
  if (!block) return false;
  if (partial) memcpy(block->bytes, peer->block->bytes + peer->start, partial);
  block_release(peer->block);
  peer->block = block, peer->start = 0, peer->end = partial;
  return true;
}

/* Deliver all complete frames as packets. Returns false if a frame is invalid; a peer lost meanwhile is no error. */
static bool deliver_frames(Peer *peer)
{
  size_t tag = tag_bytes(peer);
  while (peer->end - peer->start >= sizeof(Frame)) {
    Frame *frame = (Frame *)(peer->block->bytes + peer->start);
    uint32_t bytes = frame_length(frame);
    if (bytes < sizeof *frame || bytes % 8 || bytes > MAX_FRAME_BYTES)
      return overlay_fail("found a packet of %u bytes, wanted at most %d MiB", bytes, MAX_FRAME_BYTES >> 20), false;
    if (peer->end - peer->start < bytes + tag) return true;
    if (tag && !is_authentic(peer, frame)) return false;
    OverlayPacket *packet = packet_of(peer->block, frame);
    if (!packet) return false;
    peer->start += bytes + tag;
    peer->received(peer, packet);
    if (!peer_is_up(peer)) return true;
  }
  return true;
}

bool peer_receive(Peer *peer, int flags)
{
  if (!reserve_space(peer)) return peer_lose(peer, overlay_error()), true;
  ssize_t count = recv(peer->watch.fd, peer->block->bytes + peer->end, peer->block->size - peer->end, flags);
  if (count == 0) return peer_lose(peer, "it closed the connection"), true;
  if (count < 0) {
    if (errno == EAGAIN) return false;
    if (errno != EINTR) peer_lose(peer, strerror(errno));
    return true;
  }
  peer->end += (size_t)count;
  peer->silent_checks = 0;
  if (!deliver_frames(peer)) {
    char reason[300];
    snprintf(reason, sizeof reason, "it sent an invalid packet: %s", overlay_error());
    peer_lose(peer, reason);
  }
  return true;
}

static void on_ready(Watch *watch, uint32_t events)
{
  Peer *peer = (Peer *)watch;
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) peer_receive(peer, MSG_DONTWAIT);
  if (peer_is_up(peer) && events & EPOLLOUT) peer_flush(peer);
}

/* ---- sending ---- */
void peer_send(Peer *peer, OverlayPacket *packet)
{
  if (!packet || !peer_is_up(peer)) return overlay_release(packet);
  if (queue_push(&peer->queue, packet) != OVERLAY_OK) peer_lose(peer, overlay_error());
}

/* The tag of the queued frame `index`, computed once: a frame may need several calls of send(). */
static unsigned char *get_tag(Authentic *authentic, uint32_t index, const Frame *frame)
{
  if (index >= authentic->ready) {
    tag_of(&authentic->send_key, authentic->sent++, frame, frame->bytes, authentic->tags[index]);
    authentic->ready = index + 1;
  }
  return authentic->tags[index];
}

static void drop_tags(Authentic *authentic, uint32_t count)
{
  authentic->ready -= count;
  memmove(authentic->tags, authentic->tags[count], authentic->ready * sizeof *authentic->tags);
}

void peer_flush(Peer *peer)
{
  while (peer_is_up(peer) && peer->queue.count) {
    struct iovec pieces[MAX_PIECES];
    struct msghdr message = {.msg_iov = pieces};
    size_t skipped = peer->sent, tag = tag_bytes(peer);
    for (uint32_t i = 0; i < peer->queue.count && message.msg_iovlen + 2 <= MAX_PIECES; i++, skipped = 0) {
      Frame *frame = peer->queue.items[(peer->queue.head + i) & (peer->queue.capacity - 1)]->frame;
      size_t frame_offset = skipped < frame->bytes ? skipped : frame->bytes;
      if (frame_offset < frame->bytes)
        pieces[message.msg_iovlen++] = (struct iovec){(char *)frame + frame_offset, frame->bytes - frame_offset};
      if (tag)
        pieces[message.msg_iovlen++] =
            (struct iovec){get_tag(peer->authentic, i, frame) + (skipped - frame_offset), tag - (skipped - frame_offset)};
    }
    ssize_t count = message.msg_iovlen == 1
                        ? send(peer->watch.fd, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
                        : sendmsg(peer->watch.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      if (loop_watch(peer->loop, &peer->watch, EPOLLIN | EPOLLOUT) != OVERLAY_OK) peer_lose(peer, overlay_error());
      return;
    }
    /* The connection is broken for sending. Received bytes may remain in the socket: peer_receive() reads them, then closes. */
    if (count < 0) {
      peer->sent = 0;
      if (tag) peer->authentic->ready = 0;
      return queue_clear(&peer->queue);
    }
    peer->sent_since_check = true;
    peer->sent += (size_t)count;
    uint32_t done = 0;
    for (; peer->queue.count && peer->sent >= peer->queue.items[peer->queue.head]->frame->bytes + tag; done++) {
      OverlayPacket *packet = queue_pop(&peer->queue);
      peer->sent -= packet->frame->bytes + tag;
      overlay_release(packet);
    }
    if (tag && done) drop_tags(peer->authentic, done);
  }
  if (peer_is_up(peer) && loop_watch(peer->loop, &peer->watch, EPOLLIN) != OVERLAY_OK) peer_lose(peer, overlay_error());
}

/* ---- beginning and end ---- */
void peer_open(Peer *peer, Loop *loop, int socket)
{
  peer->watch = (Watch){.fd = socket, .ready = on_ready};
  peer->loop = loop, peer->silent_checks = 0;
  if (loop_watch(loop, &peer->watch, EPOLLIN) != OVERLAY_OK) peer_lose(peer, overlay_error());
}

bool peer_is_up(const Peer *peer) { return peer->watch.fd >= 0; }

void peer_close(Peer *peer)
{
  loop_close(peer->loop, &peer->watch);
  queue_clear(&peer->queue);
  peer->sent = 0;
  block_release(peer->block);
  peer->block = NULL, peer->start = peer->end = 0;
  if (peer->authentic) explicit_bzero(peer->authentic, sizeof *peer->authentic);
  free(peer->authentic);
  peer->authentic = NULL;
}

void peer_lose(Peer *peer, const char *reason)
{
  if (!peer_is_up(peer)) return;
  char text[320];
  snprintf(text, sizeof text, "%s", reason);
  peer_close(peer);
  peer->lost(peer, text);
}
