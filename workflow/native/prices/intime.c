/* Plays a schedule on paper in the order of time: the same, to the bit, as models/pricing/intime.py does in Python,
 * which says what it means. Messages, ranks, lines and places (steps in which a rank does something) are numbered;
 * what belongs to each is a run of a column that `first` of it and of the next one bound. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDING 1e-12 /* as in Python */

const int commodel_prices_form = 1; /* of the structures below: Python loads no library of another one */

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
} Program;

typedef struct {
    double send, receive;
    const double *wire, *alone, *seconds, *work; /* seconds: of each of the passed */
} Costs;

typedef struct {
    double time;
    int64_t turn, number, line; /* a message that begins, or of a line after how many changes its next is through */
} Event;

typedef struct {
    double until;
    int64_t message;
} User;

typedef struct {
    double served, since;
    int64_t changes, count, room; /* its users are from `room` on */
} Line;

typedef struct {
    const Program *program;
    const Costs *costs;
    double *done, *through, *half, *begun, *arrivals;
    int64_t *place, *lacking, *still, *leaving;
    int64_t *next, *head, *tail; /* of a pair of ranks that send in turn: who is on its way, and who waits */
    uint8_t *entered, *met, *arrived, *wanted; /* wanted: 1 by its receiver, 2 by its sender */
    Line *lines;
    User *users;
    Event *coming;
    int64_t count, room, turn;
} Play;

static int before(const Event *one, const Event *two)
{
    return one->time < two->time || (one->time == two->time && one->turn < two->turn);
}

static int expect(Play *play, double time, int64_t number, int64_t line)
{
    if (play->count == play->room) {
        int64_t room = 2 * play->room + 1024;
        Event *more = realloc(play->coming, (size_t)room * sizeof *more);
        if (more == NULL)
            return -1;
        play->coming = more;
        play->room = room;
    }
    Event event = {time, ++play->turn, number, line};
    int64_t at = play->count++;
    for (; at > 0 && before(&event, &play->coming[(at - 1) / 2]); at = (at - 1) / 2)
        play->coming[at] = play->coming[(at - 1) / 2];
    play->coming[at] = event;
    return 0;
}

static Event pop(Play *play)
{
    Event first = play->coming[0], last = play->coming[--play->count];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < play->count; at = child) {
        if (child + 1 < play->count && before(&play->coming[child + 1], &play->coming[child]))
            child++;
        if (!before(&play->coming[child], &last))
            break;
        play->coming[at] = play->coming[child];
    }
    play->coming[at] = last;
    return first;
}

static int sooner(const User *one, const User *two)
{
    return one->until < two->until || (one->until == two->until && one->message < two->message);
}

static int next_of(Play *play, int64_t number, double time)
{
    Line *line = &play->lines[number];
    line->since = time;
    line->changes++;
    return expect(play, time + (play->users[line->room].until - line->served) * (double)line->count, line->changes, number);
}

static int join(Play *play, int64_t number, int64_t message, double seconds, double time)
{
    Line *line = &play->lines[number];
    User *users = play->users + line->room;
    line->served = line->count ? line->served + (time - line->since) / (double)line->count : 0.0;
    User user = {line->served + seconds, message};
    int64_t at = line->count++;
    for (; at > 0 && sooner(&user, &users[(at - 1) / 2]); at = (at - 1) / 2)
        users[at] = users[(at - 1) / 2];
    users[at] = user;
    return next_of(play, number, time);
}

static User leave(Play *play, Line *line)
{
    User *users = play->users + line->room;
    User first = users[0], last = users[--line->count];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < line->count; at = child) {
        if (child + 1 < line->count && sooner(&users[child + 1], &users[child]))
            child++;
        if (!sooner(&users[child], &last))
            break;
        users[at] = users[child];
    }
    users[at] = last;
    return first;
}

static int meet(Play *play, int64_t message, double time)
{
    if (!play->met[message]) {
        play->met[message] = 1;
        play->half[message] = time;
        return 0;
    }
    return expect(play, time > play->half[message] ? time : play->half[message], message, -1);
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
        time += play->costs->send;
        if (program->asks[message] ? meet(play, message, time) : expect(play, time, message, -1))
            return -1;
    }
    play->done[rank] = time;
    return 0;
}

static void want(Play *play, Runs runs, int64_t place, int64_t rank, uint8_t end)
{
    for (int64_t at = runs.first[place]; at < runs.first[place + 1]; at++)
        if (!play->arrived[runs.rows[at]]) {
            play->wanted[runs.rows[at]] |= end;
            play->lacking[rank]++;
        }
}

static int ascending(const void *one, const void *two)
{
    double a = *(const double *)one, b = *(const double *)two;
    return (a > b) - (a < b);
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
            int64_t message = program->taken.rows[first + at];
            play->arrivals[at] = play->through[message] + play->costs->wire[message];
        }
        if (count > 1)
            qsort(play->arrivals, (size_t)count, sizeof *play->arrivals, ascending);
        for (int64_t at = 0; at < count; at++)
            time = (play->arrivals[at] > time ? play->arrivals[at] : time) + play->costs->receive;
        for (int64_t at = program->finished.first[place]; at < program->finished.first[place + 1]; at++)
            if (play->through[program->finished.rows[at]] > time)
                time = play->through[program->finished.rows[at]];
        play->done[rank] = time + play->costs->work[place];
        play->place[rank] = place + 1;
        play->entered[rank] = 0;
    }
    return 0;
}

static int arrive(Play *play, int64_t message, double time)
{
    const Program *program = play->program;
    play->through[message] = time;
    play->arrived[message] = 1;
    if (program->in_turn) {
        int64_t *head = &play->head[program->pair[message]];
        *head = play->next[message];
        if (*head >= 0 && expect(play, time, *head, -1))
            return -1;
    }
    int64_t dst = program->dst[message], src = program->src[message];
    if ((play->wanted[message] & 1) && --play->lacking[dst] == 0 && go_on(play, dst))
        return -1;
    return (play->wanted[message] & 2) && --play->lacking[src] == 0 ? go_on(play, src) : 0;
}

static int begin(Play *play, int64_t message, double time)
{
    const Program *program = play->program;
    if (program->in_turn) {
        int64_t pair = program->pair[message];
        if (play->head[pair] < 0) {
            play->head[pair] = play->tail[pair] = message;
        } else if (play->head[pair] != message) { /* it waits for its turn */
            play->next[play->tail[pair]] = message;
            play->tail[pair] = message;
            return 0;
        }
    }
    play->begun[message] = time;
    if (play->still[message] == 0)
        return arrive(play, message, time + play->costs->alone[message]);
    for (int64_t at = program->passed.first[message]; at < program->passed.first[message + 1]; at++)
        if (play->costs->seconds[at] != 0.0 &&
            join(play, program->passed.rows[at], message, play->costs->seconds[at], time))
            return -1;
    return 0;
}

static int on_line(Play *play, int64_t message, double time)
{
    if (--play->still[message])
        return 0;
    double alone = play->begun[message] + play->costs->alone[message];
    return arrive(play, message, time < alone ? alone : time);
}

static int run(Play *play)
{
    for (int64_t rank = 0; rank < play->program->ranks; rank++)
        if (go_on(play, rank))
            return -1;
    while (play->count > 0) {
        Event event = pop(play);
        if (event.line < 0) {
            if (begin(play, event.number, event.time))
                return -1;
            continue;
        }
        Line *line = &play->lines[event.line];
        if (event.number != line->changes)
            continue;
        int64_t through = 0;
        line->served = play->users[line->room].until;
        double until = line->served * (1 + ROUNDING);
        do
            play->leaving[through++] = leave(play, line).message;
        while (line->count > 0 && play->users[line->room].until <= until);
        if (line->count > 0 && next_of(play, event.line, event.time))
            return -1;
        line->changes += line->count == 0;
        for (int64_t at = 0; at < through; at++)
            if (on_line(play, play->leaving[at], event.time))
                return -1;
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
    for (int64_t message = 0; message < program->messages; message++) {
        play->next[message] = play->head[message] = -1;
        for (int64_t at = program->passed.first[message]; at < program->passed.first[message + 1]; at++)
            if (play->costs->seconds[at] != 0.0) {
                play->still[message]++;
                play->lines[program->passed.rows[at]].room++;
            }
    }
    int64_t room = 0;
    for (int64_t line = 0; line < program->lines; line++) {
        int64_t most = play->lines[line].room;
        play->lines[line].room = room;
        room += most;
    }
}

/* When each rank is done. 0; 1: ranks wait for each other; -1: no memory. */
int commodel_in_time(const Program *program, const Costs *costs, double *done)
{
    size_t ranks = (size_t)program->ranks + 1, messages = (size_t)program->messages + 1;
    size_t passed = (size_t)program->passed.first[program->messages] + 1;
    Play play = {.program = program, .costs = costs, .done = done};
    double *numbers = calloc(4 * messages, sizeof *numbers);
    int64_t *counts = calloc(2 * ranks + 5 * messages, sizeof *counts);
    uint8_t *flags = calloc(ranks + 3 * messages, 1);
    play.lines = calloc((size_t)program->lines + 1, sizeof *play.lines);
    play.users = malloc(passed * sizeof *play.users);
    int failed = -1;
    if (numbers && counts && flags && play.lines && play.users) {
        play.through = numbers, play.half = numbers + messages, play.begun = numbers + 2 * messages;
        play.arrivals = numbers + 3 * messages;
        play.place = counts, play.lacking = counts + ranks, play.still = counts + 2 * ranks;
        play.next = play.still + messages, play.head = play.next + messages;
        play.tail = play.head + messages, play.leaving = play.tail + messages;
        play.entered = flags, play.wanted = flags + ranks, play.met = play.wanted + messages;
        play.arrived = play.met + messages;
        memset(done, 0, (size_t)program->ranks * sizeof *done);
        prepare(&play);
        failed = run(&play);
    }
    free(numbers), free(counts), free(flags), free(play.lines), free(play.users), free(play.coming);
    return failed;
}
