/* Replays a schedule step by step by the rules of models/evaluation/replay.py: when each rank is done. Each draw of the
 * parameters at each message size is a machine with clocks of its own. A rank adds its messages in their order, so that
 * its digits do not depend on other ranks. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SENT, OPENED, MET, TAKEN, FINISHED, WORKED, TIMELINES };
enum {
    SEND, RECEIVE, WIRE, GAP_OUT, GAP_IN, REQUEST, GRANT, WORK, /* seconds, by kind; REQUEST: NaN where none is sent */
    DONE, OUT_FREE, LAST_IN,                                     /* clocks, by rank */
    LEFT, READY, THROUGH,                                        /* times of messages; READY: their receivers posted them */
    COLUMNS
};

/* Rows in the order of their steps. */
typedef struct {
    const int64_t *step, *rows; /* rows: NULL if rows are already in that order */
    int64_t count;
} Timeline;

/* Numbers by size, draw and row, with the stride of each. */
typedef struct {
    double *numbers;
    int64_t size, draw, row;
} Column;

typedef struct {
    int64_t ranks, sizes, draws, requests; /* requests: whether any message uses rendezvous */
    const int64_t *src, *dst, *worker;
    const int64_t *kinds; /* the row whose seconds each row takes; NULL: its own */
    Timeline timelines[TIMELINES];
    Column columns[COLUMNS];
    int (*share)(void); /* sets when messages of the next step leave shared links; NULL: no sharing */
} Replay;

typedef struct {
    double *columns[COLUMNS];
} Machine;

typedef struct {
    double time;
    int64_t row;
} Arrival;

/* The current step, and room to group its messages by receiver. */
typedef struct {
    int64_t begin[TIMELINES], end[TIMELINES];
    Arrival *arrivals, *room;
    int64_t *end_of, *receivers; /* of each rank the end of its arrivals; 0 between steps */
} Step;

static inline int64_t row_at(const Timeline *timeline, int64_t at)
{
    return timeline->rows ? timeline->rows[at] : at;
}

static inline double seconds(const Replay *replay, const Machine *machine, int column, int64_t row)
{
    int64_t kind = replay->kinds ? replay->kinds[row] : row;
    return machine->columns[column][kind * replay->columns[column].row];
}

/* The maximum; NaN if one is NaN. */
static inline double later(double one, double other)
{
    return (one > other) | (one != one) ? one : other;
}

/* Moves to the next nonempty step. Returns 0 at the end. */
static int next_step(const Replay *replay, Step *step)
{
    int64_t number = INT64_MAX;
    for (int kind = 0; kind < TIMELINES; kind++) {
        const Timeline *timeline = &replay->timelines[kind];
        int64_t at = step->begin[kind] = step->end[kind];
        if (at < timeline->count && timeline->step[at] < number)
            number = timeline->step[at];
    }
    for (int kind = 0; kind < TIMELINES; kind++) {
        const Timeline *timeline = &replay->timelines[kind];
        if (kind > 0 && timeline->step == replay->timelines->step)
            step->end[kind] = step->end[0];
        while (step->end[kind] < timeline->count && timeline->step[step->end[kind]] == number)
            step->end[kind]++;
    }
    return number < INT64_MAX;
}

static void post(const Replay *replay, const Machine *machine, const Step *step)
{
    double *done = machine->columns[DONE], *out_free = machine->columns[OUT_FREE], *left = machine->columns[LEFT];
    if (replay->requests)
        for (int64_t at = step->begin[OPENED]; at < step->end[OPENED]; at++) {
            int64_t row = row_at(&replay->timelines[OPENED], at);
            machine->columns[READY][row] = done[replay->dst[row]];
        }
    for (int64_t row = step->begin[SENT]; row < step->end[SENT]; row++) {
        int64_t rank = replay->src[row];
        double start = later(done[rank], out_free[rank]), send = seconds(replay, machine, SEND, row);
        done[rank] += send; /* the processor continues while the port waits for its gap */
        out_free[rank] = start + seconds(replay, machine, GAP_OUT, row);
        left[row] = start + send;
    }
    if (replay->requests)
        for (int64_t at = step->begin[MET]; at < step->end[MET]; at++) {
            int64_t row = row_at(&replay->timelines[MET], at);
            double request = seconds(replay, machine, REQUEST, row);
            if (request == request)
                left[row] = later(left[row] + request, machine->columns[READY][row]) + seconds(replay, machine, GRANT, row);
        }
}

/* Stable sort by time. */
static void sort(Arrival *arrivals, int64_t count, Arrival *room)
{
    if (count <= 16) {
        for (int64_t next = 1; next < count; next++) {
            Arrival arrival = arrivals[next];
            int64_t at = next;
            for (; at > 0 && arrivals[at - 1].time > arrival.time; at--)
                arrivals[at] = arrivals[at - 1];
            arrivals[at] = arrival;
        }
        return;
    }
    int64_t half = count / 2, one = 0, other = half;
    sort(arrivals, half, room);
    sort(arrivals + half, count - half, room);
    if (!(arrivals[half - 1].time > arrivals[half].time))
        return;
    memcpy(room, arrivals, (size_t)half * sizeof *room);
    for (int64_t at = 0; one < half; at++)
        arrivals[at] = other < count && room[one].time > arrivals[other].time ? arrivals[other++] : room[one++];
}

static void receive(const Replay *replay, const Machine *machine, int64_t rank, Arrival arrival)
{
    double *done = &machine->columns[DONE][rank], *last_in = &machine->columns[LAST_IN][rank];
    *last_in = later(later(arrival.time, *done), *last_in + seconds(replay, machine, GAP_IN, arrival.row));
    *done = *last_in + seconds(replay, machine, RECEIVE, arrival.row);
}

static inline Arrival arrival_at(const Replay *replay, const Machine *machine, int64_t at)
{
    int64_t row = row_at(&replay->timelines[TAKEN], at);
    return (Arrival){machine->columns[THROUGH][row] + seconds(replay, machine, WIRE, row), row};
}

static void take(const Replay *replay, const Machine *machine, Step *step)
{
    int64_t begin = step->begin[TAKEN], end = step->end[TAKEN], receivers = 0, first = 0;
    for (int64_t at = begin; at < end; at++) {
        int64_t rank = replay->dst[row_at(&replay->timelines[TAKEN], at)];
        if (step->end_of[rank]++ == 0)
            step->receivers[receivers++] = rank;
    }
    if (receivers == end - begin) { /* one each */
        for (int64_t at = begin; at < end; at++) {
            Arrival arrival = arrival_at(replay, machine, at);
            int64_t rank = replay->dst[arrival.row];
            step->end_of[rank] = 0;
            receive(replay, machine, rank, arrival);
        }
        return;
    }
    for (int64_t at = 0; at < receivers; at++) {
        int64_t *end_of = &step->end_of[step->receivers[at]], count = *end_of;
        *end_of = first;
        first += count;
    }
    for (int64_t at = begin; at < end; at++) {
        Arrival arrival = arrival_at(replay, machine, at);
        step->arrivals[step->end_of[replay->dst[arrival.row]]++] = arrival;
    }
    first = 0;
    for (int64_t at = 0; at < receivers; at++) {
        int64_t rank = step->receivers[at], last = step->end_of[rank];
        step->end_of[rank] = 0;
        sort(step->arrivals + first, last - first, step->room);
        for (; first < last; first++)
            receive(replay, machine, rank, step->arrivals[first]);
    }
}

static void finish(const Replay *replay, const Machine *machine, const Step *step)
{
    double *done = machine->columns[DONE];
    for (int64_t at = step->begin[FINISHED]; at < step->end[FINISHED]; at++) {
        int64_t row = row_at(&replay->timelines[FINISHED], at), rank = replay->src[row];
        done[rank] = later(done[rank], machine->columns[LEFT][row]);
    }
    for (int64_t row = step->begin[WORKED]; row < step->end[WORKED]; row++)
        done[replay->worker[row]] += seconds(replay, machine, WORK, row);
}

/* Runs machines together, step by step. */
static int run(const Replay *replay, const Machine *machines, int64_t count, Step *step)
{
    memset(step->end, 0, sizeof step->end);
    while (next_step(replay, step)) {
        for (int64_t number = 0; number < count; number++)
            post(replay, &machines[number], step);
        if (replay->share && replay->share())
            return -1;
        for (int64_t number = 0; number < count; number++) {
            take(replay, &machines[number], step);
            finish(replay, &machines[number], step);
        }
    }
    return 0;
}

/* Moves the clocks of all machines. Returns 0; -1: no memory, or `share` failed. */
int commodel_replay(const Replay *replay)
{
    Step step = {0};
    int64_t count = replay->sizes * replay->draws, most = 0;
    while (next_step(replay, &step))
        if (step.end[TAKEN] - step.begin[TAKEN] > most)
            most = step.end[TAKEN] - step.begin[TAKEN];
    Machine *machines = malloc(((size_t)count + 1) * sizeof *machines);
    step.arrivals = malloc(((size_t)most + (size_t)most / 2 + 1) * sizeof *step.arrivals); /* room: buffer of the merge sort */
    step.end_of = calloc(2 * (size_t)replay->ranks + 1, sizeof *step.end_of);
    int failed = machines == NULL || step.arrivals == NULL || step.end_of == NULL ? -1 : 0;
    if (!failed) {
        step.room = step.arrivals + most, step.receivers = step.end_of + replay->ranks;
        for (int64_t number = 0; number < count; number++)
            for (int kind = 0; kind < COLUMNS; kind++) {
                const Column *column = &replay->columns[kind];
                int64_t before = number / replay->draws * column->size + number % replay->draws * column->draw;
                machines[number].columns[kind] = column->numbers ? column->numbers + before : NULL;
            }
        if (replay->share)
            failed = run(replay, machines, count, &step);
        else
            for (int64_t number = 0; number < count && !failed; number++)
                failed = run(replay, &machines[number], 1, &step);
    }
    free(machines), free(step.arrivals), free(step.end_of);
    return failed;
}
