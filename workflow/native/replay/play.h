/* A play that goes on: where ranks are in what they do, and which of their messages are to begin, in the order of time; of
 * those that a rank posts one after the other only the first is among them, the others wait in line behind it.
 * In a header for the same reason as events.h. */

#ifndef COMMODEL_PLAY_H
#define COMMODEL_PLAY_H

#include <stdint.h>

#include "parts.h"

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

#endif
