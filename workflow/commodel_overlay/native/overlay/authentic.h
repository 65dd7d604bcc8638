/* authentic.h: tags of packets, an option: without the token, packets cannot be made, changed, omitted or repeated unnoticed.
 *
 * The parent begins with a random number. The hello then has no token, but a random number of the child and a MAC of all
 * of it, HMAC-SHA-256 with the token as key; so are the keys of the connection made of both numbers, one in each
 * direction. Behind each frame there is a tag: SipHash-2-4, 128 bits, over how many frames came before it, and the frame.
 * SipHash is a pseudorandom function with a key of 128 bits, made for this; HMAC of whole frames took ten times as long.
 * Nothing is encrypted.
 */
#ifndef OVERLAY_AUTHENTIC_H
#define OVERLAY_AUTHENTIC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { KEY_BYTES = 32, DIGEST_BYTES = 32, NONCE_BYTES = 16, TAG_BYTES = 16, TAGS = 32 };

void hmac(const unsigned char key[static KEY_BYTES], const struct iovec *parts, int count,
          unsigned char digest[static DIGEST_BYTES]);

typedef struct {
  uint64_t words[2];
} TagKey;

/* One end of a connection. */
typedef struct {
  TagKey send_key, receive_key;
  uint64_t sent, received;             /* frames */
  unsigned char tags[TAGS][TAG_BYTES]; /* of the first frames that are to be sent */
  uint32_t ready;                      /* how many of these */
} Authentic;
/* NULL: no memory. */
Authentic *authentic_new(const unsigned char token[static KEY_BYTES], struct iovec nonce, struct iovec hello,
                         int is_parent);
void tag_of(const TagKey *key, uint64_t number, const void *frame, size_t bytes, unsigned char tag[static TAG_BYTES]);
int same_bytes(const unsigned char *one, const unsigned char *other, size_t count); /* in the same time, wherever they differ */

#endif
