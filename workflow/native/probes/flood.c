/* flood: ranks 1..senders send `packets` datagrams of `bytes` each to rank 0 over UDP, as fast as possible.
 *
 * The column `what` selects the meaning of the result `count`. Lost datagrams are not retransmitted.
 *
 *   arrived  number of datagrams, of senders * packets, that rank 0 receives
 *   through  number of datagrams that the network delivers: those that arrived, and those that rank 0's socket dropped
 *            because its buffer was full; -1 if the system does not report these
 *   held     size in bytes of the network's queue before rank 0, computed from arrival times (arrivals.c); -1 if too
 *            few datagrams were lost, the socket dropped some, or the system does not report arrival times
 *   room     size in bytes of the receive buffer of rank 0's socket, the system's default, with the system's overhead
 *
 * A sample lasts from the common start until the last datagram arrives (0 if none arrives). Rank 0 receives until all
 * have arrived. If some are lost, it stops when every sender has reported by MPI that it is done and no datagram has
 * arrived for `silence_seconds`; that wait is not in the sample. Every datagram carries the number of its sample, so that
 * one left over from an earlier sample is not counted.
 *
 *   T = L + o_s + o_r + (s-1) G + (senders packets - 1) max(g, o_r) without loss, for short packets under LogGP
 *
 * The simulated network has no UDP: there the packets are MPI messages, which all arrive. Then count is the number of
 * packets sent; for `room` it is 0, for `held` -1.
 *
 *   mpiexec -n 3 flood --cases cases.csv --out samples        cases.csv: id,what,senders,packets,bytes
 */
#include "datagrams.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WHAT_COLUMN, SENDERS_COLUMN, PACKETS_COLUMN, BYTES_COLUMN, TAG = 0, DONE = 1, CLOSED = 2 };
static const Column columns[] = {
    {"what", "", "arrived, through, held or room", WORD},
    {"senders", "1", "ranks that send to rank 0, from 1", COUNT},
    {"packets", "1", "datagrams of each sender, from 1", COUNT},
    {"bytes", "B", "size of each datagram, 8 to 65507", BYTES},
};

typedef struct {
  Run *run;
  int rank, senders, packets, bytes;
  int fd;
  bool through, held, room; /* which of these is counted; if none: arrived */
  uint64_t sample;
  int64_t dropped; /* by rank 0's socket before this sample */
  char *buffer;
  Arrival *arrivals; /* rank 0, for `held` */
  MPI_Request *done; /* rank 0: receives the DONE message of every sender */
} State;

static void check(const Case *c, int ranks)
{
  const char *what = c->fields[WHAT_COLUMN].text;
  if (strcmp(what, "arrived") != 0 && strcmp(what, "through") != 0 && strcmp(what, "held") != 0 &&
      strcmp(what, "room") != 0)
    case_error(c, "what", what, columns[WHAT_COLUMN].meaning);
  const Field *senders = &c->fields[SENDERS_COLUMN], *packets = &c->fields[PACKETS_COLUMN];
  const Field *bytes = &c->fields[BYTES_COLUMN];
  if (senders->count < 1) case_error(c, "senders", senders->text, "a whole number from 1");
  if (packets->count < 1) case_error(c, "packets", packets->text, "a whole number from 1");
  if (bytes->count < DATAGRAM_MIN || bytes->count > DATAGRAM_MAX)
    case_error(c, "bytes", bytes->text, "8 to 65507 bytes, the sizes of one datagram with the number of its sample");
  if (strcmp(what, "held") == 0 && bytes->count < DATAGRAM_MIN_NUMBERED)
    case_error(c, "bytes", bytes->text, "at least 16 bytes, for the number of a sample, its sender and an index");
  require_ranks(c, "senders", senders->count + 1, ranks);
  if (senders->count * packets->count > INT_MAX)
    case_error(c, "packets", packets->text, "at most 2147483647 packets of all senders together");
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  s->run = run;
  s->rank = run->rank;
  s->through = strcmp(c->fields[WHAT_COLUMN].text, "through") == 0;
  s->held = strcmp(c->fields[WHAT_COLUMN].text, "held") == 0;
  s->room = strcmp(c->fields[WHAT_COLUMN].text, "room") == 0;
  s->senders = (int)c->fields[SENDERS_COLUMN].count;
  s->packets = (int)c->fields[PACKETS_COLUMN].count;
  s->bytes = (int)c->fields[BYTES_COLUMN].count;
  s->buffer = allocate_buffer(1, (size_t)s->bytes);
  s->arrivals = allocate(s->held && s->rank == 0 ? (size_t)s->senders * (size_t)s->packets : 1, sizeof *s->arrivals);
  s->done = allocate((size_t)s->senders, sizeof *s->done);
  run->participates = s->rank <= s->senders;
  run->finish = 0;
#if !COMMODEL_SIMULATED
  s->fd = open_datagrams(s->rank);
  if (s->rank == 0) s->dropped = count_dropped_datagrams(s->fd);
#endif
  return s;
}

#if COMMODEL_SIMULATED

static void receive_all(State *s)
{
  int all = s->senders * s->packets;
  for (int i = 0; i < all; i++)
    MPI_TRY(MPI_Recv(s->buffer, s->bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  s->run->counted = s->room ? 0 : s->held ? -1 : all;
}

static void send_all(State *s)
{
  MPI_Request *requests = allocate((size_t)s->packets, sizeof *requests);
  for (int i = 0; i < s->packets; i++)
    MPI_TRY(MPI_Isend(s->buffer, s->bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[i]));
  MPI_TRY(MPI_Waitall(s->packets, requests, MPI_STATUSES_IGNORE));
  free(requests);
}

#else

static const double silence_seconds = 20e-3; /* s without an arrival after which the remaining datagrams count as lost */

static double count_result(State *s, int arrived)
{
  if (s->room) return receive_buffer_bytes(s->fd);
  if (!s->through && !s->held) return arrived;
  int64_t before = s->dropped;
  s->dropped = count_dropped_datagrams(s->fd);
  if (s->held) {
    bool complete = s->dropped == before && arrived > 0 && s->arrivals[0].at > 0;
    double packets = complete ? estimate_queue_packets(s->arrivals, arrived, s->senders, s->packets) : -1;
    return packets < 0 ? -1 : packets * s->bytes;
  }
  return s->dropped < 0 || before < 0 ? -1 : arrived + (double)(uint32_t)(s->dropped - before);
}

/* MPI is polled only if no datagram has arrived for 1 ms, because packets are lost during a poll. Waiting for a datagram
 * does not spin: senders may share the processor. */
static void receive_all(State *s)
{
  int all = s->senders * s->packets, arrived = 0, all_done = 0;
  double start = clock_now(), last = start, last_activity = start; /* last_activity: the last arrival or poll of MPI */
  while (arrived < all) {
    if (s->held ? receive_numbered(s->fd, s->buffer, (size_t)s->bytes, s->sample, s->senders, &s->arrivals[arrived])
                : receive_datagram(s->fd, s->buffer, (size_t)s->bytes, s->sample)) {
      arrived++;
      last = last_activity = clock_now();
      continue;
    }
    if (await_datagram(s->fd, 1)) continue;
    if (!all_done) {
      MPI_TRY(MPI_Testall(s->senders, s->done, &all_done, MPI_STATUSES_IGNORE));
      last_activity = clock_now();
    } else if (clock_now() - last_activity > silence_seconds) {
      break;
    }
  }
  if (!all_done) MPI_TRY(MPI_Waitall(s->senders, s->done, MPI_STATUSES_IGNORE));
  s->run->counted = count_result(s, arrived); /* while no rank sends: later losses belong to the next sample */
  /* The senders wait for this message. Otherwise they would reach the next sample before rank 0 does. */
  for (int i = 0; i < s->senders; i++) MPI_TRY(MPI_Send(NULL, 0, MPI_BYTE, i + 1, CLOSED, MPI_COMM_WORLD));
  s->run->excluded = clock_now() - last;
}

static void send_all(State *s)
{
  send_datagrams(s->fd, s->buffer, (size_t)s->bytes, s->packets, s->sample, s->rank - 1);
  MPI_TRY(MPI_Send(NULL, 0, MPI_BYTE, 0, DONE, MPI_COMM_WORLD));
  MPI_TRY(MPI_Recv(NULL, 0, MPI_BYTE, 0, CLOSED, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

#endif

static void post_receives(void *state)
{
  State *s = state;
  for (int i = 0; !COMMODEL_SIMULATED && s->rank == 0 && i < s->senders; i++)
    MPI_TRY(MPI_Irecv(NULL, 0, MPI_BYTE, i + 1, DONE, MPI_COMM_WORLD, &s->done[i]));
}

static void pass(void *state)
{
  State *s = state;
  s->sample++;
  if (s->rank == 0) receive_all(s);
  if (s->rank > 0 && s->rank <= s->senders) send_all(s);
}

static void cleanup(void *state)
{
  State *s = state;
#if !COMMODEL_SIMULATED
  close(s->fd);
#endif
  free(s->buffer);
  free(s->arrivals);
  free(s->done);
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "flood", .title = "Datagrams until some are lost", .kind = "probe",
      .columns = columns, .ncolumns = 4, .min_ranks = 2, .timing = TIMED_BY_HARNESS, .counts = true,
      .check = check, .prepare = prepare, .before_alignment = post_receives, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
