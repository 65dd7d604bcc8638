/* payload.c: contents of messages in the checked pass.
 *
 * In an operation that only moves data, the byte at an address is a function of the address, so that every message can
 * be checked by its receiver. In a reduction, every rank has its own vector, and received bytes are added to it modulo
 * 256, which is exact in any order and for any split into messages; the result must be the sum over all ranks. If a
 * schedule has no contents of messages, each message has its own pattern.
 */
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 8 };

struct Payload {
  const Part *part;
  uint64_t salt;       /* different in each wave */
  unsigned char *data; /* this rank's vector; NULL without reduction */
};

static uint64_t splitmix(uint64_t z)
{
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static unsigned char byte_of(uint64_t word, long long address)
{
  return (unsigned char)(word >> 8 * (address % WORD_BYTES));
}

/* Word w of the data of an operation that only moves data. */
static uint64_t word_at(uint64_t salt, long long w) { return splitmix((uint64_t)w * 0x9e3779b97f4a7c15u + salt + 1); }

/* Writes the bytes of a word from an address on, at most `limit`. Returns their number. */
static size_t write_word(uint64_t word, long long address, size_t limit, char *to)
{
  size_t offset = (size_t)(address % WORD_BYTES), count = WORD_BYTES - offset;
  if (count > limit) count = limit;
  if (count == WORD_BYTES)
    memcpy(to, &word, WORD_BYTES); /* constant length: one store */
  else
    memcpy(to, (const char *)&word + offset, count);
  return count;
}

/* The byte at an address of a rank's vector is one of eight factors of the rank, in turn, times an odd factor of the
 * address. The sum over ranks is therefore the sum of their factors, times that of the address. */
static unsigned char product(const unsigned char factors[WORD_BYTES], uint64_t word, long long address)
{
  return (unsigned char)(factors[address % WORD_BYTES] * (byte_of(word, address) | 1));
}

static void add_factors(const Payload *payload, int rank, unsigned char factors[WORD_BYTES])
{
  uint64_t word = splitmix(((uint64_t)rank + 1) * 0xd1b54a32d192ed03u + payload->salt);
  for (int i = 0; i < WORD_BYTES; i++) factors[i] = (unsigned char)(factors[i] + byte_of(word, i));
}

static void fill(unsigned char *data, long long bytes, const unsigned char factors[WORD_BYTES])
{
  uint64_t word = 0;
  for (long long a = 0; a < bytes; a++) {
    if (a % WORD_BYTES == 0) word = word_at(0, a / WORD_BYTES);
    data[a] = product(factors, word, a);
  }
}

Payload *open_payload(const Part *part, int rank, bool sums, int wave)
{
  Payload *payload = allocate(1, sizeof *payload);
  payload->part = part;
  payload->salt = splitmix((uint64_t)wave) - splitmix(0);
  if (!sums) return payload;
  long long bytes = 0;
  for (int i = 0; i < part->count + part->results; i++)
    for (int r = part->ops[i].run; r < part->ops[i].run + part->ops[i].runs; r++) {
      long long end = part->runs[r].first + part->runs[r].length;
      if (end > bytes) bytes = end;
    }
  unsigned char factors[WORD_BYTES] = {0};
  add_factors(payload, rank, factors);
  payload->data = allocate((size_t)bytes + 1, 1);
  fill(payload->data, bytes, factors);
  return payload;
}

/* Word w of message (src, dst, row), if the schedule has no contents of messages. */
static uint64_t pattern_word(const Payload *payload, const Op *op, size_t w)
{
  int src = op->kind == SEND ? op->rank : op->peer, dst = op->kind == SEND ? op->peer : op->rank;
  uint64_t name = (uint64_t)src << 42 ^ (uint64_t)dst << 21 ^ (uint64_t)op->row;
  return splitmix(splitmix(name) + w * 0x9e3779b97f4a7c15u + payload->salt);
}

void pack(const Payload *payload, const Op *op, char *message)
{
  size_t at = 0, bytes = (size_t)op->bytes;
  for (int r = op->run; r < op->run + op->runs; r++) {
    DataRun run = payload->part->runs[r];
    size_t end = at + (size_t)run.length;
    long long shift = run.first - (long long)at;
    if (payload->data) {
      memcpy(message + at, payload->data + run.first, (size_t)run.length);
      at = end;
    }
    while (at < end) {
      long long address = shift + (long long)at;
      at += write_word(word_at(payload->salt, address / WORD_BYTES), address, end - at, message + at);
    }
  }
  while (at < bytes) at += write_word(pattern_word(payload, op, at / WORD_BYTES), (long long)at, bytes - at, message + at);
}

bool unpack(Payload *payload, const Op *op, const char *message, bool combines)
{
  size_t at = 0, bytes = (size_t)op->bytes;
  char *expected = allocate(bytes + 1, 1);
  pack(payload, op, expected);
  for (int r = op->run; payload->data && r < op->run + op->runs; r++) { /* sums are checked at the end */
    DataRun run = payload->part->runs[r];
    for (int i = 0; i < run.length; i++, at++) {
      unsigned char *own = &payload->data[run.first + i];
      *own = (unsigned char)((combines ? *own : 0) + (unsigned char)message[at]);
    }
  }
  bool same = memcmp(message + at, expected + at, bytes - at) == 0;
  free(expected);
  return same;
}

bool results_are_exact(const Payload *payload)
{
  const Part *part = payload->part;
  unsigned char factors[WORD_BYTES] = {0};
  if (part->results == 0) return true;
  for (int rank = 0; rank < part->ranks; rank++) add_factors(payload, rank, factors);
  for (int i = part->count; i < part->count + part->results; i++)
    for (int r = part->ops[i].run; r < part->ops[i].run + part->ops[i].runs; r++) {
      uint64_t word = 0;
      for (long long first = part->runs[r].first, a = first; a < first + part->runs[r].length; a++) {
        if (a == first || a % WORD_BYTES == 0) word = word_at(0, a / WORD_BYTES);
        if (payload->data[a] != product(factors, word, a)) return false;
      }
    }
  return true;
}

void close_payload(Payload *payload)
{
  free(payload->data);
  free(payload);
}
