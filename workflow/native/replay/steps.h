/* Execution of ranks' steps, from part to part, until they wait for a message.
 * In a header for the same reason as events.h. */

#ifndef COMMODEL_STEPS_H
#define COMMODEL_STEPS_H

#include <stdlib.h>

#include "play.h"

/* Returns 0, or -1. */
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

/* Loads a part that a rank has reached, and releases those that all ranks have left. */
static int load_part(Play *play, int64_t number)
{
    int64_t oldest = number;
    for (int64_t rank = 0; rank < play->ranks; rank++)
        if (play->part[rank] < oldest)
            oldest = play->part[rank];
    for (; play->oldest < oldest; play->oldest++)
        release_part(&play->parts[play->oldest]);
    Part *part = &play->parts[number];
    return play->feed(number, oldest, &part->program, &part->costs) ? -1 : prepare(play, part);
}

static int post(Play *play, int64_t rank, int64_t place)
{
    const Part *part = &play->parts[play->part[rank]];
    const Program *program = part->program;
    int64_t base = play->part[rank] << play->shift;
    double time = play->done[rank];
    for (int64_t at = program->opened.first[place]; at < program->opened.first[place + 1]; at++)
        if (match_ends(play, base | program->opened.rows[at], time))
            return -1;
    for (int64_t at = program->posted.first[place]; at < program->posted.first[place + 1]; at++) {
        int64_t row = program->posted.rows[at];
        time += part->costs->send[row];
        Position here = {play->part[rank], at};
        if (program->rendezvous[row] ? match_ends(play, base | row, time) : enqueue(play, rank, time, here))
            return -1;
    }
    play->done[rank] = time;
    return 0;
}

static void await_messages(Play *play, Message *messages, Runs runs, int64_t place, int64_t rank, uint8_t end)
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

/* Moves a rank from the end of one part to the next. */
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

/* Executes the steps of a rank until it waits for a message. */
static int advance_rank(Play *play, int64_t rank)
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
            await_messages(play, part->messages, program->taken, place, rank, 1);
            await_messages(play, part->messages, program->finished, place, rank, 2);
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

#endif
