/* steps.h: executes the steps of a rank, from part to part, until it waits for a message.
 * In a header for the same reason as events.h. */

#ifndef COMMODEL_STEPS_H
#define COMMODEL_STEPS_H

#include <stdlib.h>

#include "play.h"

/* Returns 0, or -1. */
static int prepare_part(Play *play, Part *part)
{
    const Program *program = part->program;
    int64_t max_arrivals = 0;
    if (copy_messages(part))
        return -1;
    for (int64_t step = 0; step < program->steps[program->ranks]; step++)
        if (program->receive_waits.first[step + 1] - program->receive_waits.first[step] > max_arrivals)
            max_arrivals = program->receive_waits.first[step + 1] - program->receive_waits.first[step];
    if (max_arrivals > play->arrivals_capacity) {
        Arrival *grown = realloc(play->arrivals, (size_t)max_arrivals * sizeof *grown);
        if (grown == NULL)
            return -1;
        play->arrivals = grown;
        play->arrivals_capacity = max_arrivals;
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
    return play->feed(number, oldest, &play->count, &part->program, &part->costs) ? -1 : prepare_part(play, part);
}

static int post(Play *play, int64_t rank, int64_t step)
{
    const Part *part = &play->parts[play->part[rank]];
    const Program *program = part->program;
    int64_t base = play->part[rank] << play->shift;
    double time = play->done[rank];
    for (int64_t at = program->receive_posts.first[step]; at < program->receive_posts.first[step + 1]; at++)
        if (match_ends(play, base | program->receive_posts.rows[at], time))
            return -1;
    for (int64_t at = program->send_posts.first[step]; at < program->send_posts.first[step + 1]; at++) {
        int64_t row = program->send_posts.rows[at];
        time += part->costs->send[row];
        Position here = {play->part[rank], at};
        if (program->rendezvous[row] ? match_ends(play, base | row, time) : enqueue(play, rank, time, here))
            return -1;
    }
    play->done[rank] = time;
    return 0;
}

static void add_waits(Play *play, Message *messages, Runs runs, int64_t step, int64_t rank, uint8_t end)
{
    for (int64_t at = runs.first[step]; at < runs.first[step + 1]; at++)
        if (!messages[runs.rows[at]].arrived) {
            messages[runs.rows[at]].awaited_by |= end;
            play->missing[rank]++;
        }
}

static int compare_arrivals(const void *one, const void *two)
{
    const Arrival *a = one, *b = two;
    if (a->time != b->time)
        return a->time > b->time ? 1 : -1;
    return (a->receive > b->receive) - (a->receive < b->receive);
}

/* Moves a rank from the end of one part to the next. */
static int next_part(Play *play, int64_t rank)
{
    if (play->ends)
        play->ends[play->part[rank] % KEPT_PARTS * play->ranks + rank] = play->done[rank];
    int64_t number = ++play->part[rank];
    if (number == play->count)
        return 0;
    if (play->parts[number].program == NULL && load_part(play, number))
        return -1;
    play->step[rank] = play->parts[number].program->steps[rank];
    return 0;
}

/* Executes the steps of a rank until it waits for a message. */
static int advance_rank(Play *play, int64_t rank)
{
    while (play->part[rank] < play->count) {
        const Part *part = &play->parts[play->part[rank]];
        const Program *program = part->program;
        int64_t step = play->step[rank];
        if (step == program->steps[rank + 1]) {
            if (next_part(play, rank))
                return -1;
            continue;
        }
        if (!play->posted[rank]) {
            play->posted[rank] = 1;
            if (post(play, rank, step))
                return -1;
            add_waits(play, part->messages, program->receive_waits, step, rank, 1);
            add_waits(play, part->messages, program->send_waits, step, rank, 2);
        }
        if (play->missing[rank])
            return 0;
        double time = play->done[rank];
        int64_t first = program->receive_waits.first[step], count = program->receive_waits.first[step + 1] - first;
        for (int64_t at = 0; at < count; at++) {
            const Message *message = &part->messages[program->receive_waits.rows[first + at]];
            play->arrivals[at] = (Arrival){message->time + message->wire, message->receive};
        }
        if (count > 1)
            qsort(play->arrivals, (size_t)count, sizeof *play->arrivals, compare_arrivals);
        for (int64_t at = 0; at < count; at++)
            time = (play->arrivals[at].time > time ? play->arrivals[at].time : time) + play->arrivals[at].receive;
        for (int64_t at = program->send_waits.first[step]; at < program->send_waits.first[step + 1]; at++)
            if (part->messages[program->send_waits.rows[at]].time > time)
                time = part->messages[program->send_waits.rows[at]].time;
        play->done[rank] = time + part->costs->work[step];
        play->step[rank] = step + 1;
        play->posted[rank] = 0;
    }
    return 0;
}

#endif
