/* intime.c: simulates a schedule in the order of time by the rules of models/evaluation/time_order.py. Messages, ranks,
 * links and steps of ranks are numbered. The entries of number i in a column are those from first[i] to first[i + 1]. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "steps.h"

const int commodel_replay_form = 10; /* version of the structures of parts.h, playevents.c and replay.c, which Python checks */

static int arrive(Play *play, int64_t number, double time)
{
    Message *message = message_of(play, number);
    message->time = time;
    message->arrived = 1;
    if (play->head) {
        int64_t *head = &play->head[play->parts->program->pair[number]];
        *head = play->next[number];
        if (*head >= 0 && schedule_begin(play, time, *head))
            return -1;
    }
    int64_t dst = message->dst, src = message->src;
    int sender_waits = message->awaited_by & 2; /* read first: once the receiver has advanced, the message may be released */
    if ((message->awaited_by & 1) && --play->missing[dst] == 0 && advance_rank(play, dst))
        return -1;
    return sender_waits && --play->missing[src] == 0 ? advance_rank(play, src) : 0;
}

/* Adds a message to the links that it has reached by `time`. For the next link, an event is scheduled. */
static int join_links(Play *play, int64_t number, double time)
{
    Message *message = message_of(play, number);
    const Part *part = &play->parts[number >> play->shift];
    double weight = part->costs->weights ? part->costs->weights[message - part->messages] : 1.0;
    int64_t at = message->uses + message->links_joined, end = message[1].uses;
    for (; at < end; at++, message->links_joined++) {
        double reached = part->offsets ? message->time + part->offsets[at] : time;
        if (reached > time)
            return schedule_begin(play, reached, number);
        const Use *use = &part->uses[at];
        if (join(&play->network, use->link, (User){use->seconds, weight, number}, time, &play->order))
            return -1;
    }
    return 0;
}

static int begin(Play *play, int64_t number, double time)
{
    if (play->head) {
        int64_t pair = play->parts->program->pair[number];
        if (play->head[pair] < 0) {
            play->head[pair] = play->tail[pair] = number;
        } else if (play->head[pair] != number) { /* it waits until the earlier ones have arrived */
            play->next[play->tail[pair]] = number;
            play->tail[pair] = number;
            return 0;
        }
    }
    Message *message = message_of(play, number);
    message->time = time;
    message->begin = BEGUN;
    if (message->links_left == 0)
        return arrive(play, number, time + message->unshared);
    return join_links(play, number, time);
}

enum { LEFT = -1 }; /* in place of a link that a message has left */

/* Removes a message from a link. The latency before the link is over; only the rest of it follows the last link. */
static int leave_link(Play *play, int64_t number, int64_t link, double time)
{
    Message *message = message_of(play, number);
    const Part *part = &play->parts[number >> play->shift];
    if (part->offsets) {
        int64_t at = message->uses;
        while (part->uses[at].link != link)
            at++;
        double sent = time - part->offsets[at] - message->time;
        part->uses[at].link = LEFT; /* by symmetry, a message may pass a link twice */
        message->unshared = sent > message->unshared ? sent : message->unshared;
    }
    if (--message->links_left)
        return 0;
    double unshared = message->time + message->unshared;
    if (part->offsets && unshared < time)
        message->wire -= time - unshared;
    return arrive(play, number, time < unshared ? unshared : time);
}

static int serve_next(Play *play)
{
    const Event *first = &play->network.due.events[0];
    double time = first->time;
    int64_t link = first->number, max_leaving = play->network.links[link].count;
    if (max_leaving > play->leaving_capacity) {
        int64_t *grown = realloc(play->leaving, 2 * (size_t)max_leaving * sizeof *grown);
        if (grown == NULL)
            return -1;
        play->leaving = grown;
        play->leaving_capacity = 2 * max_leaving;
    }
    int64_t count = serve(&play->network, play->leaving, &play->order);
    if (count < 0)
        return -1;
    for (int64_t at = 0; at < count; at++)
        if (leave_link(play, play->leaving[at], link, time))
            return -1;
    return 0;
}

static int run(Play *play)
{
    for (int64_t rank = 0; rank < play->ranks; rank++)
        if (advance_rank(play, rank))
            return -1;
    Heap *beginnings = &play->beginnings, *due = &play->network.due;
    while (beginnings->count > 0 || due->count > 0) {
        if (beginnings->count > 0 && (due->count == 0 || precedes(&beginnings->events[0], &due->events[0]))) {
            Event event = take_next_beginning(play);
            int has_begun = message_of(play, event.number)->begin == BEGUN;
            if ((has_begun ? join_links : begin)(play, event.number, event.time))
                return -1;
        } else if (is_first_current(&play->network) && serve_next(play)) {
            return -1;
        }
    }
    for (int64_t rank = 0; rank < play->ranks; rank++)
        if (play->part[rank] < play->count)
            return 1;
    return 0;
}

static int play_all(Play *play)
{
    size_t ranks = (size_t)play->ranks + 1;
    const Program *program = play->parts->program;
    size_t links = (size_t)program->links + 1, waiting = program->one_at_a_time ? (size_t)program->messages + 1 : 0;
    Network *network = &play->network;
    play->part = calloc(3 * ranks + 3 * waiting, sizeof *play->part);
    play->queue = calloc(2 * ranks, sizeof *play->queue);
    play->posted = calloc(ranks, 1);
    network->opposite_share = play->parts->costs->opposite_share;
    network->links = calloc(links, sizeof *network->links);
    network->users = program->bundled_links ? calloc((size_t)program->bundled_links, sizeof *network->users) : NULL;
    int failed = -1;
    if (play->part && play->queue && play->posted && network->links && (network->users || !program->bundled_links) &&
        prepare_part(play, play->parts) == 0) {
        play->step = play->part + ranks, play->missing = play->step + ranks, play->queue_end = play->queue + ranks;
        if (waiting) {
            play->next = play->missing + ranks, play->head = play->next + waiting, play->tail = play->head + waiting;
            memset(play->next, -1, 2 * waiting * sizeof *play->next);
        }
        network->links_passed = program->bundles, network->contenders = program->contenders;
        network->opposite = program->opposite, network->seconds = play->parts->costs->bundles;
        for (int64_t link = 0; link < program->links; link++)
            network->links[link].opposite = program->bundled_links ? -1 : program->opposite[link];
        memcpy(play->step, program->steps, (size_t)play->ranks * sizeof *play->step);
        memset(play->done, 0, (size_t)play->ranks * sizeof *play->done);
        failed = run(play);
    }
    for (size_t link = 0; network->links && link < links; link++)
        free(network->links[link].queue), free(network->links[link].heap);
    for (int64_t number = 0; number < play->count; number++)
        release_part(&play->parts[number]);
    free(play->part), free(play->queue), free(play->posted), free(play->leaving), free(play->arrivals);
    free(network->links), free(network->users), free(network->due.events), free(play->beginnings.events);
    return failed;
}

/* Writes the finish time of each rank. Returns 0; 1: deadlock; -1: no memory. */
int commodel_in_time(const Program *program, const Costs *costs, double *done)
{
    Part whole = {.program = program, .costs = costs};
    Play play = {.parts = &whole, .ranks = program->ranks, .count = 1, .shift = 62, .done = done};
    return play_all(&play);
}

/* The same for a program in `count` parts of at most 2^shift messages, without messages in turn. `ends`: when each rank
 * is done with the last parts (see play.h). */
int commodel_in_parts(Feed feed, int64_t count, int shift, double *done, double *ends)
{
    Part *parts = calloc((size_t)count, sizeof *parts);
    if (parts == NULL)
        return -1;
    int failed = feed(0, 0, &count, &parts->program, &parts->costs);
    if (!failed) {
        Play play = {.feed = feed, .parts = parts, .count = count, .shift = shift, .done = done, .ends = ends};
        play.ranks = parts->program->ranks;
        failed = play_all(&play);
    }
    free(parts);
    return failed;
}
