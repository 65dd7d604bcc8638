/* schedule.h: a communication pattern as rank 0 reads it from a file, and the part of it that one rank plays. */
#ifndef COMMODEL_SCHEDULE_H
#define COMMODEL_SCHEDULE_H

#include "harness.h"

typedef enum { RECEIVE, SEND, REDUCE, COPY, COMPUTE, RESULT } OpKind; /* RECEIVE is a send's other end */

/* Bytes of the operation's data, whose addresses all ranks share. */
typedef struct {
  long long first; /* address */
  int length;
} DataRun;

typedef struct {
  int step, rank, peer; /* peer: the other end of a message */
  int bytes;            /* not of compute */
  int row;              /* row of the file, from 0; names the message */
  int kind;
  int run, runs;  /* what the message holds, or what must be right in the end: a part of the array of runs */
  double seconds; /* compute */
} Op;

typedef struct {
  Op *rows; /* as in the file, messages as SEND */
  DataRun *runs;
  int count, nruns, ranks;
} Schedule;

Schedule read_schedule(const char *path); /* dies by user_error */
void free_schedule(Schedule *schedule);

/* What one rank does: its ops in file order, first those that are played, then RESULTs. */
typedef struct {
  Op *ops;
  DataRun *runs;
  int count, results;
  int ranks; /* of the schedule */
} Part;
/* Collective. Rank 0 gives the schedule, the others an empty one; O(rows) once. */
Part deal_schedule(const Schedule *schedule, int rank, int ranks);
void free_part(Part *part);

/* One step of one rank: ops [first, sends) are receives, [sends, works) sends, [works, end) local work. */
typedef struct {
  int first, sends, works, end;
} Step;
Step *group_steps(Op *ops, int count, int *steps); /* reorders each step to receives, sends, work, stably */

/* ---- payload.c: what messages hold in the pass that is checked ---- */
typedef struct Payload Payload;
/* `sums`: the ranks' own data are added up on the way, and RESULTs tell where the sum must be in the end. */
Payload *open_payload(const Part *part, int rank, bool sums);
void pack(const Payload *payload, const Op *op, char *message);
/* What has arrived takes the place of what was there or, where the rank combines, is added to it. False when wrong. */
bool unpack(Payload *payload, const Op *op, const char *message, bool combines);
bool results_are_exact(const Payload *payload);
void close_payload(Payload *payload);

#endif
