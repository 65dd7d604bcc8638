/* parts.c: the parts that need no network: topologies, formats, packets, commands, the handshake. A line a failure. */
#include "errors.h"
#include "launch.h"
#include "packet.h"
#include "topology.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;
#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: not true: %s (%s)\n", __FILE__, __LINE__, #condition, overlay_error());                  \
      failures++;                                                                                                      \
    }                                                                                                                  \
  } while (0)

static void check_topology(void)
{
  /* Two levels, uneven: leaves d e (under b), c, g (under f). */
  Topology *tree = topology_parse("a:0 => b:0 c:0 f:0 ; # root\nb:0 => d:0\n e:0 ;f:0=>g:0;", "text");
  CHECK(tree && tree->nodes == 7 && tree->leaves == 4);
  static const char *const names[] = {"a:0", "b:0", "d:0", "e:0", "c:0", "f:0", "g:0"};
  static const int parents[] = {-1, 0, 1, 1, 0, 0, 5}, firsts[] = {0, 0, 0, 1, 2, 3, 3},
                   widths[] = {4, 2, 1, 1, 1, 1, 1};
  for (int node = 0; tree && node < 7; node++) {
    CHECK(strcmp(tree->name[node], names[node]) == 0 && tree->parent[node] == parents[node]);
    CHECK(tree->first[node] == firsts[node] && tree->width[node] == widths[node]);
  }
  static const int leaves[] = {2, 3, 4, 6};
  for (int leaf = 0; tree && leaf < 4; leaf++) CHECK(topology_leaf_node(tree, leaf) == leaves[leaf]);
  int children[3];
  CHECK(tree && topology_children(tree, 0, children) == 3 && children[0] == 1 && children[1] == 4 && children[2] == 5);
  topology_free(tree);
  static const int32_t across[] = {-1, 0, 0, 1}, late[] = {-1, 2, 0}, none[] = {0}, chain[] = {-1, 0, 1, 2};
  CHECK(!topology_build(across, names, 4) && strstr(overlay_error(), "node 3 has the parent 1"));
  CHECK(!topology_build(late, names, 3) && !topology_build(none, names, 1) && !topology_build(chain, names, 0));
  tree = topology_build(chain, names, 4);
  CHECK(tree && tree->leaves == 1 && topology_leaf_node(tree, 0) == 3 && tree->size[1] == 3);
  topology_free(tree);
  char host[TOPOLOGY_MAX_NAME + 1];
  topology_host("fe80::1:7", host);
  CHECK(strcmp(host, "fe80::1") == 0);
}

static void check_formats(void)
{
  Type types[MAX_VALUES];
  CHECK(format_types("", types) == 0 && format_types("  %d  %alf ", types) == 2);
  CHECK(types[0].code == 'd' && types[0].size == 4 && !types[0].array);
  CHECK(types[1].code == 'f' && types[1].size == 8 && types[1].array);
  static const char *const bad[] = {"d",    "%",    "%q",   "%lc",  "%hf", "%uf", "%us",
                                    "%hld", "%lld", "%d%d", "%aad", "%a",  "%ls", "%hs"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(format_types(bad[i], types) < 0);
  static const char *const good[] = {"%c",   "%uc", "%hd", "%uhd", "%d",  "%ud",  "%ld",
                                     "%uld", "%f",  "%lf", "%s",   "%as", "%auhd"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) CHECK(format_types(good[i], types) == 1);
  char many[3 * (MAX_VALUES + 1) + 1] = "";
  for (int i = 0; i <= MAX_VALUES; i++) strcat(many, "%d ");
  CHECK(format_types(many, types) < 0);
  CHECK(format_same("%d %s", " %d   %s ") && !format_same("%d", "%ad") && !format_same("%d", "%d %d") &&
        format_same("", " "));
}

static void check_packets(void)
{
  static const double numbers[] = {1, -2.5, 3e300};
  static const char *const words[] = {"", "two", "three"};
  OverlayPacket *packet =
      overlay_pack(9, "%c %alf %s %as %uld %f %ac", 'x', numbers, 3u, "text", words, 3u, UINT64_MAX, 0.5, "abc", 3u);
  CHECK(packet && overlay_tag(packet) == 9 && packet->frame->bytes % 8 == 0);
  char letter, *text;
  const char *bytes, *const *strings;
  const double *array;
  uint32_t n, m, k;
  uint64_t big;
  float half;
  CHECK(overlay_unpack(packet, "%c %alf %s %as %uld %f %ac", &letter, &array, &n, &text, &strings, &m, &big, &half,
                       &bytes, &k) == 0);
  CHECK(letter == 'x' && n == 3 && memcmp(array, numbers, sizeof numbers) == 0 && (uintptr_t)array % 8 == 0);
  CHECK(strcmp(text, "text") == 0 && m == 3 && strcmp(strings[0], "") == 0 && strcmp(strings[2], "three") == 0);
  CHECK(big == UINT64_MAX && half == 0.5f && k == 3 && memcmp(bytes, "abc", 3) == 0);
  CHECK(overlay_unpack(packet, "%d", &n) == OVERLAY_FAILED && strstr(overlay_error(), "wanted '%d'"));
  /* A frame that is cut off anywhere is none. */
  for (uint32_t size = sizeof(Frame); packet && size < packet->frame->bytes; size += 8) {
    Block *block = block_new(size);
    memcpy(block->bytes, packet->frame, size);
    ((Frame *)block->bytes)->bytes = size;
    CHECK(!packet_of(block, (Frame *)block->bytes));
    block_release(block);
  }
  overlay_keep(packet);
  overlay_release(packet);
  overlay_release(packet);
  CHECK(overlay_checksum("a", 1) == 0xaf63dc4c8601ec8cu); /* of FNV's own tables */
}

/* A packet typed by hand, in both orders; tests/overlay/test_overlay_orders.py has the same one. */
static void check_orders(void)
{
  static const char texts[2][57] = {
      "\x38\0\0\0\x1b\1\x9\0\3\0\0\0\xfe\xff\xff\xff\1\0\x8\0\x40\0\0\0%hd %ald\0\0\0\0\0\0\0\0\2\1\0\0\1\0\0\0\x8\7\6\5\4\3\2\1",
      "\0\0\0\x38\x1b\2\0\x9\0\0\0\3\xff\xff\xff\xfe\0\0\0\x40\0\x8\0\1%hd %ald\0\0\0\0\0\0\0\0\1\2\0\0\0\0\0\1\1\2\3\4\5\6\7\x8"};
  int64_t element = 0x0102030405060708;
  for (int order = LITTLE_ENDIAN_FRAME; order < END_OF_ORDERS; order++) {
    Block *block = block_new(56);
    memcpy(block->bytes, texts[order - 1], 56);
    OverlayPacket *packet = packet_of(block, (Frame *)block->bytes), *own = overlay_pack(-2, "%hd %ald", 0x0102, &element, 1u);
    int16_t value;
    const int64_t *array;
    uint32_t count;
    CHECK(packet && overlay_unpack(packet, "%hd %ald", &value, &array, &count) == OVERLAY_OK);
    CHECK(packet && value == 0x0102 && count == 1 && *array == element);
    own->frame->kind = 27, own->frame->stream = 3;
    set_origin(own->frame, (Origin){0, 1, 1});
    CHECK(memcmp(own->frame, texts[OWN_ORDER - 1], 56) == 0 && packet && memcmp(packet->frame, own->frame, 56) == 0);
    overlay_release(packet), overlay_release(own);
    block_release(block);
  }
  Block *block = block_new(56);
  memcpy(block->bytes, texts[0], 56);
  ((Frame *)block->bytes)->order = END_OF_ORDERS;
  CHECK(!packet_of(block, (Frame *)block->bytes) && strstr(overlay_error(), "byte order 3"));
  block_release(block);
}

static void check_commands(void)
{
  char *ssh[] = {"ssh", "-x", "{host}", NULL}, *srun[] = {"srun", "--nodelist={host}", "-n1", NULL};
  char **command = launch_command(ssh, "n-1.x", "/opt/overlay-node");
  CHECK(command && !strcmp(command[2], "n-1.x") && !strcmp(command[3], "/opt/overlay-node") &&
        !strcmp(command[4], "--boot") && !command[5]);
  free_command(command);
  command = launch_command(srun, "n1", "/opt/overlay-node");
  CHECK(command && strcmp(command[1], "--nodelist=n1") == 0);
  free_command(command);
  static const char *const hosts[] = {"", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a/b", "a\nb"};
  for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) CHECK(!launch_command(ssh, hosts[i], "/opt/overlay-node"));
  static const char *const programs[] = {"overlay-node", "/a b", "/a;b", "/a'b", "/$HOME", ""};
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) CHECK(!launch_command(ssh, "a", programs[i]));
}

static void check_handshake(void)
{
  unsigned char token[TOKEN_BYTES], other[TOKEN_BYTES];
  CHECK(token_new(token) == OVERLAY_OK && token_new(other) == OVERLAY_OK && memcmp(token, other, TOKEN_BYTES) != 0);
  Hello hello = hello_of(token, 5, NULL);
  CHECK(sizeof hello == 56 && !hello_refused(&hello, token, NULL) && hello_refused(&hello, other, NULL));
  for (int byte = 0; byte < 8 + 4 + 4 + TOKEN_BYTES; byte++) { /* nothing of it may differ but the node */
    hello = hello_of(token, 5, NULL);
    ((unsigned char *)&hello)[byte] ^= 0x10;
    CHECK(hello_refused(&hello, token, NULL));
  }
  unsigned char nonce[NONCE_BYTES], later[NONCE_BYTES];
  CHECK(nonce_new(nonce) == OVERLAY_OK && nonce_new(later) == OVERLAY_OK);
  hello = hello_of(token, 5, nonce);
  CHECK(!hello_refused(&hello, token, nonce) && hello_refused(&hello, other, nonce));
  CHECK(hello_refused(&hello, token, later)); /* one that was recorded */
  for (size_t byte = 0; byte < sizeof hello; byte++) { /* here the node is covered, too */
    Hello changed = hello;
    ((unsigned char *)&changed)[byte] ^= 0x10;
    CHECK(hello_refused(&changed, token, nonce));
  }
}

/* RFC 4231, test cases 1, 2 and 3: keys end in zeros, which HMAC adds anyway. */
static void check_hmac(void)
{
  static const struct {
    unsigned char key[KEY_BYTES], letter;
    const char *data;
    unsigned char digest[4];
  } cases[] = {{"", 0x0b, "Hi There", {0xb0, 0x34, 0x4c, 0x61}},
               {"Jefe", 0, "what do ya want for nothing?", {0x5b, 0xdc, 0xc1, 0x46}},
               {"", 0xaa, "\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd", {0x77, 0x3e, 0xa9, 0x1e}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    unsigned char key[KEY_BYTES], digest[DIGEST_BYTES];
    struct iovec parts[50];
    int count = i == 2 ? 5 : 1;
    memcpy(key, cases[i].key, sizeof key);
    if (cases[i].letter) memset(key, cases[i].letter, 20);
    for (int part = 0; part < count; part++) parts[part] = (struct iovec){(char *)cases[i].data, strlen(cases[i].data)};
    hmac(key, parts, count, digest);
    CHECK(memcmp(digest, cases[i].digest, 4) == 0);
  }
}

int main(void)
{
  check_topology();
  check_formats();
  check_packets();
  check_orders();
  check_commands();
  check_handshake();
  check_hmac();
  return failures != 0;
}
