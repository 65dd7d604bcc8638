/* schedule.h: a communication pattern as rank 0 reads it from a file, and the part of it that one rank plays. */
#ifndef COMMODEL_SCHEDULE_H
#define COMMODEL_SCHEDULE_H

#include "harness.h"

typedef enum { RECEIVE, SEND, REDUCE, COPY, COMPUTE } OpKind; /* RECEIVE is a send's other end */

typedef struct {
  int step, rank, peer; /* peer: the other end of a message */
  int bytes;            /* not of compute */
  int row;              /* row of the file, from 0; names the message */
  int kind;
  double seconds; /* compute */
} Op;

typedef struct {
  Op *rows; /* as in the file, messages as SEND */
  int count, ranks;
} Schedule;

Schedule read_schedule(const char *path); /* dies by user_error */
void free_schedule(Schedule *schedule);

/* Collective. Rank 0 gives the schedule, the others NULL; every rank gets its own ops in file order, O(rows) once. */
Op *deal_schedule(const Schedule *schedule, int rank, int ranks, int *count);

/* One step of one rank: ops [first, sends) are receives, [sends, works) sends, [works, end) local work. */
typedef struct {
  int first, sends, works, end;
} Step;
Step *group_steps(Op *ops, int count, int *steps); /* reorders each step to receives, sends, work, stably */

#endif
