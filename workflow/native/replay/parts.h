/* parts.h: programs of all ranks and their costs, as Python passes them, and messages as structures. A program may have
 * several parts, which each rank executes one after the other; each is a program of the same ranks and links.
 * In a header for the same reason as events.h. */

#ifndef COMMODEL_PARTS_H
#define COMMODEL_PARTS_H

#include <stdint.h>
#include <stdlib.h>

#include "links.h"

typedef struct {
    int64_t ranks, messages, links, one_at_a_time;
    const int64_t *steps; /* first step of each rank, and the end */
    Runs send_posts, receive_posts, receive_waits, send_waits;
    const int64_t *src, *dst, *pair;
    const uint8_t *rendezvous;
    Runs links_passed; /* links of each message */
    const int64_t *opposite; /* of each link the one of the opposite direction, or -1 */
    int64_t bundled_links;   /* number of links that bundles pass; 0: no bundles */
    Runs bundles, contenders; /* of each bundle its links, and the bundles with common links */
} Program;

typedef struct {
    const double *send, *receive, *wire, *unshared, *seconds, *work; /* seconds: of each link of each message */
    const double *bundles; /* seconds of each link of each bundle */
    const double *weights; /* of each message: its part of a shared link relative to others; NULL: equal */
    const double *offsets; /* of each link of each message: time from its begin until it reaches the link; NULL: 0 */
    double opposite_share;
} Costs;

enum { NOT_READY, ONE_END_READY, BEGUN };

/* All fields of a message in one cache line. */
typedef struct {
    double time;  /* rendezvous: when the first end was ready; later the begin, then the end of the message */
    int64_t order; /* order of messages with the same begin */
    double wire, receive, unshared;
    int64_t uses; /* index of its first use */
    int32_t src, dst;
    uint16_t links_left, links_joined; /* number of links that it has not left, and that it has reached */
    uint8_t begin, queued, arrived, awaited_by; /* awaited_by: 1: its receiver waits, 2: its sender waits */
} Message;

typedef struct {
    int64_t link;
    double seconds;
} Use;

typedef struct {
    const Program *program; /* NULL: not loaded, or released */
    const Costs *costs;
    Message *messages;
    Use *uses;
    double *offsets; /* of uses; those of a message rise; NULL: all are 0 */
} Part;

/* Inserts a use among the others of its message, in the order of offsets. */
static inline void insert_use(Part *part, int64_t first, int64_t end, Use use, double offset)
{
    int64_t at = end;
    for (; at > first && part->offsets[at - 1] > offset; at--) {
        part->uses[at] = part->uses[at - 1];
        part->offsets[at] = part->offsets[at - 1];
    }
    part->uses[at] = use;
    part->offsets[at] = offset;
}

/* Copies the fields of messages. Returns 0, or -1. */
static inline int copy_messages(Part *part)
{
    const Program *program = part->program;
    const Costs *costs = part->costs;
    part->messages = calloc((size_t)program->messages + 1, sizeof *part->messages);
    size_t uses = (size_t)program->links_passed.first[program->messages] + 1;
    part->uses = malloc(uses * sizeof *part->uses);
    part->offsets = costs->offsets ? malloc(uses * sizeof *part->offsets) : NULL;
    if (part->messages == NULL || part->uses == NULL || (costs->offsets && part->offsets == NULL))
        return -1;
    int64_t used = 0;
    for (int64_t row = 0; row < program->messages; row++) {
        Message *message = &part->messages[row];
        message->wire = costs->wire[row];
        message->receive = costs->receive[row];
        message->unshared = costs->unshared[row];
        message->src = (int32_t)program->src[row];
        message->dst = (int32_t)program->dst[row];
        message->uses = used;
        for (int64_t at = program->links_passed.first[row]; at < program->links_passed.first[row + 1]; at++)
            if (costs->seconds[at] != 0.0) {
                Use use = {program->links_passed.rows[at], costs->seconds[at]};
                if (costs->offsets)
                    insert_use(part, message->uses, used, use, costs->offsets[at]);
                else
                    part->uses[used] = use;
                used++;
            }
        message->links_left = (uint16_t)(used - message->uses);
    }
    part->messages[program->messages].uses = used;
    return 0;
}

static inline void release_part(Part *part)
{
    free(part->messages), free(part->uses), free(part->offsets);
    *part = (Part){0};
}

#endif
