/* bare.h: see bare.c. */
#ifndef BARE_H
#define BARE_H

#include <stddef.h>

typedef struct {
  double value;
  char rest[32]; /* as many bytes as a packet of one double has */
} BareMessage;

/* Each leaf gets `bytes` more in a round. `program bare-leaf PORT NUMBER BYTES` calls bare_leaf(). */
void bare_start(char *program, int leaves, size_t bytes);
_Noreturn void bare_leaf(int port, int number, size_t bytes);
double bare_round(void); /* the sum of all leaves' numbers */
void bare_end(void);

#endif
