/* arrivals.c: estimates the size of a queue from arrival times.
 *
 * A sender's port sends a packet every g_s, so packet i enters the queue at t + i g_s. The packets of the sender of the
 * first arrival determine its t, since the queue is empty at first. The queue is full while packets of others are lost.
 * The waiting time of the first sender's packets meanwhile, divided by g_r, is the size of the queue, as one packet
 * leaves every g_r. The starts of other senders, and the packets that leave while the queue fills, do not matter.
 *
 * If ports have equal speed, one sender may occupy every slot that becomes free, and the others none. If the first sender
 * has fewer than MIN_ARRIVALS arrivals meanwhile, its first lost packet is used instead. It would have waited for all packets that arrived
 * before it: the queue and a part of a packet. */
#include "arrivals.h"

#include <stdlib.h>

enum { MIN_ARRIVALS = 4 }; /* least number of arrivals of the first sender while the queue is full */

typedef struct {
  int next, before; /* index of the next packet; number of the last arrival */
  int full;         /* arrivals while the queue is full */
  double index, at; /* their means */
  int after;        /* whether one of its packets arrived after `lost_after` */
} Sender;

typedef struct {
  int first, last;         /* arrivals while the queue is full */
  int lost_after;          /* the first sender's last arrival before its first loss; -1 without one */
  double gap_in, gap_out;  /* g_r and g_s */
} Full;

/* The queue is full when a packet is lost: one that is missing before a later packet of its sender, or after its last
 * arrival. Arrivals count from `senders` arrivals later on, since each sender may have a packet in the queue. */
static Full find_full(const Arrival *arrivals, int count, int packets, Sender *of, int senders)
{
  int first_sender = arrivals[0].sender;
  Full full = {.first = count, .last = -1, .lost_after = -1};
  for (int i = 0; i < count; i++) {
    Sender *sender = &of[arrivals[i].sender];
    if (arrivals[i].index > sender->next) {
      int before = sender->next > 0 ? sender->before : i; /* the arrival before the loss; of first packets, after it */
      if (before < full.first) full.first = before;
      if (arrivals[i].sender == first_sender && full.lost_after < 0) full.lost_after = sender->before;
      full.last = i;
    }
    sender->next = arrivals[i].index + 1;
    sender->before = i;
  }
  for (int j = 0; j < senders; j++)
    if (of[j].next > 0 && of[j].next < packets && of[j].before < full.first) full.first = of[j].before;
  if (of[first_sender].next < packets && full.lost_after < 0) full.lost_after = of[first_sender].before;
  full.first += senders;
  int least_last = (full.first + 3 * count) / 4;
  if (full.last < least_last) full.last = least_last;
  return full;
}

static void find_gaps(const Arrival *arrivals, Full *full, Sender *of, int senders)
{
  double covariance = 0, variance = 0;
  for (int i = full->first; i <= full->last; i++) {
    Sender *sender = &of[arrivals[i].sender];
    sender->full++;
    sender->index += arrivals[i].index;
    sender->at += arrivals[i].at;
  }
  for (int j = 0; j < senders; j++) {
    if (of[j].full == 0) continue;
    of[j].index /= of[j].full;
    of[j].at /= of[j].full;
  }
  for (int i = full->first; i <= full->last; i++) {
    const Sender *sender = &of[arrivals[i].sender];
    double index = arrivals[i].index - sender->index;
    covariance += index * (arrivals[i].at - sender->at);
    variance += index * index;
  }
  full->gap_out = variance > 0 ? covariance / variance : 0;
  full->gap_in = (arrivals[full->last].at - arrivals[full->first].at) / (full->last - full->first);
}

/* Seconds that the first sender's first lost packet would have waited if it had entered at `entered`. */
static double estimate_wait_of_lost(const Arrival *arrivals, int count, const Full *full, Sender *of, double entered)
{
  int last = full->lost_after;
  while (last + 1 < count && arrivals[last + 1].sender != arrivals[0].sender && !of[arrivals[last + 1].sender].after)
    of[arrivals[++last].sender].after = 1;
  return arrivals[last].at + full->gap_in - entered;
}

static double estimate_queue(const Arrival *arrivals, int count, int packets, Sender *of, int senders)
{
  Full full = find_full(arrivals, count, packets, of, senders);
  if (full.last <= full.first || full.last >= count) return -1;
  find_gaps(arrivals, &full, of, senders);
  if (full.gap_in <= 0 || full.gap_out <= 0) return -1;
  double start = arrivals[0].at - full.gap_out * arrivals[0].index;
  for (int i = 1; i < count; i++)
    if (arrivals[i].sender == arrivals[0].sender && arrivals[i].at - full.gap_out * arrivals[i].index < start)
      start = arrivals[i].at - full.gap_out * arrivals[i].index;
  const Sender *sender = &of[arrivals[0].sender];
  if (sender->full >= MIN_ARRIVALS) { /* a packet is accepted some time after a slot has become free */
    double late = 0.5 * full.gap_out * sender->full / (full.last - full.first + 1);
    return (sender->at - full.gap_out * sender->index - start + late) / full.gap_in;
  }
  if (full.lost_after < 0) return -1;
  double entered = start + full.gap_out * (arrivals[full.lost_after].index + 1);
  return estimate_wait_of_lost(arrivals, count, &full, of, entered) / full.gap_in - 0.5;
}

double estimate_queue_packets(const Arrival *arrivals, int count, int senders, int packets)
{
  Sender *of = calloc((size_t)senders, sizeof *of);
  double packets_in_queue = of && count > 0 ? estimate_queue(arrivals, count, packets, of, senders) : -1;
  free(of);
  return packets_in_queue;
}
