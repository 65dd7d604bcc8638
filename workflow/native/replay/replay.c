/* replay.c: replays a schedule step by step by the rules of models/evaluation/replay.py, and computes the finish time of
 * each rank. Each draw of the parameters at each message size is a machine with its own clocks. A rank adds the times of
 * its messages in their order, so that its result does not depend on other ranks, to the last digit. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SEND_POSTED, RECEIVE_POSTED, MATCHED, RECEIVE_AWAITED, SEND_AWAITED, WORKED, TIMELINES };
enum {
    SEND, RECEIVE, WIRE, GAP_OUT, GAP_IN, REQUEST, GRANT, WORK, /* seconds, by kind; REQUEST: NaN for messages without one */
    DONE, OUT_FREE, LAST_IN,                                     /* clocks, by rank */
    SEND_END, READY, LINKS_LEFT,                                        /* times of messages; READY: when their receivers posted them */
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
    int (*share)(void); /* sets when the messages of each step, in order, leave shared links; NULL: no sharing */
} Replay;

typedef struct {
    double *columns[COLUMNS];
} Machine;

typedef struct {
    double time;
    int64_t row;
} Arrival;

/* The current step, and buffers to group its messages by receiver. */
typedef struct {
    int64_t begin[TIMELINES], end[TIMELINES];
    Arrival *arrivals, *buffer;
    int64_t *end_of, *receivers; /* end_of: index after each rank's last arrival; 0 between steps */
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
static inline double maximum(double one, double other)
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
    double *done = machine->columns[DONE], *out_free = machine->columns[OUT_FREE], *send_end = machine->columns[SEND_END];
    if (replay->requests)
        for (int64_t at = step->begin[RECEIVE_POSTED]; at < step->end[RECEIVE_POSTED]; at++) {
            int64_t row = row_at(&replay->timelines[RECEIVE_POSTED], at);
            machine->columns[READY][row] = done[replay->dst[row]];
        }
    for (int64_t row = step->begin[SEND_POSTED]; row < step->end[SEND_POSTED]; row++) {
        int64_t rank = replay->src[row];
        double start = maximum(done[rank], out_free[rank]), send = seconds(replay, machine, SEND, row);
        done[rank] += send; /* the processor continues while the port waits for its gap */
        out_free[rank] = start + seconds(replay, machine, GAP_OUT, row);
        send_end[row] = start + send;
    }
    if (replay->requests)
        for (int64_t at = step->begin[MATCHED]; at < step->end[MATCHED]; at++) {
            int64_t row = row_at(&replay->timelines[MATCHED], at);
            double request = seconds(replay, machine, REQUEST, row);
            if (request == request)
                send_end[row] = maximum(send_end[row] + request, machine->columns[READY][row]) + seconds(replay, machine, GRANT, row);
        }
}

/* Stable sort by time. */
static void sort(Arrival *arrivals, int64_t count, Arrival *buffer)
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
    sort(arrivals, half, buffer);
    sort(arrivals + half, count - half, buffer);
    if (!(arrivals[half - 1].time > arrivals[half].time))
        return;
    memcpy(buffer, arrivals, (size_t)half * sizeof *buffer);
    for (int64_t at = 0; one < half; at++)
        arrivals[at] = other < count && buffer[one].time > arrivals[other].time ? arrivals[other++] : buffer[one++];
}

static void receive(const Replay *replay, const Machine *machine, int64_t rank, Arrival arrival)
{
    double *done = &machine->columns[DONE][rank], *last_in = &machine->columns[LAST_IN][rank];
    *last_in = maximum(maximum(arrival.time, *done), *last_in + seconds(replay, machine, GAP_IN, arrival.row));
    *done = *last_in + seconds(replay, machine, RECEIVE, arrival.row);
}

static inline Arrival arrival_at(const Replay *replay, const Machine *machine, int64_t at)
{
    int64_t row = row_at(&replay->timelines[RECEIVE_AWAITED], at);
    return (Arrival){machine->columns[LINKS_LEFT][row] + seconds(replay, machine, WIRE, row), row};
}

static void receive_all(const Replay *replay, const Machine *machine, Step *step)
{
    int64_t begin = step->begin[RECEIVE_AWAITED], end = step->end[RECEIVE_AWAITED], receivers = 0, first = 0;
    for (int64_t at = begin; at < end; at++) {
        int64_t rank = replay->dst[row_at(&replay->timelines[RECEIVE_AWAITED], at)];
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
        sort(step->arrivals + first, last - first, step->buffer);
        for (; first < last; first++)
            receive(replay, machine, rank, step->arrivals[first]);
    }
}

static void complete_sends_and_work(const Replay *replay, const Machine *machine, const Step *step)
{
    double *done = machine->columns[DONE];
    for (int64_t at = step->begin[SEND_AWAITED]; at < step->end[SEND_AWAITED]; at++) {
        int64_t row = row_at(&replay->timelines[SEND_AWAITED], at), rank = replay->src[row];
        done[rank] = maximum(done[rank], machine->columns[SEND_END][row]);
    }
    for (int64_t row = step->begin[WORKED]; row < step->end[WORKED]; row++)
        done[replay->worker[row]] += seconds(replay, machine, WORK, row);
}

/* Replays several machines, step by step. */
static int run(const Replay *replay, const Machine *machines, int64_t count, Step *step)
{
    memset(step->end, 0, sizeof step->end);
    while (next_step(replay, step)) {
        for (int64_t number = 0; number < count; number++)
            post(replay, &machines[number], step);
        if (replay->share && replay->share())
            return -1;
        for (int64_t number = 0; number < count; number++) {
            receive_all(replay, &machines[number], step);
            complete_sends_and_work(replay, &machines[number], step);
        }
    }
    return 0;
}

/* Advances the clocks of all machines. Returns 0; -1: no memory, or `share` failed. */
int commodel_replay(const Replay *replay)
{
    Step step = {0};
    int64_t count = replay->sizes * replay->draws, max_arrivals = 0;
    while (next_step(replay, &step))
        if (step.end[RECEIVE_AWAITED] - step.begin[RECEIVE_AWAITED] > max_arrivals)
            max_arrivals = step.end[RECEIVE_AWAITED] - step.begin[RECEIVE_AWAITED];
    Machine *machines = malloc(((size_t)count + 1) * sizeof *machines);
    step.arrivals = malloc(((size_t)max_arrivals + (size_t)max_arrivals / 2 + 1) * sizeof *step.arrivals); /* arrivals, and the buffer of the merge sort */
    step.end_of = calloc(2 * (size_t)replay->ranks + 1, sizeof *step.end_of);
    int failed = machines == NULL || step.arrivals == NULL || step.end_of == NULL ? -1 : 0;
    if (!failed) {
        step.buffer = step.arrivals + max_arrivals, step.receivers = step.end_of + replay->ranks;
        for (int64_t number = 0; number < count; number++)
            for (int kind = 0; kind < COLUMNS; kind++) {
                const Column *column = &replay->columns[kind];
                int64_t offset = number / replay->draws * column->size + number % replay->draws * column->draw;
                machines[number].columns[kind] = column->numbers ? column->numbers + offset : NULL;
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
