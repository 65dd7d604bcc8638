/* schedule.h: a communication pattern from a file, and the part of it that one rank executes. */
#ifndef COMMODEL_SCHEDULE_H
#define COMMODEL_SCHEDULE_H

#include "harness.h"

typedef enum { RECEIVE, SEND, REDUCE, COPY, COMPUTE, RESULT } OpKind; /* RECEIVE is a send's other end */

/* A run of the operation's data; addresses are equal on all ranks. */
typedef struct {
  long long first; /* address */
  int length;
} DataRun;

typedef struct {
  int step, rank, peer;     /* peer: the other end of a message */
  int wait;                 /* step of the wait; of local work its step */
  int peer_step, peer_wait; /* of a message: steps of the post and wait of the other end */
  int tag;                  /* of a message: its number among those of its two ranks in its direction */
  int bytes;                /* not of compute */
  int row;                  /* row of the file, from 0; identifies the message */
  int kind;
  int run, runs;            /* contents of the message, or of the result: a range of the array of runs */
  double seconds;           /* compute */
} Op;

typedef struct {
  Op *rows; /* as in the file, messages as SEND */
  DataRun *runs;
  int count, nruns, ranks;
} Schedule;

/* ---- schedule.c ---- */
Schedule read_schedule(const char *path); /* dies by user_error */
void free_schedule(Schedule *schedule);

/* ---- deal.c ---- */
/* The ops of one rank in file order: first those that are executed, then RESULTs. */
typedef struct {
  Op *ops;
  DataRun *runs;
  int count, results;
  int ranks; /* of the schedule */
} Part;
/* Collective. Rank 0 passes the schedule, the others an empty one. O(rows). */
Part scatter_schedule(const Schedule *schedule, int rank, int ranks);
void free_part(Part *part);

/* One step of one rank: it posts the receives [first, sends) and the sends [sends, works), waits for the messages
 * [due, due_end) of the order of waiting, and does the local work [works, end). */
typedef struct {
  int first, sends, works, end, due, due_end;
} Step;
/* Sorts ops stably by step, and within a step as receives, sends, work. Sets `waits` to the indices of all messages in
 * the order of waiting. */
Step *group_steps(Op *ops, int count, int *waits, int *steps);

/* ---- arena.c: allocation of messages in one buffer ---- */
typedef struct Arena Arena;
Arena *open_arena(void);
/* Offset of a message that is in flight from `step` to `last_step`; `step` must not decrease from call to call. */
size_t allocate_in_arena(Arena *arena, size_t bytes, int step, int last_step);
size_t close_arena(Arena *arena); /* size of the buffer */

/* ---- payload.c: contents of messages in the checked pass ---- */
typedef struct Payload Payload;
/* `sums`: the operation is a reduction, and RESULTs are the addresses of its result. Every wave has its own data. */
Payload *open_payload(const Part *part, int rank, bool sums, int wave);
void pack(const Payload *payload, const Op *op, char *message);
/* Returns false if a message is not the expected one. In a reduction, received data replace the rank's data or, if
 * `combines`, are added to them; results_are_exact() checks them at the end. */
bool unpack(Payload *payload, const Op *op, const char *message, bool combines);
bool results_are_exact(const Payload *payload);
void close_payload(Payload *payload);

#endif
