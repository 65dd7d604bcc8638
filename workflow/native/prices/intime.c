/* Plays a schedule on paper in the order of time: the same, to the bit, as models/pricing/intime.py does in Python,
 * which says what it means. Messages, ranks, lines and places (steps in which a rank does something) are numbered;
 * what belongs to each is a run of a column that `first` of it and of the next one bound. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

const int commodel_prices_form = 5; /* of the structures below: Python loads no library of another one */

typedef struct {
    double time, receive;
} Arrival;

/* Fills in a part. Of parts before `oldest` nothing is needed any more. 0, or -1. */
typedef int (*Feed)(int64_t part, int64_t oldest, const Program **program, const Costs **costs);

/* Where a rank is in its messages, as it posts them. */
typedef struct {
    int64_t part, at;
} Position;

typedef struct {
    Feed feed;
    Part *parts;
    int64_t ranks, count, oldest; /* count: of parts; those before the oldest are no longer there */
    int shift;                    /* of a message's number these bits are its row, the others its part */
    double *done;
    Arrival *arrivals;
    int64_t arrivals_room, leaving_room;
    int64_t *part, *place, *lacking, *leaving;
    Position *queue, *posted;    /* the next message of a rank to begin, and where those end that are posted */
    int64_t *next, *head, *tail; /* of a pair of ranks that send in turn: who is on its way, and who waits */
    uint8_t *entered;
    Network network;
    Heap coming; /* messages that begin; of those that a rank sends at once, the next one */
    int64_t turn;
} Play;

static inline Message *message_of(const Play *play, int64_t number)
{
    return &play->parts[number >> play->shift].messages[number & (((int64_t)1 << play->shift) - 1)];
}

static inline int64_t number_at(const Play *play, Position here)
{
    return here.part << play->shift | play->parts[here.part].program->posted.rows[here.at];
}

static int expect(Play *play, double time, int64_t message)
{
    return push(&play->coming, (Event){time, ++play->turn, message});
}

/* A message that leaves when it is posted: ranks post in the order of time, so it begins no sooner than those before it,
 * and waits in line where it is not the first. */
static int enqueue(Play *play, int64_t rank, double time, Position here)
{
    int64_t number = number_at(play, here);
    Position *posted = &play->posted[rank], *queue = &play->queue[rank];
    int waiting = queue->part < posted->part || queue->at < posted->at;
    if (waiting && time < message_of(play, number_at(play, (Position){posted->part, posted->at - 1}))->time)
        return expect(play, time, number);
    Message *message = message_of(play, number);
    message->queued = 1;
    message->time = time;
    message->turn = ++play->turn;
    if (!waiting)
        *queue = here;
    *posted = (Position){here.part, here.at + 1};
    return waiting ? 0 : push(&play->coming, (Event){time, message->turn, number});
}

static int meet(Play *play, int64_t number, double time)
{
    Message *message = message_of(play, number);
    if (!message->met) {
        message->met = 1;
        message->time = time;
        return 0;
    }
    return expect(play, time > message->time ? time : message->time, number);
}

static int post(Play *play, int64_t rank, int64_t place)
{
    const Part *part = &play->parts[play->part[rank]];
    const Program *program = part->program;
    int64_t base = play->part[rank] << play->shift;
    double time = play->done[rank];
    for (int64_t at = program->opened.first[place]; at < program->opened.first[place + 1]; at++)
        if (meet(play, base | program->opened.rows[at], time))
            return -1;
    for (int64_t at = program->posted.first[place]; at < program->posted.first[place + 1]; at++) {
        int64_t row = program->posted.rows[at];
        time += part->costs->send[row];
        Position here = {play->part[rank], at};
        if (program->asks[row] ? meet(play, base | row, time) : enqueue(play, rank, time, here))
            return -1;
    }
    play->done[rank] = time;
    return 0;
}

static void want(Play *play, Message *messages, Runs runs, int64_t place, int64_t rank, uint8_t end)
{
    for (int64_t at = runs.first[place]; at < runs.first[place + 1]; at++)
        if (!messages[runs.rows[at]].arrived) {
            messages[runs.rows[at]].wanted |= end;
            play->lacking[rank]++;
        }
}

static int ascending(const void *one, const void *two)
{
    const Arrival *a = one, *b = two;
    if (a->time != b->time)
        return a->time > b->time ? 1 : -1;
    return (a->receive > b->receive) - (a->receive < b->receive);
}

static int load_part(Play *play, int64_t number);

/* From the end of its part of the program to its next one. */
static int next_part(Play *play, int64_t rank)
{
    int64_t number = ++play->part[rank];
    if (number == play->count)
        return 0;
    if (play->parts[number].program == NULL && load_part(play, number))
        return -1;
    play->place[rank] = play->parts[number].program->places[rank];
    return 0;
}

/* Through all steps of a rank until it waits for something. */
static int go_on(Play *play, int64_t rank)
{
    while (play->part[rank] < play->count) {
        const Part *part = &play->parts[play->part[rank]];
        const Program *program = part->program;
        int64_t place = play->place[rank];
        if (place == program->places[rank + 1]) {
            if (next_part(play, rank))
                return -1;
            continue;
        }
        if (!play->entered[rank]) {
            play->entered[rank] = 1;
            if (post(play, rank, place))
                return -1;
            want(play, part->messages, program->taken, place, rank, 1);
            want(play, part->messages, program->finished, place, rank, 2);
        }
        if (play->lacking[rank])
            return 0;
        double time = play->done[rank];
        int64_t first = program->taken.first[place], count = program->taken.first[place + 1] - first;
        for (int64_t at = 0; at < count; at++) {
            const Message *message = &part->messages[program->taken.rows[first + at]];
            play->arrivals[at] = (Arrival){message->time + message->wire, message->receive};
        }
        if (count > 1)
            qsort(play->arrivals, (size_t)count, sizeof *play->arrivals, ascending);
        for (int64_t at = 0; at < count; at++)
            time = (play->arrivals[at].time > time ? play->arrivals[at].time : time) + play->arrivals[at].receive;
        for (int64_t at = program->finished.first[place]; at < program->finished.first[place + 1]; at++)
            if (part->messages[program->finished.rows[at]].time > time)
                time = part->messages[program->finished.rows[at]].time;
        play->done[rank] = time + part->costs->work[place];
        play->place[rank] = place + 1;
        play->entered[rank] = 0;
    }
    return 0;
}

static int arrive(Play *play, int64_t number, double time)
{
    Message *message = message_of(play, number);
    message->time = time;
    message->arrived = 1;
    if (play->head) {
        int64_t *head = &play->head[play->parts->program->pair[number]];
        *head = play->next[number];
        if (*head >= 0 && expect(play, time, *head))
            return -1;
    }
    int64_t dst = message->dst, src = message->src;
    int sender_waits = message->wanted & 2; /* when the receiver has gone on the message may be no longer there */
    if ((message->wanted & 1) && --play->lacking[dst] == 0 && go_on(play, dst))
        return -1;
    return sender_waits && --play->lacking[src] == 0 ? go_on(play, src) : 0;
}

/* Takes the message that begins first from those that are to come, and puts the next one of its rank in its place. */
static Event next_to_begin(Play *play)
{
    Event first = play->coming.events[0];
    Message *message = message_of(play, first.number);
    if (!message->queued) {
        drop_first(&play->coming);
        return first;
    }
    message->queued = 0;
    int64_t rank = message->src;
    Position *queue = &play->queue[rank], posted = play->posted[rank];
    for (queue->at++; queue->part < posted.part || queue->at < posted.at; queue->at++) {
        const Program *program = play->parts[queue->part].program;
        while (queue->at == program->posted.first[program->places[rank + 1]]) {
            program = play->parts[++queue->part].program;
            queue->at = program->posted.first[program->places[rank]];
        }
        int64_t number = number_at(play, *queue);
        if ((message = message_of(play, number))->queued) {
            replace_first(&play->coming, (Event){message->time, message->turn, number});
            return first;
        }
    }
    drop_first(&play->coming);
    return first;
}

static int begin(Play *play, int64_t number, double time)
{
    if (play->head) {
        int64_t pair = play->parts->program->pair[number];
        if (play->head[pair] < 0) {
            play->head[pair] = play->tail[pair] = number;
        } else if (play->head[pair] != number) { /* it waits for its turn */
            play->next[play->tail[pair]] = number;
            play->tail[pair] = number;
            return 0;
        }
    }
    Message *message = message_of(play, number);
    message->time = time;
    if (message->still == 0)
        return arrive(play, number, time + message->alone);
    const Use *use = &play->parts[number >> play->shift].uses[message->uses], *end = use + message->still;
    for (; use < end; use++)
        if (join(&play->network, use->line, number, use->seconds, time, &play->turn))
            return -1;
    return 0;
}

static int on_line(Play *play, int64_t number, double time)
{
    Message *message = message_of(play, number);
    if (--message->still)
        return 0;
    double alone = message->time + message->alone;
    return arrive(play, number, time < alone ? alone : time);
}

static int pass_on(Play *play)
{
    const Event *first = &play->network.due.events[0];
    double time = first->time;
    int64_t most = play->network.lines[first->number].count;
    if (most > play->leaving_room) {
        int64_t *wider = realloc(play->leaving, 2 * (size_t)most * sizeof *wider);
        if (wider == NULL)
            return -1;
        play->leaving = wider;
        play->leaving_room = 2 * most;
    }
    int64_t count = serve(&play->network, play->leaving, &play->turn);
    if (count < 0)
        return -1;
    for (int64_t at = 0; at < count; at++)
        if (on_line(play, play->leaving[at], time))
            return -1;
    return 0;
}

static int run(Play *play)
{
    for (int64_t rank = 0; rank < play->ranks; rank++)
        if (go_on(play, rank))
            return -1;
    Heap *coming = &play->coming, *due = &play->network.due;
    while (coming->count > 0 || due->count > 0) {
        if (coming->count > 0 && (due->count == 0 || before(&coming->events[0], &due->events[0]))) {
            Event event = next_to_begin(play);
            if (begin(play, event.number, event.time))
                return -1;
        } else if (in_order(&play->network) && pass_on(play)) {
            return -1;
        }
    }
    for (int64_t rank = 0; rank < play->ranks; rank++)
        if (play->part[rank] < play->count)
            return 1;
    return 0;
}

/* 0, or -1. */
static int prepare(Play *play, Part *part)
{
    const Program *program = part->program;
    int64_t most = 0;
    if (copy_messages(part))
        return -1;
    for (int64_t place = 0; place < program->places[program->ranks]; place++)
        if (program->taken.first[place + 1] - program->taken.first[place] > most)
            most = program->taken.first[place + 1] - program->taken.first[place];
    if (most > play->arrivals_room) {
        Arrival *wider = realloc(play->arrivals, (size_t)most * sizeof *wider);
        if (wider == NULL)
            return -1;
        play->arrivals = wider;
        play->arrivals_room = most;
    }
    return 0;
}

/* A part that some rank comes to; those are forgotten that all ranks have left. */
static int load_part(Play *play, int64_t number)
{
    int64_t oldest = number;
    for (int64_t rank = 0; rank < play->ranks; rank++)
        if (play->part[rank] < oldest)
            oldest = play->part[rank];
    for (; play->oldest < oldest; play->oldest++)
        forget(&play->parts[play->oldest]);
    Part *part = &play->parts[number];
    return play->feed(number, oldest, &part->program, &part->costs) ? -1 : prepare(play, part);
}

static int play_all(Play *play)
{
    size_t ranks = (size_t)play->ranks + 1;
    const Program *program = play->parts->program;
    size_t lines = (size_t)program->lines + 1, waiting = program->in_turn ? (size_t)program->messages + 1 : 0;
    Network *network = &play->network;
    play->part = calloc(3 * ranks + 3 * waiting, sizeof *play->part);
    play->queue = calloc(2 * ranks, sizeof *play->queue);
    play->entered = calloc(ranks, 1);
    network->back = play->parts->costs->back;
    network->lines = calloc(lines, sizeof *network->lines);
    network->users = program->bundled ? calloc((size_t)program->bundled, sizeof *network->users) : NULL;
    int failed = -1;
    if (play->part && play->queue && play->entered && network->lines && (network->users || !program->bundled) &&
        prepare(play, play->parts) == 0) {
        play->place = play->part + ranks, play->lacking = play->place + ranks, play->posted = play->queue + ranks;
        if (waiting) {
            play->next = play->lacking + ranks, play->head = play->next + waiting, play->tail = play->head + waiting;
            memset(play->next, -1, 2 * waiting * sizeof *play->next);
        }
        network->passed = program->bundles, network->meets = program->meets;
        network->opposite = program->opposite, network->seconds = play->parts->costs->bundles;
        for (int64_t line = 0; line < program->lines; line++)
            network->lines[line].opposite = program->bundled ? -1 : program->opposite[line];
        memcpy(play->place, program->places, (size_t)play->ranks * sizeof *play->place);
        memset(play->done, 0, (size_t)play->ranks * sizeof *play->done);
        failed = run(play);
    }
    for (size_t line = 0; network->lines && line < lines; line++)
        free(network->lines[line].queue), free(network->lines[line].heap);
    for (int64_t number = 0; number < play->count; number++)
        forget(&play->parts[number]);
    free(play->part), free(play->queue), free(play->entered), free(play->leaving), free(play->arrivals);
    free(network->lines), free(network->users), free(network->due.events), free(play->coming.events);
    return failed;
}

/* When each rank is done. 0; 1: ranks wait for each other; -1: no memory. */
int commodel_in_time(const Program *program, const Costs *costs, double *done)
{
    Part whole = {.program = program, .costs = costs};
    Play play = {.parts = &whole, .ranks = program->ranks, .count = 1, .shift = 62, .done = done};
    return play_all(&play);
}

/* The same of a program in so many parts, each of no more than 2^shift messages, none of which go in turn. */
int commodel_in_parts(Feed feed, int64_t count, int shift, double *done)
{
    Part *parts = calloc((size_t)count, sizeof *parts);
    if (parts == NULL)
        return -1;
    int failed = feed(0, 0, &parts->program, &parts->costs);
    if (!failed) {
        Play play = {.feed = feed, .parts = parts, .count = count, .shift = shift, .done = done};
        play.ranks = parts->program->ranks;
        failed = play_all(&play);
    }
    free(parts);
    return failed;
}
