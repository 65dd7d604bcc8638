/* Plays a schedule on paper in the order of time: the same, to the bit, as models/pricing/intime.py does in Python,
 * which says what it means. Messages, ranks, lines and places (steps in which a rank does something) are numbered;
 * what belongs to each is a run of a column that `first` of it and of the next one bound. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"

const int commodel_prices_form = 3; /* of the structures below: Python loads no library of another one */

typedef struct {
    const int64_t *rows, *first;
} Runs;

typedef struct {
    int64_t ranks, messages, lines, in_turn;
    const int64_t *places; /* of the ranks, one more than there are */
    Runs posted, opened, taken, finished;
    const int64_t *src, *dst, *pair;
    const uint8_t *asks;
    Runs passed; /* lines that a message passes */
    const int64_t *opposite; /* of each line the one that leads the other way, or -1 */
} Program;

typedef struct {
    const double *send, *receive, *wire, *alone, *seconds, *work; /* seconds: of each of the passed */
    double back;
} Costs;

/* All that is asked of a message at a time, side by side: a line of a cache. */
typedef struct {
    double time;  /* when one of its ends was ready, of one that asks; then when it begins, then when it is through */
    int64_t turn; /* of those that begin at one time, which is first */
    double wire, receive, alone;
    int64_t uses; /* its first one */
    int32_t src, dst;
    int32_t still; /* lines that it is on */
    uint8_t met, queued, arrived, wanted; /* wanted: 1 by its receiver, 2 by its sender */
} Message;

typedef struct {
    int64_t line;
    double seconds;
} Use;

typedef struct {
    double time, receive;
} Arrival;

typedef struct {
    const Program *program;
    const Costs *costs;
    double *done;
    Arrival *arrivals;
    Message *messages;
    Use *uses;
    int64_t *place, *lacking, *leaving;
    int64_t *queue, *posted; /* of a rank's messages, as posted: the next one to begin, and how many are posted */
    int64_t *next, *head, *tail; /* of a pair of ranks that send in turn: who is on its way, and who waits */
    uint8_t *entered;
    Network network;
    Heap coming; /* messages that begin; of those that a rank sends at once, the next one */
    int64_t turn;
} Play;

static int expect(Play *play, double time, int64_t message)
{
    return push(&play->coming, (Event){time, ++play->turn, message});
}

/* A message that leaves when it is posted: ranks post in the order of time, so it begins no sooner than those before it,
 * and waits in line where it is not the first. */
static int enqueue(Play *play, int64_t rank, double time, int64_t at)
{
    const int64_t *rows = play->program->posted.rows;
    Message *message = &play->messages[rows[at]], *last = NULL;
    int waiting = play->queue[rank] < play->posted[rank];
    if (waiting)
        last = &play->messages[rows[play->posted[rank] - 1]];
    if (waiting && time < last->time)
        return expect(play, time, rows[at]);
    message->queued = 1;
    message->time = time;
    message->turn = ++play->turn;
    if (!waiting)
        play->queue[rank] = at;
    play->posted[rank] = at + 1;
    return waiting ? 0 : push(&play->coming, (Event){time, message->turn, rows[at]});
}

static int meet(Play *play, int64_t number, double time)
{
    Message *message = &play->messages[number];
    if (!message->met) {
        message->met = 1;
        message->time = time;
        return 0;
    }
    return expect(play, time > message->time ? time : message->time, number);
}

static int post(Play *play, int64_t rank, int64_t place)
{
    const Program *program = play->program;
    double time = play->done[rank];
    for (int64_t at = program->opened.first[place]; at < program->opened.first[place + 1]; at++)
        if (meet(play, program->opened.rows[at], time))
            return -1;
    for (int64_t at = program->posted.first[place]; at < program->posted.first[place + 1]; at++) {
        int64_t message = program->posted.rows[at];
        time += play->costs->send[message];
        if (program->asks[message] ? meet(play, message, time) : enqueue(play, rank, time, at))
            return -1;
    }
    play->done[rank] = time;
    return 0;
}

static void want(Play *play, Runs runs, int64_t place, int64_t rank, uint8_t end)
{
    for (int64_t at = runs.first[place]; at < runs.first[place + 1]; at++)
        if (!play->messages[runs.rows[at]].arrived) {
            play->messages[runs.rows[at]].wanted |= end;
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

/* Through all steps of a rank until it waits for something. */
static int go_on(Play *play, int64_t rank)
{
    const Program *program = play->program;
    while (play->place[rank] < program->places[rank + 1]) {
        int64_t place = play->place[rank];
        if (!play->entered[rank]) {
            play->entered[rank] = 1;
            if (post(play, rank, place))
                return -1;
            want(play, program->taken, place, rank, 1);
            want(play, program->finished, place, rank, 2);
        }
        if (play->lacking[rank])
            return 0;
        double time = play->done[rank];
        int64_t first = program->taken.first[place], count = program->taken.first[place + 1] - first;
        for (int64_t at = 0; at < count; at++) {
            const Message *message = &play->messages[program->taken.rows[first + at]];
            play->arrivals[at] = (Arrival){message->time + message->wire, message->receive};
        }
        if (count > 1)
            qsort(play->arrivals, (size_t)count, sizeof *play->arrivals, ascending);
        for (int64_t at = 0; at < count; at++)
            time = (play->arrivals[at].time > time ? play->arrivals[at].time : time) + play->arrivals[at].receive;
        for (int64_t at = program->finished.first[place]; at < program->finished.first[place + 1]; at++)
            if (play->messages[program->finished.rows[at]].time > time)
                time = play->messages[program->finished.rows[at]].time;
        play->done[rank] = time + play->costs->work[place];
        play->place[rank] = place + 1;
        play->entered[rank] = 0;
    }
    return 0;
}

static int arrive(Play *play, int64_t number, double time)
{
    const Program *program = play->program;
    Message *message = &play->messages[number];
    message->time = time;
    message->arrived = 1;
    if (program->in_turn) {
        int64_t *head = &play->head[program->pair[number]];
        *head = play->next[number];
        if (*head >= 0 && expect(play, time, *head))
            return -1;
    }
    int64_t dst = message->dst, src = message->src;
    if ((message->wanted & 1) && --play->lacking[dst] == 0 && go_on(play, dst))
        return -1;
    return (message->wanted & 2) && --play->lacking[src] == 0 ? go_on(play, src) : 0;
}

/* Takes the message that begins first from those that are to come, and puts the next one of its rank in its place. */
static Event next_to_begin(Play *play)
{
    Event first = play->coming.events[0];
    Message *messages = play->messages;
    if (!messages[first.number].queued) {
        drop_first(&play->coming);
        return first;
    }
    const int64_t *rows = play->program->posted.rows;
    int64_t rank = play->messages[first.number].src, at = play->queue[rank] + 1;
    while (at < play->posted[rank] && !messages[rows[at]].queued)
        at++;
    play->queue[rank] = at;
    messages[first.number].queued = 0;
    if (at < play->posted[rank])
        replace_first(&play->coming, (Event){messages[rows[at]].time, messages[rows[at]].turn, rows[at]});
    else
        drop_first(&play->coming);
    return first;
}

static int begin(Play *play, int64_t number, double time)
{
    const Program *program = play->program;
    if (program->in_turn) {
        int64_t pair = program->pair[number];
        if (play->head[pair] < 0) {
            play->head[pair] = play->tail[pair] = number;
        } else if (play->head[pair] != number) { /* it waits for its turn */
            play->next[play->tail[pair]] = number;
            play->tail[pair] = number;
            return 0;
        }
    }
    Message *message = &play->messages[number];
    message->time = time;
    if (message->still == 0)
        return arrive(play, number, time + message->alone);
    const Use *use = &play->uses[message->uses], *end = use + message->still;
    for (; use < end; use++)
        join(&play->network, use->line, number, use->seconds, time, &play->turn);
    return 0;
}

static int on_line(Play *play, int64_t number, double time)
{
    Message *message = &play->messages[number];
    if (--message->still)
        return 0;
    double alone = message->time + message->alone;
    return arrive(play, number, time < alone ? alone : time);
}

static int pass_on(Play *play)
{
    double time = play->network.due.events[0].time;
    int64_t count = serve(&play->network, play->leaving, &play->turn);
    for (int64_t at = 0; at < count; at++)
        if (on_line(play, play->leaving[at], time))
            return -1;
    return 0;
}

static int run(Play *play)
{
    for (int64_t rank = 0; rank < play->program->ranks; rank++)
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
    for (int64_t rank = 0; rank < play->program->ranks; rank++)
        if (play->place[rank] != play->program->places[rank + 1])
            return 1;
    return 0;
}

static void prepare(Play *play)
{
    const Program *program = play->program;
    memcpy(play->place, program->places, (size_t)program->ranks * sizeof *play->place);
    const Costs *costs = play->costs;
    int64_t used = 0;
    for (int64_t number = 0; number < program->messages; number++) {
        Message *message = &play->messages[number];
        message->wire = costs->wire[number];
        message->receive = costs->receive[number];
        message->alone = costs->alone[number];
        message->src = (int32_t)program->src[number];
        message->dst = (int32_t)program->dst[number];
        message->uses = used;
        if (program->in_turn)
            play->next[number] = play->head[number] = -1;
        for (int64_t at = program->passed.first[number]; at < program->passed.first[number + 1]; at++)
            if (costs->seconds[at] != 0.0) {
                play->uses[used++] = (Use){program->passed.rows[at], costs->seconds[at]};
                play->network.lines[program->passed.rows[at]].room++;
            }
        message->still = (int32_t)(used - message->uses);
    }
    int64_t room = 0;
    for (int64_t line = 0; line < program->lines; line++) {
        Line *own = &play->network.lines[line];
        own->opposite = program->opposite[line];
        own->first = own->last = room;
        room += own->room;
        own->room = room - 1;
    }
}

/* When each rank is done. 0; 1: ranks wait for each other; -1: no memory. */
int commodel_in_time(const Program *program, const Costs *costs, double *done)
{
    size_t ranks = (size_t)program->ranks + 1, messages = (size_t)program->messages + 1;
    size_t passed = (size_t)program->passed.first[program->messages] + 1, lines = (size_t)program->lines + 1;
    size_t waiting = program->in_turn ? messages : 0;
    Play play = {.program = program, .costs = costs, .done = done};
    int64_t *counts = calloc(4 * ranks + messages + 3 * waiting, sizeof *counts);
    play.messages = calloc(messages, sizeof *play.messages);
    play.uses = malloc(passed * sizeof *play.uses);
    play.arrivals = malloc(messages * sizeof *play.arrivals);
    play.entered = calloc(ranks, 1);
    Network *network = &play.network;
    network->back = costs->back;
    network->lines = calloc(lines, sizeof *network->lines);
    network->users = malloc(passed * sizeof *network->users);
    network->due.events = malloc(lines * sizeof *network->due.events);
    int failed = -1;
    if (counts && play.messages && play.uses && play.arrivals && play.entered && network->lines && network->users &&
        network->due.events) {
        play.place = counts, play.lacking = counts + ranks;
        play.queue = counts + 2 * ranks, play.posted = counts + 3 * ranks, play.leaving = counts + 4 * ranks;
        play.next = play.leaving + messages, play.head = play.next + waiting, play.tail = play.head + waiting;
        memset(done, 0, (size_t)program->ranks * sizeof *done);
        prepare(&play);
        failed = run(&play);
    }
    free(counts), free(play.messages), free(play.uses), free(play.arrivals), free(play.entered);
    free(network->lines), free(network->users), free(network->due.events), free(play.coming.events);
    return failed;
}
